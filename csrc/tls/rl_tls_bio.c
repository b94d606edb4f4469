/*
 * TLS by OpenSSL: moves bytes between OpenSSL and the buffers of a stream.
 *
 * SPDX-License-Identifier: MIT
 *
 * OpenSSL's memory BIOs would copy each byte once more, and have no limit.
 */
#include <stdlib.h>
#include <string.h>

#include "rl_tls.h"

static int rl_tls_bio_read(BIO *bio, char *bytes, int length) {
  rl_transport_stream *stream = BIO_get_data(bio);
  size_t there = stream->input_end - stream->input_start;
  BIO_clear_retry_flags(bio);
  if (there == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  size_t taken = length < 0 ? 0 : (size_t)length < there ? (size_t)length : there;
  memcpy(bytes, stream->input + stream->input_start, taken);
  stream->input_start += taken;
  return (int)taken;
}

/* Makes room for |length| more bytes. Returns false when out of memory or over the limit. */
static bool rl_tls_bio_reserve(rl_transport_stream *stream, size_t length) {
  size_t used = stream->output_end - stream->output_start;
  if (length > RL_TLS_OUTPUT_MAX - used) {
    return false;
  }
  if (stream->output_start > 0) {
    memmove(stream->output, stream->output + stream->output_start, used);
    stream->output_start = 0;
    stream->output_end = used;
  }
  size_t capacity = stream->output_capacity == 0 ? 1024 : stream->output_capacity;
  while (capacity < used + length) {
    capacity *= 2;
  }
  unsigned char *grown = realloc(stream->output, capacity);
  if (grown == NULL) {
    return false;
  }
  stream->output = grown;
  stream->output_capacity = capacity;
  return true;
}

static int rl_tls_bio_write(BIO *bio, const char *bytes, int length) {
  rl_transport_stream *stream = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (length <= 0) {
    return 0;
  }
  if (stream->output_capacity - stream->output_end < (size_t)length &&
      !rl_tls_bio_reserve(stream, (size_t)length)) {
    return -1;
  }
  memcpy(stream->output + stream->output_end, bytes, (size_t)length);
  stream->output_end += (size_t)length;
  return length;
}

static long rl_tls_bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio;
  (void)number;
  (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static int rl_tls_bio_create(BIO *bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD *rl_tls_bio_method(void) {
  BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "redlock");
  if (method != NULL && (BIO_meth_set_read(method, rl_tls_bio_read) != 1 ||
                         BIO_meth_set_write(method, rl_tls_bio_write) != 1 ||
                         BIO_meth_set_ctrl(method, rl_tls_bio_control) != 1 ||
                         BIO_meth_set_create(method, rl_tls_bio_create) != 1)) {
    BIO_meth_free(method);
    method = NULL;
  }
  return method;
}
