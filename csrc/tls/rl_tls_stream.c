/*
 * TLS by OpenSSL: one connection.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "rl_tls.h"

static bool rl_tls_stream_open(rl_transport_stream *stream) {
  rl_transport_node *node = stream->node;
  stream->ssl = SSL_new(node->context);
  if (stream->ssl == NULL || SSL_set_app_data(stream->ssl, stream) != 1 ||
      (node->peer[0] != '\0' && !rl_tls_verify_expect(stream->ssl, node))) {
    return false;
  }
  BIO *bio = BIO_new(node->bio);
  if (bio == NULL) {
    return false;
  }
  BIO_set_data(bio, stream);
  SSL_set_bio(stream->ssl, bio, bio);
  SSL_set_connect_state(stream->ssl);
  /* A server that does not know the session makes a full handshake. */
  return node->session == NULL || SSL_set_session(stream->ssl, node->session) == 1;
}

rl_transport_stream *rl_tls_stream_new(rl_transport_node *node, char *message,
                                       size_t message_size) {
  rl_transport_stream *stream = calloc(1, sizeof *stream);
  ERR_clear_error();
  if (stream != NULL) {
    rl_tls_node_refresh(node);
    stream->node = node;
    if (rl_tls_stream_open(stream)) {
      return stream;
    }
    rl_tls_stream_free(stream);
  }
  rl_tls_format_error(message, message_size, "cannot start TLS: ", "out of memory");
  return NULL;
}

void rl_tls_stream_free(rl_transport_stream *stream) {
  if (stream->ssl != NULL) {
    /* OpenSSL would drop the session of a connection that ends without a farewell. */
    SSL_set_shutdown(stream->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(stream->ssl);
  }
  if (stream->output != NULL) {
    OPENSSL_cleanse(stream->output, stream->output_capacity);
  }
  free(stream->output);
  free(stream);
}

/* Peeks first, because clearing the usually empty queue is slower. */
static void rl_tls_stream_clear_errors(void) {
  if (ERR_peek_error() != 0) {
    ERR_clear_error();
  }
}

/* Returns true if a read may succeed without more input. */
static bool rl_tls_stream_has_input(const rl_transport_stream *stream) {
  return stream->input_start < stream->input_end || SSL_has_pending(stream->ssl) == 1;
}

/* Returns 0 if the call that returned |result| needs input, and -1 if it failed. */
static int rl_tls_stream_end(rl_transport_stream *stream, int result, char *message,
                             size_t message_size) {
  bool waits = SSL_get_error(stream->ssl, result) == SSL_ERROR_WANT_READ;
  if (waits && (!stream->shaken || stream->idle <= RL_TLS_IDLE_MAX)) {
    return 0;
  }
  stream->failed = true;
  if (waits) {
    rl_tls_format(message, message_size, "TLS ended: the node sends only keys or tickets");
  } else {
    rl_tls_format_failure(stream, result, message, message_size);
  }
  return -1;
}

int rl_tls_stream_shake(rl_transport_stream *stream, char *message, size_t message_size) {
  ERR_clear_error();
  int result = SSL_do_handshake(stream->ssl);
  if (result == 1) {
    stream->shaken = true;
    stream->idle = 0;
    stream->holds = stream->input_start < stream->input_end;
    return 1;
  }
  result = rl_tls_stream_end(stream, result, message, message_size);
  if (result < 0) {
    rl_tls_node_forget_session(stream->node); /* It may be the reason. */
  }
  return result;
}

void *rl_tls_stream_room(rl_transport_stream *stream, size_t *length) {
  if (stream->input_start == stream->input_end) {
    stream->input_start = stream->input_end = 0;
  }
  *length = sizeof stream->input - stream->input_end;
  return stream->input + stream->input_end;
}

void rl_tls_stream_fed(rl_transport_stream *stream, size_t length) {
  stream->input_end += length;
  stream->idle += length;
}

long rl_tls_stream_read(rl_transport_stream *stream, void *bytes, size_t length, char *message,
                        size_t message_size) {
  size_t got = 0;
  stream->holds = false;
  if (stream->failed) {
    rl_tls_format(message, message_size, "%s", stream->failure);
    return -1;
  }
  rl_tls_stream_clear_errors();
  while (got < length && (got == 0 || rl_tls_stream_has_input(stream))) {
    int room = length - got > INT_MAX ? INT_MAX : (int)(length - got);
    int result = SSL_read(stream->ssl, (unsigned char *)bytes + got, room);
    if (result <= 0) {
      result = rl_tls_stream_end(stream, result, stream->failure, sizeof stream->failure);
      if (result < 0 && got == 0) {
        rl_tls_format(message, message_size, "%s", stream->failure);
        return -1;
      }
      stream->holds = result < 0; /* the next call returns the failure */
      return (long)got;
    }
    got += (size_t)result;
    stream->idle = 0;
  }
  stream->holds = rl_tls_stream_has_input(stream);
  return (long)got;
}

bool rl_tls_stream_holds(const rl_transport_stream *stream) {
  return stream->holds;
}

long rl_tls_stream_write(rl_transport_stream *stream, const void *bytes, size_t length,
                         char *message, size_t message_size) {
  if (stream->failed) {
    rl_tls_format(message, message_size, "%s", stream->failure);
    return -1;
  }
  if (length == 0 || length > INT_MAX) {
    return 0;
  }
  rl_tls_stream_clear_errors();
  int result = SSL_write(stream->ssl, bytes, (int)length);
  if (result <= 0) {
    /* Waiting is no reason: the output takes all bytes, and renegotiation is off. */
    stream->failed = true;
    rl_tls_format_failure(stream, result, stream->failure, sizeof stream->failure);
    rl_tls_format(message, message_size, "%s", stream->failure);
    return -1;
  }
  return result;
}

const void *rl_tls_stream_output(const rl_transport_stream *stream, size_t *length) {
  *length = stream->output_end - stream->output_start;
  return *length == 0 ? NULL : stream->output + stream->output_start;
}

void rl_tls_stream_sent(rl_transport_stream *stream, size_t length) {
  stream->output_start += length;
  if (stream->output_start < stream->output_end) {
    return;
  }
  stream->output_start = stream->output_end = 0;
  if (stream->output_capacity > RL_TLS_OUTPUT_KEPT_MAX) {
    free(stream->output);
    stream->output = NULL;
    stream->output_capacity = 0;
  }
}

void rl_tls_stream_finish(rl_transport_stream *stream) {
  if (stream->shaken && !stream->failed) {
    ERR_clear_error();
    (void)SSL_shutdown(stream->ssl);
    ERR_clear_error();
  }
}

/* Uses the clock by which OpenSSL verifies certificates. */
redlock_duration rl_tls_stream_certificate(const rl_transport_stream *stream) {
  redlock_duration left_us = REDLOCK_NEVER;
  int days = 0, seconds = 0;
  X509 *certificate = SSL_get_peer_certificate(stream->ssl);
  ERR_clear_error();
  if (certificate != NULL &&
      ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) == 1) {
    int64_t left = (int64_t)days * 86400 + seconds;
    left_us = left <= 0 ? 0 : (redlock_duration)left * REDLOCK_SECONDS;
  }
  X509_free(certificate);
  return left_us;
}
