/*
 * Certificates of real servers: which are invalid, the message, and that other nodes are not
 * disturbed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"
#include "tls_farm.h"

static tls_farm nodes;

static int start(void **state) {
  tls_farm_start(&nodes, 3);
  return 0;
}

static int reset(void **state) {
  tls_farm_reset(&nodes);
  return 0;
}

static int end(void **state) {
  tls_farm_end(&nodes);
  return 0;
}

typedef struct certificate_case {
  const char *name;
  const char *shown;   /* certificate of node 0; NULL: "good" */
  const char *message; /* NULL: the certificate is valid */
  const char *also;
  const char *host;   /* NULL: 127.0.0.1 */
  redlock_node how;   /* with names of files */
  const char *wants;  /* tls-auth-clients; NULL: "no" */
  const char *speaks; /* tls-protocols; NULL: all */
} certificate_case;

#define INVALID "its certificate is invalid: "

static const certificate_case cases[] = {
    {.name = "good"},
    {.name = "good, by its name", .host = "localhost"},
    {.name = "by an intermediate CA", .shown = "below"},
    {.name = "by its subject alone", .shown = "subject_only", .host = "localhost"},
    {.name = "another name",
     .shown = "wrong_host",
     .host = "localhost",
     .message = INVALID "hostname mismatch ('elsewhere.test' by 'our CA'); expected is localhost"},
    {.name = "a name for an address",
     .shown = "wrong_host",
     .message =
         INVALID "IP address mismatch ('elsewhere.test' by 'our CA'); expected is 127.0.0.1"},
    {.name = "another address", .shown = "wrong_address", .message = INVALID "IP address mismatch"},
    {.name = "an address for a name",
     .shown = "wrong_address",
     .host = "localhost",
     .message = INVALID "hostname mismatch"},
    {.name = "server_name", .shown = "wrong_host", .how.tls_server_name = "elsewhere.example"},
    {.name = "server_name, an address",
     .shown = "wrong_address",
     .how.tls_server_name = "127.0.0.9"},
    {.name = "another server_name",
     .how.tls_server_name = "elsewhere.example",
     .message = INVALID "hostname mismatch",
     .also = "expected is elsewhere.example"},
    {.name = "expired",
     .shown = "expired",
     .message = INVALID "certificate has expired ('redis.test' by 'our CA' until 20"},
    {.name = "not yet valid",
     .shown = "not_yet_valid",
     .message = INVALID "certificate is not yet valid ('redis.test' by 'our CA' from 20"},
    {.name = "self-signed",
     .shown = "self_signed",
     .message = INVALID "self-signed certificate ('redis.test' by 'redis.test')"},
    {.name = "self-signed, and trusted", .shown = "self_signed", .how.tls_ca = "self_signed.pem"},
    {.name = "of another CA",
     .shown = "stranger",
     .message = INVALID "unable to get local issuer certificate ('redis.test' by 'their CA')"},
    {.name = "the system's CAs do not know it",
     .how.tls_ca_path = "/etc/ssl/certs",
     .how.tls_ca = "ca_stranger.pem",
     .message = INVALID "self-signed certificate in certificate chain"},
    {.name = "another CA of that name",
     .shown = "good_renewed",
     .message = INVALID "certificate signature failure"},
    {.name = "a list of the revoked", .how.tls_crl = "crl.pem"},
    {.name = "a list, and an intermediate CA", .shown = "below", .how.tls_crl = "crl.pem"},
    {.name = "revoked",
     .shown = "revoked",
     .how.tls_crl = "crl.pem",
     .message = INVALID "certificate revoked ('redis.test' by 'our CA')"},
    {.name = "revoked, without a list", .shown = "revoked"},
    {.name = "a revoked intermediate CA",
     .shown = "below_revoked",
     .how.tls_crl = "crl.pem",
     .message = INVALID "certificate revoked ('our lost CA' by 'our CA')"},
    {.name = "a list out of date",
     .how.tls_crl = "crl_expired.pem",
     .message = INVALID "CRL has expired"},
    {.name = "no list for an intermediate CA",
     .shown = "below",
     .how.tls_crl = "crl_expired.pem",
     .message = INVALID "unable to get certificate CRL"},
    {.name = "unverified",
     .shown = "self_signed",
     .how.tls_dangerously_unverified = REDLOCK_YES,
     .host = "localhost"},
    {.name = "no certificate of ours",
     .wants = "yes",
     .message = "the node requires a client certificate; set tls_cert and tls_key"},
    {.name = "no certificate of ours, TLS 1.2",
     .wants = "yes",
     .speaks = "TLSv1.2",
     .message =
         "the TLS handshake failed: no common cipher, or the node requires a client certificate"},
    {.name = "a certificate of ours",
     .how.tls_cert = "client.pem",
     .how.tls_key = "client.key",
     .wants = "yes"},
    {.name = "one that is not asked for",
     .how.tls_cert = "client.pem",
     .how.tls_key = "client.key"},
    {.name = "a key with a password",
     .how.tls_cert = "client.pem",
     .how.tls_key = "client_locked.key",
     .how.tls_key_password = CERTIFICATES_PASSWORD,
     .wants = "yes"},
    {.name = "one of ours that is unknown",
     .how.tls_cert = "client_stranger.pem",
     .how.tls_key = "client_stranger.key",
     .wants = "yes",
     .message = "unknown ca"},
    {.name = "one of ours that has expired",
     .how.tls_cert = "client_expired.pem",
     .how.tls_key = "client_expired.key",
     .wants = "yes",
     .message = "certificate expired"},
    {.name = "TLS 1.2", .speaks = "TLSv1.2"},
    {.name = "TLS 1.3", .speaks = "TLSv1.3"},
    {.name = "TLS 1.2 is too old",
     .speaks = "TLSv1.2",
     .how.tls_min_version = REDLOCK_TLS_1_3,
     .message = "the node supports no TLS version that is new enough"},
    {.name = "TLS 1.1",
     .speaks = "TLSv1.1",
     .message = "the node supports no TLS version that is new enough"},
    {.name = "TLS 1.0",
     .speaks = "TLSv1",
     .message = "the node supports no TLS version that is new enough"},
    {.name = "a cipher", .how.tls_ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384", .speaks = "TLSv1.2"},
    {.name = "a cipher that it has not",
     .how.tls_ciphers = "ECDHE-RSA-AES256-GCM-SHA384",
     .speaks = "TLSv1.2",
     .message = "the TLS handshake failed: "},
};
#define CASES (sizeof cases / sizeof cases[0])

static redlock_node node_of(const certificate_case *this, char address[64]) {
  redlock_node node = this->how;
  node.address = address;
  (void)snprintf(address, 64, "rediss://%s:%d", this->host == NULL ? "127.0.0.1" : this->host,
                 nodes.farm.nodes[0].tls_port);
  node.tls_ca = node.tls_dangerously_unverified == REDLOCK_YES ? NULL
                : node.tls_ca == NULL                          ? tls_farm_file(&nodes, "ca.pem")
                                                               : tls_farm_file(&nodes, node.tls_ca);
  node.tls_crl = tls_farm_file(&nodes, node.tls_crl);
  node.tls_cert = tls_farm_file(&nodes, node.tls_cert);
  node.tls_key = tls_farm_file(&nodes, node.tls_key);
  return node;
}

/* Makes a client without a CA: each node has its own. */
static redlock_client *client_of_case(const certificate_case *this, unsigned healthy) {
  char address[64];
  char message[256] = "";
  redlock_settings settings = {0};
  redlock_options usual = once();
  redlock_client *client;
  settings.options = &usual;
  settings.transport = redlock_tls();
  assert_int_equal(redlock_client_new(&client, &settings, message, sizeof message), REDLOCK_OK);
  redlock_node node = node_of(this, address);
  if (redlock_client_add_node(client, &node, message, sizeof message) != REDLOCK_OK) {
    fail_msg("%s: %s", this->name, message);
  }
  for (unsigned i = 1; i <= healthy; i++) {
    redlock_node other = {0};
    other.address = nodes.farm.nodes[i].tls_address;
    other.tls_ca = tls_farm_file(&nodes, "ca.pem");
    assert_int_equal(redlock_client_add_node(client, &other, message, sizeof message), REDLOCK_OK);
  }
  return client;
}

static void prepare(const certificate_case *this) {
  tls_farm_show(&nodes, 0, this->shown == NULL ? "good" : this->shown);
  tls_farm_set(&nodes, 0, "tls-auth-clients", this->wants == NULL ? "no" : this->wants);
  tls_farm_set(&nodes, 0, "tls-protocols", this->speaks == NULL ? "" : this->speaks);
}

/* The message has node and reason, and arrives before the limit of 3 s for a handshake. */
static void assert_refused(const certificate_case *this, redlock_lock *lock, int result,
                           redlock_time before_us) {
  char port[16];
  const char *message = redlock_lock_message(lock);
  (void)snprintf(port, sizeof port, ":%d", nodes.farm.nodes[0].tls_port);
  if (result != REDLOCK_E_UNAVAILABLE || strstr(message, this->message) == NULL ||
      strstr(message, port) == NULL ||
      (this->also != NULL && strstr(message, this->also) == NULL)) {
    fail_msg("%s: %s, %s", this->name, redlock_error_name(result), message);
  }
  assert_null(strstr(message, "secret"));
  assert_took(before_us, 0, MS(2000));
}

static void try_alone(const certificate_case *this) {
  redlock_client *client = client_of_case(this, 0);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time before_us = stopwatch();
  int result = redlock_lock_acquire(lock, NULL, NULL);
  if (this->message != NULL) {
    assert_refused(this, lock, result, before_us);
  } else if (result != REDLOCK_OK) {
    fail_msg("%s: %s", this->name, redlock_lock_message(lock));
  }
  free_with_client(lock);
}

static void try_as_minority(const certificate_case *this) {
  redlock_client *client = client_of_case(this, 2);
  redlock_lock *lock = new_lock(client, "r");
  if (redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_OK) {
    fail_msg("%s: %s", this->name, redlock_lock_message(lock));
  }
  redlock_node_info info;
  do {
    pump(client, 2);
    assert_int_equal(redlock_client_node_info(client, 0, &info), REDLOCK_OK);
  } while (info.state == REDLOCK_NODE_CONNECTING);
  if (this->message != NULL ? info.error == NULL || strstr(info.error, this->message) == NULL
                            : info.state != REDLOCK_NODE_UP) {
    fail_msg("%s: %s", this->name, info.error == NULL ? "no error" : info.error);
  }
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

TEST(invalid_certificate_is_reported) {
  for (size_t i = 0; i < CASES; i++) {
    prepare(&cases[i]);
    try_alone(&cases[i]);
  }
}

TEST(invalid_certificate_of_a_minority_costs_nothing) {
  for (size_t i = 0; i < CASES; i++) {
    prepare(&cases[i]);
    try_as_minority(&cases[i]);
  }
}

/* Invalid files are reported before the first connection. */
TEST(invalid_file_is_reported_at_once) {
  static const struct {
    redlock_node how;
    const char *message;
  } wrong[] = {
      {{.tls_ca = "none.pem"}, "none.pem): No such file"},
      {{.tls_ca = "empty.pem"}, "tls_ca cannot be read"},
      {{.tls_ca = "ca.key"}, "tls_ca cannot be read"},
      {{.tls_crl = "none.pem"}, "tls_crl cannot be read ("},
      {{.tls_crl = "ca.pem"}, "tls_crl cannot be read"},
      {{.tls_cert = "client.pem"}, "tls_cert and tls_key"},
      {{.tls_key = "client.key"}, "tls_cert and tls_key"},
      {{.tls_cert = "none.pem", .tls_key = "client.key"}, "none.pem): No such file"},
      {{.tls_cert = "client.pem", .tls_key = "none.key"}, "tls_key cannot be read"},
      {{.tls_cert = "client.pem", .tls_key = "good.key"}, "tls_key is not the key of tls_cert"},
      {{.tls_cert = "client.pem", .tls_key = "client_locked.key"}, "or needs a tls_key_password"},
      {{.tls_cert = "client.pem", .tls_key = "client_locked.key", .tls_key_password = "secret"},
       "tls_key cannot be read with its password"},
      {{.tls_cert = "client.pem",
        .tls_key = "client_locked.key",
        .tls_key_password = CERTIFICATES_PASSWORD "."},
       "tls_key cannot be read with its password"},
      {{.tls_ciphers = "none"}, "tls_ciphers has no cipher"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    certificate_case this = {.how = wrong[i].how};
    char address[64];
    char message[256] = "";
    redlock_client *client = tls_client(&nodes, NULL);
    redlock_node node = node_of(&this, address);
    int result = redlock_client_add_node(client, &node, message, sizeof message);
    if (result != REDLOCK_E_INVALID || strstr(message, wrong[i].message) == NULL ||
        strstr(message, "secret") != NULL) {
      fail_msg("%zu: %s, %s", i, redlock_error_name(result), message);
    }
    assert_int_equal(redlock_client_node_count(client), 0);
    redlock_client_free(client);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .before = reset, .end = end});
}
