/*
 * What the connections to one node share: options, files, the expected certificate.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/err.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/rl_client.h"
#include "rl_test.h"
#include "scratch.h"
#include "tls_peer.h"

static scratch_directory scratch;
static tls_certificate ours, other;
static char ca[256], cert[256], key[256], locked[256], nowhere[256], empty[256];
static char message[256];

static int start(void **state) {
  assert_true(scratch_open(&scratch, "rl_tls_node"));
  ours = tls_certificate_make("redis.test", -1, 2);
  other = tls_certificate_make("other.test", -1, 2);
  (void)snprintf(ca, sizeof ca, "%s/ca.pem", scratch.path);
  (void)snprintf(cert, sizeof cert, "%s/cert.pem", scratch.path);
  (void)snprintf(key, sizeof key, "%s/key.pem", scratch.path);
  (void)snprintf(locked, sizeof locked, "%s/locked.pem", scratch.path);
  (void)snprintf(nowhere, sizeof nowhere, "%s/nowhere.pem", scratch.path);
  (void)snprintf(empty, sizeof empty, "%s/empty.pem", scratch.path);
  tls_certificate_write(&ours, ca);
  tls_certificate_write(&ours, cert);
  tls_certificate_write_key(&ours, key, NULL);
  tls_certificate_write_key(&ours, locked, "secret-word");
  fclose(fopen(empty, "w"));
  return 0;
}

static int end(void **state) {
  tls_certificate_free(&ours);
  tls_certificate_free(&other);
  scratch_close(&scratch);
  return 0;
}

static int try(const rl_transport_options *options) {
  rl_transport_node *node;
  message[0] = '\0';
  int error = rl_tls_node_new(&node, options, message, sizeof message);
  assert_int_equal(error == REDLOCK_OK, node != NULL);
  assert_int_equal(error == REDLOCK_OK, message[0] == '\0');
  assert_true(ERR_peek_error() == 0);
  assert_null(strstr(message, "secret-word"));
  if (node != NULL) {
    rl_tls_node_free(node);
  }
  return error;
}

TEST(valid_options_are_accepted) {
  const rl_transport_options good[] = {
      {.host = "h"},
      {.host = "h", .ca = ca},
      {.host = "h", .ca_path = scratch.path},
      {.host = "h", .ca = ca, .ca_path = scratch.path},
      {.host = "h", .cert = cert, .key = key},
      {.host = "h", .cert = cert, .key = locked, .key_password = "secret-word"},
      {.host = "", .server_name = "redis.test"},
      {.host = "h", .unverified = true},
      {.host = "", .unverified = true},
      {.host = "h", .min_version = REDLOCK_TLS_1_2},
      {.host = "h", .min_version = REDLOCK_TLS_1_3},
      {.host = "h", .ciphers = "ECDHE-RSA-AES256-GCM-SHA384"},
      {.host = "h", .ciphers = "TLS_AES_256_GCM_SHA384"},
      {.host = "h", .ciphers = "TLS_AES_256_GCM_SHA384:ECDHE-RSA-AES256-GCM-SHA384:HIGH"},
  };
  for (unsigned i = 0; i < COUNT_OF(good); i++) {
    assert_error(try(&good[i]), REDLOCK_OK);
  }
}

typedef struct mistake {
  rl_transport_options options;
  const char *message;
} mistake;

TEST(mistake_is_named) {
  static char many[2000];
  memset(many, 'A', sizeof many - 1);
  const mistake mistakes[] = {
      {{.host = "h", .ca = nowhere}, "nowhere.pem): No such file or directory"},
      {{.host = "h", .ca = empty}, "tls_ca cannot be read ("},
      {{.host = "h", .ca = scratch.path}, "tls_ca cannot be read ("},
      {{.host = "h", .ca = ""}, "tls_ca cannot be read ("},
      {{.host = "h", .ca_path = nowhere}, "tls_ca_path is not a directory"},
      {{.host = "h", .ca_path = ca}, "tls_ca_path is not a directory"},
      {{.host = "h", .crl = nowhere}, "nowhere.pem): No such file or directory"},
      {{.host = "h", .crl = cert}, "tls_crl cannot be read ("},
      {{.host = "h", .cert = cert}, "set both of tls_cert and tls_key"},
      {{.host = "h", .key = key}, "set both of tls_cert and tls_key"},
      {{.host = "h", .key_password = "secret-word"}, "tls_key_password needs tls_key"},
      {{.host = "h", .cert = nowhere, .key = key}, "nowhere.pem): No such file"},
      {{.host = "h", .cert = empty, .key = key}, "tls_cert cannot be read ("},
      {{.host = "h", .cert = cert, .key = nowhere}, "tls_key cannot be read"},
      {{.host = "h", .cert = cert, .key = locked}, "needs a tls_key_password"},
      {{.host = "h", .cert = cert, .key = locked, .key_password = "wrong"},
       "tls_key cannot be read with its password"},
      {{.host = ""}, "needs tls_server_name"},
      {{.host = "h", .unverified = true, .ca = ca}, "excludes tls_ca"},
      {{.host = "h", .ciphers = "NO-SUCH-CIPHER"}, "tls_ciphers has no cipher"},
      {{.host = "h", .ciphers = "TLS_NO_SUCH"}, "tls_ciphers has no cipher"},
      {{.host = "h", .ciphers = ":,"}, "tls_ciphers has no cipher"},
      {{.host = "h", .ciphers = many}, "tls_ciphers has no cipher"},
  };
  for (unsigned i = 0; i < COUNT_OF(mistakes); i++) {
    assert_error(try(&mistakes[i].options), REDLOCK_E_INVALID);
    if (strstr(message, mistakes[i].message) == NULL) {
      fail_msg("case %u: %s", i, message);
    }
  }
  tls_certificate_write_key(&other, key, NULL);
  rl_transport_options mixed = {.host = "h", .cert = cert, .key = key};
  assert_error(try(&mixed), REDLOCK_E_INVALID);
  assert_non_null(strstr(message, "tls_key is not the key of tls_cert"));
  tls_certificate_write_key(&ours, key, NULL);
}

static int shake(rl_transport_node *node, tls_peer *peer) {
  rl_transport_stream *stream = rl_tls_stream_new(node, message, sizeof message);
  int ended = tls_peer_shake(peer, stream, 16384, message, sizeof message);
  rl_tls_stream_free(stream);
  tls_peer_next(peer);
  return ended;
}

TEST(changed_files_are_read_again) {
  rl_transport_options options = {.host = "127.0.0.1", .ca = ca};
  rl_transport_node *node;
  tls_peer before, after;
  tls_peer_start(&before, &ours, TLS1_2_VERSION);
  tls_peer_start(&after, &other, TLS1_2_VERSION);
  assert_error(rl_tls_node_new(&node, &options, message, sizeof message), REDLOCK_OK);
  assert_int_equal(shake(node, &before), 1);
  assert_non_null(node->session);
  assert_int_equal(shake(node, &after), -1);

  SSL_CTX *was = node->context;
  fclose(fopen(ca, "w")); /* A file that is being written: the previous contents stay valid. */
  assert_int_equal(shake(node, &before), 1);
  assert_ptr_equal(node->context, was);
  assert_int_equal(unlink(ca), 0);
  assert_int_equal(shake(node, &before), 1);

  tls_certificate_write(&other, ca);
  assert_int_equal(shake(node, &after), 1);
  assert_int_equal(shake(node, &before), -1);
  rl_tls_node_free(node);
  tls_peer_end(&before);
  tls_peer_end(&after);
  tls_certificate_write(&ours, ca);
}

/* There was no descriptor. */
TEST(unreadable_files_are_tried_again) {
  rl_transport_options options = {.host = "127.0.0.1", .ca = ca};
  struct rlimit limit;
  rl_transport_node *node;
  tls_peer peer;
  tls_peer_start(&peer, &other, TLS1_2_VERSION);
  assert_error(rl_tls_node_new(&node, &options, message, sizeof message), REDLOCK_OK);
  tls_certificate_write(&other, ca);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const struct rlimit none = {0, limit.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  int without = shake(node, &peer);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_int_equal(without, -1);
  assert_int_equal(shake(node, &peer), 1);
  rl_tls_node_free(node);
  tls_peer_end(&peer);
  tls_certificate_write(&ours, ca);
}

static X509_STORE *trusted(const rl_transport_node *node) {
  return SSL_CTX_get_cert_store(node->context);
}

TEST(nodes_with_equal_cas_share_them) {
  rl_transport_options options = {.host = "a", .ca = ca};
  rl_transport_options beside[] = {
      {.host = "b", .ca = ca, .ciphers = "HIGH", .cert = cert, .key = key},
      {.host = "b", .ca = cert},
      {.host = "b", .ca = ca, .ca_path = scratch.path},
      {.host = "b"},
      {.host = "b", .unverified = true},
  };
  for (unsigned i = 0; i < COUNT_OF(beside); i++) {
    rl_transport_node *a, *b;
    assert_error(rl_tls_node_new(&a, &options, message, sizeof message), REDLOCK_OK);
    beside[i].like = a;
    assert_error(rl_tls_node_new(&b, &beside[i], message, sizeof message), REDLOCK_OK);
    assert_int_equal(trusted(a) == trusted(b), i == 0);
    rl_tls_node_free(a);
    rl_tls_node_free(b);
  }
}

/* A change is noticed by the node that reads the files, and by the node that shares them. */
TEST(shared_cas_change_with_their_files) {
  rl_transport_options options = {.host = "127.0.0.1", .ca = ca, .cert = cert, .key = key};
  rl_transport_node *nodes[3];
  tls_peer before, after;
  tls_peer_start(&before, &ours, TLS1_2_VERSION);
  tls_peer_start(&after, &other, TLS1_2_VERSION);
  for (unsigned i = 0; i < 2; i++) {
    options.like = i == 0 ? NULL : nodes[0];
    assert_error(rl_tls_node_new(&nodes[i], &options, message, sizeof message), REDLOCK_OK);
    assert_int_equal(shake(nodes[i], &before), 1);
  }
  tls_certificate_write_key(&ours, key, NULL); /* This change does not concern the CAs. */
  SSL_CTX *was = nodes[0]->context;
  assert_int_equal(shake(nodes[0], &before), 1);
  assert_ptr_not_equal(nodes[0]->context, was);
  assert_ptr_equal(trusted(nodes[0]), trusted(nodes[1]));

  tls_certificate_write(&other, ca);
  assert_error(rl_tls_node_new(&nodes[2], &options, message, sizeof message), REDLOCK_OK);
  rl_tls_node_free(nodes[0]);
  for (unsigned i = 1; i < 3; i++) {
    assert_int_equal(shake(nodes[i], &before), -1);
    assert_int_equal(shake(nodes[i], &after), 1);
    rl_tls_node_free(nodes[i]);
  }
  tls_peer_end(&before);
  tls_peer_end(&after);
  tls_certificate_write(&ours, ca);
}

TEST(client_reads_shared_cas_once) {
  redlock_settings settings = {.transport = redlock_tls(), .tls_ca = ca};
  const char *addresses[] = {"rediss://127.0.0.1:1", "127.0.0.1:2", "rediss://127.0.0.1:3"};
  redlock_client *client;
  settings.tls = REDLOCK_NO;
  assert_error(redlock_client_new(&client, &settings, message, sizeof message), REDLOCK_OK);
  for (unsigned i = 0; i < COUNT_OF(addresses); i++) {
    assert_error(redlock_client_add(client, addresses[i], message, sizeof message), REDLOCK_OK);
  }
  assert_ptr_equal(trusted(client->routes[0].node), trusted(client->routes[2].node));
  redlock_client_free(client);
}

TEST(older_versions_are_refused) {
  static const struct {
    int wanted, offered;
  } cases[] = {{REDLOCK_TLS_1_3, TLS1_2_VERSION}, {0, TLS1_1_VERSION}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    rl_transport_options options = {.host = "redis.test", .ca = ca, .min_version = cases[i].wanted};
    rl_transport_node *node;
    tls_peer peer;
    tls_peer_start(&peer, &ours, cases[i].offered);
    SSL_CTX_set_security_level(peer.context, 0);
    tls_peer_next(&peer);
    assert_error(rl_tls_node_new(&node, &options, message, sizeof message), REDLOCK_OK);
    assert_int_equal(shake(node, &peer), -1);
    assert_non_null(strstr(message, "no TLS version that is new enough"));
    rl_tls_node_free(node);
    tls_peer_end(&peer);
  }
}

TEST(client_certificate_is_presented) {
  for (unsigned i = 0; i < 2; i++) {
    rl_transport_options options = {.host = "redis.test",
                                    .ca = ca,
                                    .cert = cert,
                                    .key = i == 0 ? key : locked,
                                    .key_password = i == 0 ? NULL : "secret-word"};
    rl_transport_node *node;
    tls_peer peer;
    tls_peer_start(&peer, &ours, TLS1_2_VERSION);
    assert_int_equal(SSL_CTX_load_verify_locations(peer.context, ca, NULL), 1);
    SSL_CTX_set_verify(peer.context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    tls_peer_next(&peer);
    assert_error(rl_tls_node_new(&node, &options, message, sizeof message), REDLOCK_OK);
    assert_int_equal(shake(node, &peer), 1);
    rl_tls_node_free(node);
    options.cert = options.key = options.key_password = NULL;
    assert_error(rl_tls_node_new(&node, &options, message, sizeof message), REDLOCK_OK);
    assert_int_equal(shake(node, &peer), -1);
    rl_tls_node_free(node);
    tls_peer_end(&peer);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .end = end});
}
