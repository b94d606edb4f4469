/*
 * One connection with TLS, to a server in memory.
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
  (void)state;
  assert_true(scratch_open(&scratch, "rl_tls_stream"));
  ours = tls_certificate_make("redis.test", -1, 2);
  (void)snprintf(ca, sizeof ca, "%s/ca.pem", scratch.path);
  tls_certificate_write(&ours, ca);
  return 0;
}

static int end(void **state) {
  (void)state;
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

/* A stream that has shaken hands with |peer|. */
static rl_transport_stream *shaken(rl_transport_node *node, tls_peer *peer) {
  rl_transport_stream *stream = stream_to(node);
  assert_int_equal(tls_peer_shake(peer, stream, 16384, message, sizeof message), 1);
  return stream;
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

static void bytes_come_and_go_however_they_are_cut(void **state) {
  (void)state;
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

/* More than a record, and more than the caller has room for at once. */
static void much_comes_whole(void **state) {
  (void)state;
  enum { MUCH = 200000 };
  static unsigned char sent[MUCH], got[MUCH];
  rl_transport_node *node = node_for("redis.test");
  tls_peer peer;
  for (size_t i = 0; i < MUCH; i++) {
    sent[i] = (unsigned char)(i * 31 / 7);
  }
  tls_peer_start(&peer, &ours, TLS1_3_VERSION);
  rl_transport_stream *stream = shaken(node, &peer);
  tls_peer_write(&peer, sent, MUCH);
  for (size_t at = 0; at < MUCH;) {
    size_t room = MUCH - at < 1000 ? MUCH - at : 1000;
    long read = rl_tls_stream_read(stream, got + at, room, message, sizeof message);
    assert_true(read >= 0);
    at += (size_t)read;
    if (!rl_tls_stream_holds(stream) && at < MUCH) {
      assert_int_equal(rl_tls_stream_read(stream, got + at, 1, message, sizeof message), 0);
      (void)tls_peer_give(&peer, stream, 16384);
    }
  }
  assert_memory_equal(got, sent, MUCH);
  assert_int_equal(rl_tls_stream_write(stream, sent, 65536, message, sizeof message), 65536);
  tls_peer_take(&peer, stream);
  int total = 0;
  for (int read = 1; read > 0; total += read > 0 ? read : 0) {
    read = tls_peer_read(&peer, got, MUCH);
  }
  assert_int_equal(total, 65536);
  rl_tls_stream_free(stream);
  tls_peer_end(&peer);
  rl_tls_node_free(node);
}

/* The kernel takes what it likes, and in between there is more. */
static void what_is_sent_in_parts_arrives_whole(void **state) {
  (void)state;
  enum { PART = 3000, PARTS = 40 };
  static unsigned char sent[PART * PARTS], got[PART * PARTS];
  rl_transport_node *node = node_for("redis.test");
  tls_peer peer;
  size_t length;
  int total = 0;
  for (size_t i = 0; i < sizeof sent; i++) {
    sent[i] = (unsigned char)(i * 17 / 5);
  }
  tls_peer_start(&peer, &ours, TLS1_3_VERSION);
  rl_transport_stream *stream = shaken(node, &peer);
  for (unsigned i = 0; i < PARTS; i++) {
    assert_int_equal(
        rl_tls_stream_write(stream, sent + (size_t)i * PART, PART, message, sizeof message), PART);
    const void *bytes = rl_tls_stream_output(stream, &length);
    assert_int_equal(BIO_write(peer.in, bytes, (int)(length / 2)), length / 2);
    rl_tls_stream_sent(stream, length / 2);
  }
  tls_peer_take(&peer, stream);
  for (int read = 1; read > 0; total += read > 0 ? read : 0) {
    read = tls_peer_read(&peer, got + total, sizeof got - (size_t)total);
  }
  assert_int_equal(total, sizeof sent);
  assert_memory_equal(got, sent, sizeof sent);
  rl_tls_stream_free(stream);
  tls_peer_end(&peer);
  rl_tls_node_free(node);
}

typedef struct refusal {
  const char *host;
  int from_days, until_days;
  const char *said;
} refusal;

static void a_certificate_that_is_no_good_is_refused(void **state) {
  (void)state;
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
    assert_int_equal(ended, row->said == NULL ? 1 : -1);
    if (row->said != NULL) {
      assert_non_null(strstr(message, "its certificate is invalid: "));
      assert_non_null(strstr(message, row->said));
    }
    rl_tls_stream_free(stream);
    rl_tls_node_free(node);
    tls_peer_end(&peer);
    tls_certificate_free(&one);
  }
  tls_certificate_write(&ours, ca);
}

/* Whom nobody vouches for: the CA is another, and is none of the system's. */
static void a_certificate_that_nobody_signed_is_refused(void **state) {
  (void)state;
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

static void a_session_is_resumed_unless_it_is_forgotten(void **state) {
  (void)state;
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

static void a_farewell_is_heard_and_said(void **state) {
  (void)state;
  char bytes[16];
  rl_transport_node *node = node_for("redis.test");
  tls_peer peer;
  tls_peer_start(&peer, &ours, TLS1_3_VERSION);
  rl_transport_stream *stream = shaken(node, &peer);
  rl_tls_stream_finish(stream);
  tls_peer_take(&peer, stream);
  assert_int_equal(tls_peer_read(&peer, bytes, sizeof bytes), 0);
  assert_int_equal(SSL_get_shutdown(peer.ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
  rl_tls_stream_free(stream);
  tls_peer_next(&peer);

  stream = shaken(node, &peer);
  tls_peer_write(&peer, PONG, 7);
  (void)SSL_shutdown(peer.ssl);
  (void)tls_peer_give(&peer, stream, 16384);
  /* What came before it counts, and it is told of without waiting for more. */
  assert_int_equal(rl_tls_stream_read(stream, bytes, sizeof bytes, message, sizeof message), 7);
  assert_true(rl_tls_stream_holds(stream));
  assert_int_equal(rl_tls_stream_read(stream, bytes, sizeof bytes, message, sizeof message), -1);
  assert_string_equal(message, "the node closed the connection");
  assert_int_equal(rl_tls_stream_write(stream, "x", 1, message, sizeof message), -1);
  rl_tls_stream_free(stream);
  tls_peer_end(&peer);
  rl_tls_node_free(node);
}

static void keys_are_updated_as_often_as_the_peer_likes(void **state) {
  (void)state;
  rl_transport_node *node = node_for("redis.test");
  tls_peer peer;
  char bytes[16];
  size_t length;
  tls_peer_start(&peer, &ours, TLS1_3_VERSION);
  rl_transport_stream *stream = shaken(node, &peer);
  for (unsigned i = 0; i < 1000; i++) {
    assert_int_equal(SSL_key_update(peer.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_do_handshake(peer.ssl), 1);
    (void)tls_peer_give(&peer, stream, 16384);
    assert_int_equal(rl_tls_stream_read(stream, bytes, sizeof bytes, message, sizeof message), 0);
    (void)rl_tls_stream_output(stream, &length);
    assert_true(length <= RL_TLS_OUTPUT_MAX);
  }
  talk(&peer, stream, 16384);
  rl_tls_stream_free(stream);
  tls_peer_end(&peer);
  rl_tls_node_free(node);
}

static void a_new_handshake_amid_the_connection_is_refused(void **state) {
  (void)state;
  rl_transport_node *node = node_for("redis.test");
  tls_peer peer;
  char bytes[16];
  tls_peer_start(&peer, &ours, TLS1_2_VERSION);
  rl_transport_stream *stream = shaken(node, &peer);
  assert_int_equal(SSL_renegotiate(peer.ssl), 1);
  (void)SSL_do_handshake(peer.ssl);
  (void)tls_peer_give(&peer, stream, 16384);
  /* It is not begun, and does no harm. */
  assert_int_equal(rl_tls_stream_read(stream, bytes, sizeof bytes, message, sizeof message), 0);
  assert_int_equal(SSL_is_init_finished(stream->ssl), 1);
  rl_tls_stream_free(stream);
  tls_peer_end(&peer);
  rl_tls_node_free(node);
  ERR_clear_error();
}

/* Every byte that the peer sends in a handshake and after it, turned over. */
static void a_byte_that_is_wrong_ends_the_connection_with_a_sentence(void **state) {
  (void)state;
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
      break; /* All of them were. */
    }
  }
  /* A few bytes say nothing of use: the version of a record, the age of a ticket, a wish that was not ours. */
  assert_true(refused > 100);
  assert_true(taken < refused / 10);
  rl_tls_node_free(node);
}

static void what_is_no_tls_is_told(void **state) {
  (void)state;
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

/* The program's own errors are not ours, and ours are not left to it. */
static void the_queue_of_errors_is_left_empty(void **state) {
  (void)state;
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

  node = node_for("redis.test");
  tls_peer_next(&peer);
  stream = shaken(node, &peer);
  ERR_put_error(ERR_LIB_USER, 0, 1, "test", 1);
  assert_true(rl_tls_stream_read(stream, bytes, sizeof bytes, message, sizeof message) == 0);
  ERR_put_error(ERR_LIB_USER, 0, 1, "test", 1);
  assert_int_equal(rl_tls_stream_write(stream, "x", 1, message, sizeof message), 1);
  rl_tls_stream_free(stream);
  tls_peer_end(&peer);
  rl_tls_node_free(node);
}

/* It was made to last for two days. */
static void it_tells_for_how_long_the_certificate_is_valid(void **state) {
  (void)state;
  const redlock_duration day_us = 86400 * SECONDS;
  rl_transport_node *node = node_for("redis.test");
  tls_peer peer;
  tls_peer_start(&peer, &ours, TLS1_2_VERSION);
  rl_transport_stream *stream = stream_to(node);
  assert_true(rl_tls_stream_certificate(stream) == REDLOCK_NEVER); /* It has not been seen yet. */
  rl_tls_stream_free(stream);
  stream = shaken(node, &peer);
  redlock_duration left_us = rl_tls_stream_certificate(stream);
  assert_true(left_us > day_us && left_us <= 2 * day_us);
  rl_tls_stream_free(stream);
  tls_peer_end(&peer);
  rl_tls_node_free(node);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_come_and_go_however_they_are_cut),
      cmocka_unit_test(much_comes_whole),
      cmocka_unit_test(what_is_sent_in_parts_arrives_whole),
      cmocka_unit_test(a_certificate_that_is_no_good_is_refused),
      cmocka_unit_test(a_certificate_that_nobody_signed_is_refused),
      cmocka_unit_test(a_session_is_resumed_unless_it_is_forgotten),
      cmocka_unit_test(a_farewell_is_heard_and_said),
      cmocka_unit_test(keys_are_updated_as_often_as_the_peer_likes),
      cmocka_unit_test(a_new_handshake_amid_the_connection_is_refused),
      cmocka_unit_test(a_byte_that_is_wrong_ends_the_connection_with_a_sentence),
      cmocka_unit_test(what_is_no_tls_is_told),
      cmocka_unit_test(the_queue_of_errors_is_left_empty),
      cmocka_unit_test(it_tells_for_how_long_the_certificate_is_valid),
  };
  return cmocka_run_group_tests(tests, start, end);
}
