/*
 * One connection with TLS to a server in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/err.h>

#include "rl_test.h"
#include "scratch.h"
#include "tls_peer.h"

#define PONG "+PONG\r\n"

static scratch_directory scratch;
static tls_certificate ours;
static char ca[256];
static char message[256];

static int start(void **state) {
  assert_true(scratch_open(&scratch, "rl_tls_stream"));
  ours = tls_certificate_make("redis.test", -1, 2);
  (void)snprintf(ca, sizeof ca, "%s/ca.pem", scratch.path);
  tls_certificate_write(&ours, ca);
  return 0;
}

static int end(void **state) {
  tls_certificate_free(&ours);
  scratch_close(&scratch);
  return 0;
}

static rl_transport_node *node_for(const char *host) {
  rl_transport_options options = {.host = host, .ca = ca};
  rl_transport_node *node;
  assert_int_equal(rl_tls_node_new(&node, &options, message, sizeof message), REDLOCK_OK);
  return node;
}

static rl_transport_stream *stream_to(rl_transport_node *node) {
  rl_transport_stream *stream = rl_tls_stream_new(node, message, sizeof message);
  assert_non_null(stream);
  return stream;
}

/* Returns a stream that has completed the handshake with |peer|. */
static rl_transport_stream *shaken(rl_transport_node *node, tls_peer *peer) {
  rl_transport_stream *stream = stream_to(node);
  assert_int_equal(tls_peer_shake(peer, stream, 16384, message, sizeof message), 1);
  return stream;
}

/* A node, a peer and a connection between them. */
typedef struct connection {
  rl_transport_node *node;
  rl_transport_stream *stream;
  tls_peer peer;
} connection;

static void connection_open(connection *self, int version) {
  self->node = node_for("redis.test");
  tls_peer_start(&self->peer, &ours, version);
  self->stream = shaken(self->node, &self->peer);
}

static void connection_close(connection *self) {
  rl_tls_stream_free(self->stream);
  tls_peer_end(&self->peer);
  rl_tls_node_free(self->node);
}

static long read_some(connection *self, void *bytes, size_t size) {
  return rl_tls_stream_read(self->stream, bytes, size, message, sizeof message);
}

/* Reads |length| bytes that the peer has sent, in pieces of |piece| of the ciphertext. */
static void read_all(tls_peer *peer, rl_transport_stream *stream, unsigned char *bytes,
                     size_t length, size_t piece) {
  size_t got = 0;
  while (got < length) {
    long read = rl_tls_stream_read(stream, bytes + got, length - got, message, sizeof message);
    assert_true(read >= 0);
    got += (size_t)read;
    if (read == 0) {
      assert_false(rl_tls_stream_holds(stream));
      assert_true(tls_peer_give(peer, stream, piece) > 0);
    }
  }
}

static void talk(tls_peer *peer, rl_transport_stream *stream, size_t piece) {
  unsigned char bytes[64];
  assert_int_equal(rl_tls_stream_write(stream, "PING\r\n", 6, message, sizeof message), 6);
  tls_peer_take(peer, stream);
  assert_int_equal(tls_peer_read(peer, bytes, sizeof bytes), 6);
  assert_memory_equal(bytes, "PING\r\n", 6);
  tls_peer_write(peer, PONG, 7);
  read_all(peer, stream, bytes, 7, piece);
  assert_memory_equal(bytes, PONG, 7);
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

TEST(bytes_pass_in_pieces_of_any_size) {
  static const size_t pieces[] = {1, 2, 3, 4, 5, 6, 7, 100, 1000, 16384};
  rl_transport_node *node = node_for("redis.test");
  for (unsigned i = 0; i < COUNT_OF(pieces) * COUNT_OF(versions); i++) {
    tls_peer peer;
    size_t piece = pieces[i / COUNT_OF(versions)];
    tls_peer_start(&peer, &ours, versions[i % COUNT_OF(versions)]);
    rl_transport_stream *stream = stream_to(node);
    assert_int_equal(tls_peer_shake(&peer, stream, piece, message, sizeof message), 1);
    talk(&peer, stream, piece);
    rl_tls_stream_free(stream);
    tls_peer_end(&peer);
  }
  rl_tls_node_free(node);
}

/* More than a record, and more than one buffer of the caller. */
TEST(large_data_arrives_whole) {
  enum { MUCH = 200000 };
  static unsigned char sent[MUCH], got[MUCH];
  connection it;
  for (size_t i = 0; i < MUCH; i++) {
    sent[i] = (unsigned char)(i * 31 / 7);
  }
  connection_open(&it, TLS1_3_VERSION);
  tls_peer_write(&it.peer, sent, MUCH);
  for (size_t at = 0; at < MUCH;) {
    size_t room = MUCH - at < 1000 ? MUCH - at : 1000;
    long read = rl_tls_stream_read(it.stream, got + at, room, message, sizeof message);
    assert_true(read >= 0);
    at += (size_t)read;
    if (!rl_tls_stream_holds(it.stream) && at < MUCH) {
      assert_int_equal(rl_tls_stream_read(it.stream, got + at, 1, message, sizeof message), 0);
      (void)tls_peer_give(&it.peer, it.stream, 16384);
    }
  }
  assert_memory_equal(got, sent, MUCH);
  assert_int_equal(rl_tls_stream_write(it.stream, sent, 65536, message, sizeof message), 65536);
  tls_peer_take(&it.peer, it.stream);
  int total = 0;
  for (int read = 1; read > 0; total += read > 0 ? read : 0) {
    read = tls_peer_read(&it.peer, got, MUCH);
  }
  assert_int_equal(total, 65536);
  connection_close(&it);
}

/* The kernel takes some bytes at a time, and more are written in between. */
TEST(output_may_be_sent_in_parts) {
  enum { PART = 3000, PARTS = 40 };
  static unsigned char sent[PART * PARTS], got[PART * PARTS];
  connection it;
  size_t length;
  int total = 0;
  for (size_t i = 0; i < sizeof sent; i++) {
    sent[i] = (unsigned char)(i * 17 / 5);
  }
  connection_open(&it, TLS1_3_VERSION);
  for (unsigned i = 0; i < PARTS; i++) {
    assert_int_equal(
        rl_tls_stream_write(it.stream, sent + (size_t)i * PART, PART, message, sizeof message),
        PART);
    const void *bytes = rl_tls_stream_output(it.stream, &length);
    assert_int_equal(BIO_write(it.peer.in, bytes, (int)(length / 2)), length / 2);
    rl_tls_stream_sent(it.stream, length / 2);
  }
  tls_peer_take(&it.peer, it.stream);
  for (int read = 1; read > 0; total += read > 0 ? read : 0) {
    read = tls_peer_read(&it.peer, got + total, sizeof got - (size_t)total);
  }
  assert_int_equal(total, sizeof sent);
  assert_memory_equal(got, sent, sizeof sent);
  connection_close(&it);
}

typedef struct refusal {
  const char *host;
  int from_days, until_days;
  const char *message;
} refusal;

TEST(invalid_certificate_is_refused) {
  static const refusal refusals[] = {
      {"redis.test", -1, 2, NULL},
      {"127.0.0.1", -1, 2, NULL},
      {"::1", -1, 2, NULL},
      {"REDIS.test.", -1, 2, NULL},
      {"other.test", -1, 2,
       "hostname mismatch ('redis.test' by 'redis.test'); expected is other.test"},
      {"127.0.0.2", -1, 2,
       "IP address mismatch ('redis.test' by 'redis.test'); expected is 127.0.0.2"},
      {"redis.test", -3, -1, "certificate has expired ('redis.test' by 'redis.test' until 20"},
      {"redis.test", 1, 3, "certificate is not yet valid ('redis.test' by 'redis.test' from 20"},
  };
  for (unsigned i = 0; i < COUNT_OF(refusals) * COUNT_OF(versions); i++) {
    const refusal *row = &refusals[i / COUNT_OF(versions)];
    tls_certificate one = tls_certificate_make("redis.test", row->from_days, row->until_days);
    tls_peer peer;
    tls_certificate_write(&one, ca);
    tls_peer_start(&peer, &one, versions[i % COUNT_OF(versions)]);
    rl_transport_node *node = node_for(row->host);
    rl_transport_stream *stream = stream_to(node);
    int ended = tls_peer_shake(&peer, stream, 16384, message, sizeof message);
    assert_int_equal(ended, row->message == NULL ? 1 : -1);
    if (row->message != NULL) {
      assert_non_null(strstr(message, "its certificate is invalid: "));
      assert_non_null(strstr(message, row->message));
    }
    rl_tls_stream_free(stream);
    rl_tls_node_free(node);
    tls_peer_end(&peer);
    tls_certificate_free(&one);
  }
  tls_certificate_write(&ours, ca);
}

/* Signed by another CA, and by a CA that the system does not know. */
TEST(certificate_of_an_unknown_ca_is_refused) {
  tls_certificate other = tls_certificate_make("redis.test", -1, 2);
  rl_transport_options options = {.host = "redis.test"};
  tls_peer peer;
  for (unsigned i = 0; i < 2; i++) {
    rl_transport_node *node;
    options.ca = i == 0 ? ca : NULL;
    assert_int_equal(rl_tls_node_new(&node, &options, message, sizeof message), REDLOCK_OK);
    tls_peer_start(&peer, &other, TLS1_3_VERSION);
    rl_transport_stream *stream = stream_to(node);
    assert_int_equal(tls_peer_shake(&peer, stream, 16384, message, sizeof message), -1);
    assert_non_null(strstr(message, "self-signed"));
    assert_int_equal(strstr(message, "set tls_ca to the CA of the node") != NULL, i == 1);
    rl_tls_stream_free(stream);
    tls_peer_end(&peer);
    options.unverified = true;
    options.ca = NULL;
    rl_tls_node_free(node);
    assert_int_equal(rl_tls_node_new(&node, &options, message, sizeof message), REDLOCK_OK);
    tls_peer_start(&peer, &other, TLS1_3_VERSION);
    rl_tls_stream_free(shaken(node, &peer));
    tls_peer_end(&peer);
    rl_tls_node_free(node);
    options.unverified = false;
  }
  tls_certificate_free(&other);
}

TEST(session_is_resumed_unless_it_is_forgotten) {
  for (unsigned i = 0; i < COUNT_OF(versions); i++) {
    rl_transport_node *node = node_for("redis.test");
    tls_peer peer;
    tls_peer_start(&peer, &ours, versions[i]);
    for (unsigned k = 0; k < 4; k++) {
      rl_transport_stream *stream = shaken(node, &peer);
      assert_int_equal(SSL_session_reused(stream->ssl), k == 1 || k == 3);
      talk(&peer, stream, 16384); /* Tickets of TLS 1.3 come after the handshake. */
      rl_tls_stream_free(stream);
      tls_peer_next(&peer);
      if (k == 1) {
        rl_tls_node_forget_session(node);
      }
    }
    tls_peer_end(&peer);
    rl_tls_node_free(node);
  }
}

TEST(farewell_is_sent) {
  connection it;
  char bytes[16];
  connection_open(&it, TLS1_3_VERSION);
  rl_tls_stream_finish(it.stream);
  tls_peer_take(&it.peer, it.stream);
  assert_int_equal(tls_peer_read(&it.peer, bytes, sizeof bytes), 0);
  assert_int_equal(SSL_get_shutdown(it.peer.ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
  connection_close(&it);
}

/* Data before the farewell is read, and the end is reported without more input. */
TEST(farewell_is_received) {
  connection it;
  char bytes[16];
  connection_open(&it, TLS1_3_VERSION);
  tls_peer_write(&it.peer, PONG, 7);
  (void)SSL_shutdown(it.peer.ssl);
  (void)tls_peer_give(&it.peer, it.stream, 16384);
  assert_int_equal(read_some(&it, bytes, sizeof bytes), 7);
  assert_true(rl_tls_stream_holds(it.stream));
  assert_int_equal(read_some(&it, bytes, sizeof bytes), -1);
  assert_string_equal(message, "the node closed the connection");
  assert_int_equal(rl_tls_stream_write(it.stream, "x", 1, message, sizeof message), -1);
  connection_close(&it);
}

TEST(peer_may_update_keys_often) {
  connection it;
  char bytes[16];
  size_t length;
  connection_open(&it, TLS1_3_VERSION);
  for (unsigned i = 0; i < 1000; i++) {
    assert_int_equal(SSL_key_update(it.peer.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_do_handshake(it.peer.ssl), 1);
    (void)tls_peer_give(&it.peer, it.stream, 16384);
    assert_int_equal(read_some(&it, bytes, sizeof bytes), 0);
    (void)rl_tls_stream_output(it.stream, &length);
    assert_true(length <= RL_TLS_OUTPUT_MAX);
  }
  talk(&it.peer, it.stream, 16384);
  connection_close(&it);
}

TEST(renegotiation_is_refused) {
  connection it;
  char bytes[16];
  connection_open(&it, TLS1_2_VERSION);
  assert_int_equal(SSL_renegotiate(it.peer.ssl), 1);
  (void)SSL_do_handshake(it.peer.ssl);
  (void)tls_peer_give(&it.peer, it.stream, 16384);
  /* The connection continues without it. */
  assert_int_equal(read_some(&it, bytes, sizeof bytes), 0);
  assert_int_equal(SSL_is_init_finished(it.stream->ssl), 1);
  connection_close(&it);
  ERR_clear_error();
}

/* Each byte that the peer sends, flipped. */
TEST(flipped_byte_ends_the_connection_with_a_message) {
  rl_transport_node *node = node_for("redis.test");
  unsigned refused = 0, taken = 0;
  for (size_t at = 0; at < 4000; at++) {
    tls_peer peer;
    size_t seen = 0, got = 1;
    int ended;
    bool over = false;
    tls_peer_start(&peer, &ours, versions[at % 2]);
    rl_tls_node_forget_session(node);
    rl_transport_stream *stream = stream_to(node);
    message[0] = '\0';
    ended = rl_tls_stream_shake(stream, message, sizeof message);
    while (ended == 0 && got > 0) {
      tls_peer_take(&peer, stream);
      got = tls_peer_give(&peer, stream, 16384);
      if (at / 2 >= seen && at / 2 < seen + got) {
        stream->input[stream->input_end - got + (at / 2 - seen)] ^= 0x55;
        over = true;
      }
      seen += got;
      ended = rl_tls_stream_shake(stream, message, sizeof message);
    }
    refused += over && ended < 0;
    taken += over && ended > 0;
    assert_true(ended >= 0 || message[0] != '\0');
    rl_tls_stream_free(stream);
    tls_peer_end(&peer);
    if (at / 2 >= seen) {
      break; /* each byte was flipped */
    }
  }
  /* A few bytes do not matter: the version of a record, the age of a ticket. */
  assert_true(refused > 100);
  assert_true(taken < refused / 10);
  rl_tls_node_free(node);
}

TEST(reply_without_tls_is_reported) {
  static const char *const answers[] = {"-ERR unknown command\r\n",
                                        "HTTP/1.1 400 Bad Request\r\n\r\n",
                                        "SSH-2.0-OpenSSH_9.2\r\n", "+OK\r\n$3\r\nabc\r\n"};
  rl_transport_node *node = node_for("redis.test");
  for (unsigned i = 0; i < COUNT_OF(answers); i++) {
    size_t room;
    rl_transport_stream *stream = stream_to(node);
    assert_int_equal(rl_tls_stream_shake(stream, message, sizeof message), 0);
    memcpy(rl_tls_stream_room(stream, &room), answers[i], strlen(answers[i]));
    rl_tls_stream_fed(stream, strlen(answers[i]));
    assert_int_equal(rl_tls_stream_shake(stream, message, sizeof message), -1);
    assert_non_null(strstr(message, "not TLS; is this a TLS port?"));
    rl_tls_stream_free(stream);
  }
  rl_tls_node_free(node);
}

/* Errors of the program are ignored, and none is left to it. */
TEST(error_queue_is_left_empty) {
  rl_transport_node *node = node_for("other.test");
  tls_peer peer;
  char bytes[16];
  tls_peer_start(&peer, &ours, TLS1_3_VERSION);
  rl_transport_stream *stream = stream_to(node);
  ERR_put_error(ERR_LIB_USER, 0, 1, "test", 1);
  assert_int_equal(tls_peer_shake(&peer, stream, 16384, message, sizeof message), -1);
  assert_non_null(strstr(message, "hostname mismatch"));
  assert_true(ERR_peek_error() == 0);
  assert_int_equal(rl_tls_stream_read(stream, bytes, sizeof bytes, message, sizeof message), -1);
  rl_tls_stream_free(stream);
  rl_tls_node_free(node);
  tls_peer_end(&peer);

  connection it;
  connection_open(&it, TLS1_3_VERSION);
  ERR_put_error(ERR_LIB_USER, 0, 1, "test", 1);
  assert_int_equal(read_some(&it, bytes, sizeof bytes), 0);
  ERR_put_error(ERR_LIB_USER, 0, 1, "test", 1);
  assert_int_equal(rl_tls_stream_write(it.stream, "x", 1, message, sizeof message), 1);
  connection_close(&it);
}

/* The certificate is valid for two days. */
TEST(certificate_returns_its_remaining_validity) {
  const redlock_duration day_us = 86400 * SECONDS;
  connection it;
  connection_open(&it, TLS1_2_VERSION);
  redlock_duration left_us = rl_tls_stream_certificate(it.stream);
  assert_true(left_us > day_us && left_us <= 2 * day_us);
  rl_tls_stream_free(it.stream);
  rl_tls_node_forget_session(it.node);
  it.stream = stream_to(it.node);
  assert_true(rl_tls_stream_certificate(it.stream) == REDLOCK_NEVER); /* before the handshake */
  connection_close(&it);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .end = end});
}
