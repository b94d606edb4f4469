/*
 * Fuzz target: a node that breaks TLS, at any moment of a connection. The stream must keep its
 * limits, end with a message or go on, and leave OpenSSL's queue of errors empty.
 *
 * SPDX-License-Identifier: MIT
 *
 *   byte 0   the valid part: nothing, the first flight, or the whole handshake; in TLS 1.2 or 1.3
 *   then     pieces: a length, and bytes; or a changed byte of the server's output
 */
#include <openssl/err.h>
#include <string.h>

#include "../../tls/rl_tls.h"
#include "../tls/tls_peer.h"
#include "fuzz.h"

#define FUZZ_TLS_PIECES_MAX 200

typedef struct fuzz_tls {
  rl_transport_node *node;
  rl_transport_stream *stream;
  tls_peer peer;
  bool shaken;
  bool ended;
  char message[RL_TLS_REFUSAL_MAX];
} fuzz_tls;

/* One certificate for all inputs. It is not verified, so that the fuzzer gets beyond it. */
static const tls_certificate *fuzz_tls_certificate(void) {
  static tls_certificate made;
  if (made.certificate == NULL) {
    made = tls_certificate_make("fuzz.test", -1, 2);
  }
  return &made;
}

static void fuzz_tls_result(fuzz_tls *self, long result) {
  size_t length = 0;
  const void *output = rl_tls_stream_output(self->stream, &length);
  fuzz_require((output == NULL) == (length == 0) && length <= RL_TLS_OUTPUT_MAX);
  fuzz_require(self->stream->input_start <= self->stream->input_end);
  fuzz_require(self->stream->input_end <= sizeof self->stream->input);
  fuzz_require(ERR_peek_error() == 0);
  if (result < 0) {
    fuzz_require(memchr(self->message, '\0', sizeof self->message) != NULL);
    fuzz_require(self->message[0] != '\0');
    for (const char *byte = self->message; *byte != '\0'; byte++) {
      fuzz_require(*byte >= ' ' && *byte <= '~');
    }
    self->ended = true;
  }
}

/* The stream reads the bytes that it was fed. */
static void fuzz_tls_turn(fuzz_tls *self) {
  char bytes[512];
  long result = 1;
  if (!self->shaken) {
    result = rl_tls_stream_shake(self->stream, self->message, sizeof self->message);
    self->shaken = result > 0;
    fuzz_tls_result(self, result);
  }
  for (unsigned i = 0; self->shaken && !self->ended && result > 0; i++) {
    fuzz_require(i <= 2 * sizeof self->stream->input);
    result =
        rl_tls_stream_read(self->stream, bytes, sizeof bytes, self->message, sizeof self->message);
    fuzz_require(result <= (long)sizeof bytes);
    fuzz_tls_result(self, result);
  }
  fuzz_require(self->ended || !self->shaken || !rl_tls_stream_holds(self->stream));
}

static void fuzz_tls_feed(fuzz_tls *self, const uint8_t *bytes, size_t length) {
  while (length > 0 && !self->ended) {
    size_t room = 0;
    void *place = rl_tls_stream_room(self->stream, &room);
    fuzz_require(room > 0);
    size_t taken = length < room ? length : room;
    memcpy(place, bytes, taken);
    rl_tls_stream_fed(self->stream, taken);
    fuzz_tls_turn(self);
    bytes += taken;
    length -= taken;
  }
}

/* Returns the server's output, with the byte at |at| changed by |change|. */
static void fuzz_tls_give(fuzz_tls *self, size_t at, uint8_t change) {
  uint8_t bytes[4096];
  int got;
  if (!self->ended) {
    tls_peer_take(&self->peer, self->stream);
  }
  while (!self->ended && (got = BIO_read(self->peer.out, bytes, sizeof bytes)) > 0) {
    bytes[at % (size_t)got] ^= change;
    fuzz_tls_feed(self, bytes, (size_t)got);
  }
}

static void fuzz_tls_piece(fuzz_tls *self, fuzz_input *input) {
  static const char reply[] = "+OK\r\n";
  const uint8_t *bytes;
  uint8_t what = fuzz_byte(input);
  size_t length;
  switch (what % 4) {
  case 0: {
    size_t at = fuzz_byte(input) * (size_t)8;
    fuzz_tls_give(self, at, fuzz_byte(input));
    break;
  }
  case 1:
    if (SSL_is_init_finished(self->peer.ssl)) {
      (void)SSL_write(self->peer.ssl, reply, sizeof reply - 1);
      ERR_clear_error();
    }
    break;
  case 2:
    if (self->shaken && !self->ended) {
      fuzz_tls_result(self, rl_tls_stream_write(self->stream, "PING\r\n", 6, self->message,
                                                sizeof self->message));
    }
    break;
  default:
    length = fuzz_bytes(input, &bytes, what / 4);
    fuzz_tls_feed(self, bytes, length);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {data, size};
  fuzz_tls self;
  uint8_t how = fuzz_byte(&input);
  rl_transport_options options = {.host = "fuzz.test", .unverified = true};
  memset(&self, 0, sizeof self);
  fuzz_require(rl_tls_node_new(&self.node, &options, self.message, sizeof self.message) ==
               REDLOCK_OK);
  tls_peer_start(&self.peer, fuzz_tls_certificate(), how & 1 ? TLS1_2_VERSION : TLS1_3_VERSION);
  self.stream = rl_tls_stream_new(self.node, self.message, sizeof self.message);
  fuzz_require(self.stream != NULL);
  fuzz_tls_turn(&self);
  for (unsigned i = 0; i < (how >> 1) % 4u; i++) {
    fuzz_tls_give(&self, 0, 0);
  }
  for (unsigned i = 0; i < FUZZ_TLS_PIECES_MAX && input.left > 0 && !self.ended; i++) {
    fuzz_tls_piece(&self, &input);
  }
  rl_tls_stream_finish(self.stream);
  rl_tls_stream_free(self.stream);
  rl_tls_node_free(self.node);
  tls_peer_end(&self.peer);
  ERR_clear_error();
  return 0;
}
