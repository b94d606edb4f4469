/*
 * Peers that speak TLS badly, slowly, endlessly or not at all: they cost little, and calls report
 * the reason.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/err.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "resp.h"
#include "support.h"
#include "tls_farm.h"
#include "tls_hostile.h"

#define MEMORY_MAX ((size_t)6 << 20)
#define NODE_TIMEOUT_US MS(1000) /* for a silent peer */
/* After 3 s a handshake ends, and no call waits for its node. */
#define SOON_US MS(2000)
#define TURNS_MAX 5000 /* fewer than a loop without sleep makes */
/*
 * A peer that computes on a slow machine takes longer, and its connection may end for that reason:
 * then try again.
 */
#define TRIES 10

static tls_farm two; /* healthy nodes beside the hostile one */

static int start(void **state) {
  tls_farm_start(&two, 2);
  return 0;
}

static int end(void **state) {
  tls_farm_end(&two);
  return 0;
}

/* ----------------------------------------------------------------------------------- handshakes */

static void raw(int fd, const char *bytes, size_t length) {
  if (send(fd, bytes, length, MSG_NOSIGNAL) != (ssize_t)length) {
    _exit(0);
  }
}
#define RAW(fd, text) raw(fd, text, sizeof(text) - 1)

static void wait_for_hello(int fd) {
  char bytes[2048];
  if (recv(fd, bytes, sizeof bytes, 0) <= 0) {
    _exit(0);
  }
}

static void is_silent(int fd, SSL_CTX *context) {
  tls_hostile_drain(fd);
}

static void closes_at_once(int fd, SSL_CTX *context) {
  (void)shutdown(fd, SHUT_WR);
  tls_hostile_drain(fd);
}

static void resets_at_once(int fd, SSL_CTX *context) {
  tls_hostile_reset(fd);
}

static void resets_after_hello(int fd, SSL_CTX *context) {
  wait_for_hello(fd);
  tls_hostile_reset(fd);
}

static void greets_as_ssh(int fd, SSL_CTX *context) {
  RAW(fd, "SSH-2.0-OpenSSH_9.2\r\n");
  tls_hostile_drain(fd);
}

static void greets_as_redis(int fd, SSL_CTX *context) {
  RAW(fd, "-ERR max number of clients reached\r\n");
  (void)shutdown(fd, SHUT_WR);
  tls_hostile_drain(fd);
}

/* Peers that wait for the hello and send bytes, once or for ever. */
#define ANSWERS(name, text)                                                                        \
  static void name(int fd, SSL_CTX *context) {                                                     \
    (void)context;                                                                                 \
    wait_for_hello(fd);                                                                            \
    RAW(fd, text);                                                                                 \
    tls_hostile_drain(fd);                                                                         \
  }
#define FLOODS(name, text)                                                                         \
  static void name(int fd, SSL_CTX *context) {                                                     \
    (void)context;                                                                                 \
    wait_for_hello(fd);                                                                            \
    for (;;) {                                                                                     \
      RAW(fd, text);                                                                               \
    }                                                                                              \
  }

ANSWERS(answers_as_http, "HTTP/1.1 400 Bad Request\r\n\r\n")
ANSWERS(alerts_handshake_failure, "\x15\x03\x03\x00\x02\x02\x28")
ANSWERS(alerts_unrecognized_name, "\x15\x03\x03\x00\x02\x02\x70")
ANSWERS(sends_farewell_to_hello, "\x15\x03\x03\x00\x02\x01\x00")
ANSWERS(announces_a_long_record, "\x16\x03\x03\xff\xff")
FLOODS(warns_without_end, "\x15\x03\x03\x00\x02\x01\x5a")
FLOODS(sends_empty_records, "\x16\x03\x03\x00\x00")
FLOODS(changes_ciphers_without_end, "\x14\x03\x03\x00\x01\x01")

static void answers_zeros(int fd, SSL_CTX *context) {
  static const char zeros[4096];
  for (;;) {
    raw(fd, zeros, sizeof zeros);
  }
}

static void announces_a_long_message(int fd, SSL_CTX *context) {
  char bytes[5 + 16384] = "\x16\x03\x03\x40\x00\x02\xff\xff\xff";
  wait_for_hello(fd);
  for (;;) {
    raw(fd, bytes, sizeof bytes);
    memset(bytes + 5, 'x', 4);
  }
}

/* Reads the hello and returns a BIO with the answer of a good server. */
static BIO *answer_of_good_server(int fd, SSL_CTX *context) {
  BIO *in = BIO_new(BIO_s_mem());
  BIO *out = BIO_new(BIO_s_mem());
  SSL *ssl = SSL_new(context);
  char bytes[2048];
  SSL_set_bio(ssl, in, out);
  ssize_t got = recv(fd, bytes, sizeof bytes, 0);
  (void)BIO_write(in, bytes, (int)got);
  (void)SSL_accept(ssl);
  return out;
}

static void is_slow(int fd, SSL_CTX *context) {
  BIO *out = answer_of_good_server(fd, context);
  char byte;
  while (BIO_read(out, &byte, 1) == 1) {
    raw(fd, &byte, 1);
    (void)poll(NULL, 0, 100);
  }
  tls_hostile_drain(fd);
}

static void stops_during_the_handshake(int fd, SSL_CTX *context) {
  char bytes[300];
  int length = BIO_read(answer_of_good_server(fd, context), bytes, sizeof bytes);
  raw(fd, bytes, (size_t)length);
  (void)shutdown(fd, SHUT_WR);
  tls_hostile_drain(fd);
}

static void has_a_long_chain(int fd, SSL_CTX *context) {
  X509 *certificate = SSL_CTX_get0_certificate(context);
  for (unsigned i = 0; i < 2000; i++) {
    (void)SSL_CTX_add1_chain_cert(context, certificate);
  }
  tls_hostile_answer(tls_hostile_accept(fd, context), 1000);
}

/* -------------------------------------------------------------------------- after the handshake */

static void is_mute(int fd, SSL_CTX *context) {
  (void)tls_hostile_accept(fd, context);
  tls_hostile_drain(fd);
}

static void sends_farewell(int fd, SSL_CTX *context) {
  SSL *ssl = tls_hostile_accept(fd, context);
  (void)SSL_shutdown(ssl);
  tls_hostile_drain(fd);
}

static void sends_farewell_during_a_reply(int fd, SSL_CTX *context) {
  SSL *ssl = tls_hostile_accept(fd, context);
  tls_hostile_answer(ssl, 1);
  (void)SSL_write(ssl, "+O", 2);
  (void)SSL_shutdown(ssl);
  tls_hostile_drain(fd);
}

static void ends_without_farewell(int fd, SSL_CTX *context) {
  SSL *ssl = tls_hostile_accept(fd, context);
  tls_hostile_answer(ssl, 1);
  (void)shutdown(fd, SHUT_WR);
  tls_hostile_drain(fd);
}

static void resets_after_the_handshake(int fd, SSL_CTX *context) {
  (void)tls_hostile_accept(fd, context);
  tls_hostile_reset(fd);
}

static void resets_during_a_record(int fd, SSL_CTX *context) {
  SSL *ssl = tls_hostile_accept(fd, context);
  tls_hostile_answer(ssl, 1);
  RAW(fd, "\x17\x03\x03\x00\x40half");
  (void)poll(NULL, 0, 50); /* A reset may overtake sent bytes. */
  tls_hostile_reset(fd);
}

#define SENDS_AFTER_HANDSHAKE(name, text)                                                          \
  static void name(int fd, SSL_CTX *context) {                                                     \
    tls_hostile_answer(tls_hostile_accept(fd, context), 1);                                        \
    RAW(fd, text);                                                                                 \
    tls_hostile_drain(fd);                                                                         \
  }

SENDS_AFTER_HANDSHAKE(sends_garbage, "+OK\r\n+OK\r\n+OK\r\n")
SENDS_AFTER_HANDSHAKE(sends_garbage_as_a_record,
                      "\x17\x03\x03\x00\x20garbage garbage garbage garbage.")

static void updates_keys(int fd, SSL_CTX *context, int kind) {
  (void)SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL *ssl = tls_hostile_accept(fd, context);
  tls_hostile_answer(ssl, 1);
  while (SSL_key_update(ssl, kind) == 1 && SSL_do_handshake(ssl) == 1) {
  }
}

static void updates_keys_without_end(int fd, SSL_CTX *context) {
  updates_keys(fd, context, SSL_KEY_UPDATE_NOT_REQUESTED);
}

static void requests_key_updates_without_end(int fd, SSL_CTX *context) {
  updates_keys(fd, context, SSL_KEY_UPDATE_REQUESTED);
}

static void renegotiates_without_end(int fd, SSL_CTX *context) {
  (void)SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  SSL *ssl = tls_hostile_accept(fd, context);
  tls_hostile_answer(ssl, 1);
  for (;;) {
    if (SSL_renegotiate(ssl) != 1 || SSL_do_handshake(ssl) != 1) {
      break;
    }
  }
  tls_hostile_drain(fd);
}

static void sends_a_thousand_tickets(int fd, SSL_CTX *context) {
  unsigned char keys[80];
  assert_int_equal(getrandom(keys, sizeof keys, 0), sizeof keys);
  /* Keys of this connection alone: a resumed session would get one ticket. */
  (void)SSL_CTX_set_tlsext_ticket_keys(context, keys, sizeof keys);
  (void)SSL_CTX_set_num_tickets(context, 1000);
  SSL *ssl = tls_hostile_accept(fd, context);
  (void)ssl;
  tls_hostile_drain(fd);
}

static void reads_nothing(int fd, SSL_CTX *context) {
  SSL *ssl = tls_hostile_accept(fd, context);
  tls_hostile_answer(ssl, 1);
  (void)pause();
}

/* ---------------------------------------------------------------------------------------- cases */

typedef struct hostile_case {
  const char *name;
  tls_hostile_serve *serve;
  const char *message;
} hostile_case;

#define NO_TLS "the answer is not TLS; is this a TLS port?"
#define ONLY_KEYS "TLS ended: the node sends only keys or tickets"
#define CASE(serve, message)                                                                       \
  { #serve, serve, message }

static const hostile_case cases[] = {
    CASE(is_silent, "no connection over TLS within"),
    CASE(closes_at_once, "the node closed the connection during the TLS handshake"),
    CASE(resets_at_once, "reset"),
    CASE(resets_after_hello, "reset"),
    CASE(greets_as_ssh, NO_TLS),
    CASE(greets_as_redis, NO_TLS),
    CASE(answers_as_http, NO_TLS),
    CASE(answers_zeros, NO_TLS),
    CASE(alerts_handshake_failure, "no common cipher, or the node requires a client certificate"),
    CASE(alerts_unrecognized_name, "unrecognized name"),
    CASE(sends_farewell_to_hello, "the node closed the connection"),
    CASE(warns_without_end, "the TLS handshake failed: "),
    CASE(sends_empty_records, "the TLS handshake failed: "),
    CASE(changes_ciphers_without_end, "the TLS handshake failed: "),
    CASE(announces_a_long_message, "the TLS handshake failed: "),
    CASE(announces_a_long_record, "the TLS handshake failed: "),
    CASE(is_slow, "no connection over TLS within"),
    CASE(stops_during_the_handshake, "the node closed the connection during the TLS handshake"),
    CASE(has_a_long_chain, "the TLS handshake failed: "),
    CASE(is_mute, "no connection over TLS within"),
    CASE(sends_farewell, "the node closed the connection"),
    CASE(sends_farewell_during_a_reply, "the node closed the connection"),
    CASE(ends_without_farewell, "the node closed the connection"),
    CASE(resets_after_the_handshake, "reset"),
    CASE(resets_during_a_record, "reset"),
    CASE(sends_garbage, "TLS ended: the node's bytes are not TLS"),
    CASE(sends_garbage_as_a_record, "TLS ended: "),
    CASE(updates_keys_without_end, ONLY_KEYS),
    CASE(requests_key_updates_without_end, ONLY_KEYS),
    CASE(renegotiates_without_end, ONLY_KEYS),
    CASE(sends_a_thousand_tickets, ONLY_KEYS),
    CASE(reads_nothing, "no reply within"),
};
#define CASES (sizeof cases / sizeof cases[0])

static redlock_client *client_with(const tls_hostile *server, unsigned healthy,
                                   redlock_duration node_timeout_us) {
  char message[256];
  redlock_settings settings = {0};
  redlock_options options = once();
  options.node_timeout_us = node_timeout_us;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  settings.options = &options;
  redlock_client *client = tls_client(&two, &settings);
  assert_int_equal(redlock_client_add(client, server->address, message, sizeof message),
                   REDLOCK_OK);
  for (unsigned i = 0; i < healthy; i++) {
    assert_int_equal(
        redlock_client_add(client, two.farm.nodes[i].tls_address, message, sizeof message),
        REDLOCK_OK);
  }
  return client;
}

/* Returns true if the peer is silent until the attempt ends. */
static bool is_waited_for(const hostile_case *this) {
  return strstr(this->message, " within") != NULL;
}

/*
 * The only node is hostile: the call reports the reason at once, or after the time of one attempt.
 * Returns false if it took longer.
 */
static bool try_alone(const hostile_case *this, const tls_hostile *server) {
  unsigned descriptors = open_descriptors();
  redlock_duration node_timeout_us = is_waited_for(this) ? NODE_TIMEOUT_US : 300 * REDLOCK_SECONDS;
  redlock_client *client = client_with(server, 0, node_timeout_us);
  redlock_lock *lock = new_lock(client, "r");
  size_t before = allocated_bytes();
  redlock_time before_us = stopwatch();
  int result = redlock_lock_acquire(lock, NULL, NULL);
  redlock_duration took_us = redlock_now() - before_us;
  size_t grown = allocated_bytes() > before ? allocated_bytes() - before : 0;
  bool soon = took_us <= SOON_US + witness_delay_us(before_us);
  const char *message = redlock_lock_message(lock);
  bool reported = result == REDLOCK_E_UNAVAILABLE && strstr(message, this->message) != NULL &&
                  strstr(message, strchr(server->address, '1')) != NULL;
  if (!reported && took_us <= SOON_US) {
    fail_msg("%s: %s, %s", this->name, redlock_error_name(result), message);
  }
  if (grown > MEMORY_MAX) {
    fail_msg("%s: took %zu bytes", this->name, grown);
  }
  free_with_client(lock);
  assert_int_equal(open_descriptors(), descriptors);
  return soon && reported;
}

/* Runs |run| with a new server until it has not taken too long. */
static void try_each(bool (*run)(const hostile_case *this, const tls_hostile *server)) {
  for (size_t i = 0; i < CASES; i++) {
    bool soon = false;
    for (unsigned tries = 0; tries < TRIES && !soon; tries++) {
      tls_hostile server;
      tls_hostile_start(&server, two.certificates.path, cases[i].serve);
      soon = run(&cases[i], &server);
      tls_hostile_end(&server);
    }
    if (!soon) {
      fail_msg("%s: took too long %u times", cases[i].name, TRIES);
    }
  }
}

TEST(hostile_peer_is_reported_and_costs_little) {
  try_each(try_alone);
}

/*
 * The hostile node is one of three: no acquire waits for it, and the client sleeps in between.
 * Returns false if a pair took longer.
 */
static bool try_as_minority(const hostile_case *this, const tls_hostile *server) {
  redlock_client *client = client_with(server, 2, 300 * REDLOCK_SECONDS);
  size_t before = allocated_bytes();
  unsigned turns = 0;
  bool soon = true;
  for (unsigned i = 0; i < 3; i++) {
    redlock_time before_us = stopwatch();
    redlock_lock *lock = new_lock(client, "r");
    int result = redlock_lock_acquire(lock, NULL, NULL);
    result = result == REDLOCK_OK ? redlock_lock_release(lock) : result;
    redlock_duration took_us = redlock_now() - before_us;
    if (result != REDLOCK_OK && took_us <= SOON_US) {
      fail_msg("%s, %u: %s", this->name, i, redlock_lock_message(lock));
    }
    redlock_lock_free(lock);
    /* A first acquire waits four times as long as the majority took: a delay counts five times. */
    soon = soon && result == REDLOCK_OK && took_us <= SOON_US + 5 * witness_delay_us(before_us);
    for (redlock_time pause_us = redlock_now() + MS(40); redlock_now() < pause_us; turns++) {
      pump(client, 40);
    }
  }
  size_t grown = allocated_bytes() > before ? allocated_bytes() - before : 0;
  if (turns > TURNS_MAX || grown > MEMORY_MAX) {
    fail_msg("%s: %u turns, %zu bytes", this->name, turns, grown);
  }
  redlock_client_free(client);
  return soon;
}

TEST(hostile_minority_disturbs_no_call) {
  try_each(try_as_minority);
}

/* The output for such a peer has a limit. */
TEST(output_for_a_peer_that_reads_nothing_is_limited) {
  tls_hostile server;
  tls_hostile_start(&server, two.certificates.path, reads_nothing);
  redlock_client *client = client_with(&server, 2, NODE_TIMEOUT_US);
  size_t before = 0;
  for (unsigned i = 0; i < 2000; i++) {
    char name[400];
    memset(name, 'n', sizeof name);
    (void)snprintf(name, sizeof name, "%u", i);
    name[strlen(name)] = '-';
    name[sizeof name - 1] = '\0';
    redlock_lock *lock = held_lock(client, name);
    assert_ok(lock, redlock_lock_release(lock));
    redlock_lock_free(lock);
    before = i == 400 ? allocated_bytes() : before;
  }
  size_t grown = allocated_bytes() > before ? allocated_bytes() - before : 0;
  assert_between(grown, 0, MEMORY_MAX);
  redlock_client_free(client);
  tls_hostile_end(&server);
}

/* TLS 1.3: the peer rejects our certificate after our side of the handshake, and resets at once. */
static void refuses_and_resets(int fd, SSL_CTX *context) {
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  SSL *ssl = SSL_new(context);
  (void)SSL_set_fd(ssl, fd);
  (void)SSL_accept(ssl);
  (void)poll(NULL, 0, 20); /* Bytes after the handshake arrive unread. */
  (void)close(fd);
}

TEST(reset_does_not_hide_the_alert_before_it) {
  tls_hostile server;
  char message[256];
  tls_hostile_start(&server, two.certificates.path, refuses_and_resets);
  for (unsigned i = 0; i < 10; i++) {
    redlock_client *client = client_with(&server, 0, MS(5000));
    redlock_lock *lock = new_lock(client, "r");
    redlock_node_info info;
    assert_int_equal(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
    do {
      (void)poll(NULL, 0, (int)(i * 4)); /* more arrives at once in later rounds */
      pump(client, 5);
      assert_int_equal(redlock_client_node_info(client, 0, &info), REDLOCK_OK);
    } while (info.state == REDLOCK_NODE_CONNECTING || info.error == NULL);
    (void)snprintf(message, sizeof message, "%s", info.error);
    free_with_client(lock);
    assert_contains(message, "the node requires a client certificate");
  }
  tls_hostile_end(&server);
}

static void ends_after_a_pair(int fd, SSL_CTX *context) {
  SSL *ssl = tls_hostile_accept(fd, context);
  tls_hostile_answer(ssl, 3);  /* the handshake, SET, the script */
  (void)shutdown(fd, SHUT_WR); /* without a farewell */
  tls_hostile_drain(fd);
}

static void ends_after_a_pair_in_tls_1_2(int fd, SSL_CTX *context) {
  (void)SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  ends_after_a_pair(fd, context);
}

TEST(sessions_are_resumed) {
  static tls_hostile_serve *const ways[] = {ends_after_a_pair, ends_after_a_pair_in_tls_1_2};
  for (unsigned i = 0; i < 2; i++) {
    tls_hostile server;
    tls_hostile_start(&server, two.certificates.path, ways[i]);
    redlock_client *client = client_with(&server, 0, MS(5000));
    for (unsigned round = 0; round < 5; round++) {
      redlock_lock *lock = new_lock(client, "r");
      eventually(redlock_lock_acquire(lock, NULL, NULL) == REDLOCK_OK);
      (void)redlock_lock_release(lock);
      redlock_lock_free(lock);
      pump_until(client, server.counts->shaken >= round + 2);
    }
    assert_true(server.counts->shaken >= 6);
    print_message("%u handshakes, %u of them resumed\n", server.counts->shaken,
                  server.counts->resumed);
    eventually(server.counts->resumed + 2 >= server.counts->shaken);
    redlock_client_free(client);
    tls_hostile_end(&server);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .end = end});
}
