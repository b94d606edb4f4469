/*
 * Real servers with TLS over time: changing certificates, sessions, wrong ports, forks.
 *
 * SPDX-License-Identifier: MIT
 */
#include <openssl/ssl.h>

#include "client/rl_client.h"
#include "rl_tls.h"
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

/* Makes the server end its connections. */
static void hang_up(unsigned node) {
  assert_non_null(farm_command(&nodes.farm, node, "CLIENT", "KILL", "TYPE", "normal", NULL));
}

static redlock_node_state state_of(redlock_client *client, size_t node) {
  redlock_node_info info;
  assert_int_equal(redlock_client_node_info(client, node, &info), REDLOCK_OK);
  return info.state;
}

static const char *error_of(redlock_client *client, size_t node) {
  redlock_node_info info;
  assert_int_equal(redlock_client_node_info(client, node, &info), REDLOCK_OK);
  return info.error == NULL ? "" : info.error;
}

/* Ends the connection, and waits for the next one. */
static void reconnect(redlock_client *client, unsigned node) {
  hang_up(node);
  pump_until(client, state_of(client, node) != REDLOCK_NODE_UP);
  pump_until(client, state_of(client, node) == REDLOCK_NODE_UP);
}

static bool resumed(const redlock_client *client, unsigned node) {
  return SSL_session_reused(client->sockets[node].stream.inner->ssl) == 1;
}

static void copy_file(const char *from, const char *to) {
  char bytes[16384];
  char fresh[CERTIFICATES_PATH_MAX + 8];
  FILE *in = fopen(tls_farm_file(&nodes, from), "r");
  assert_non_null(in);
  size_t length = fread(bytes, 1, sizeof bytes, in);
  (void)fclose(in);
  (void)snprintf(fresh, sizeof fresh, "%s.new", tls_farm_file(&nodes, to));
  FILE *out = fopen(fresh, "w");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, length, out), length);
  (void)fclose(out);
  assert_int_equal(rename(fresh, tls_farm_file(&nodes, to)), 0);
}

/* ------------------------------------------------------------------------------------- sessions */

TEST(next_connection_resumes_the_session) {
  static const char *const protocols[] = {"TLSv1.2", "TLSv1.3"};
  for (unsigned i = 0; i < 2; i++) {
    tls_farm_set(&nodes, 0, "tls-protocols", protocols[i]);
    redlock_client *client = tls_client_of(&nodes, 1, NULL);
    warm_up(client);
    assert_false(resumed(client, 0));
    for (unsigned round = 0; round < 3; round++) {
      reconnect(client, 0);
      assert_true(resumed(client, 0));
    }
    redlock_client_free(client);
  }
}

/* --------------------------------------------------------------------------------- certificates */

/* The next connection trusts a replaced CA. */
TEST(ca_may_be_replaced_at_run_time) {
  redlock_settings settings = {0};
  char message[256] = "";
  copy_file("ca.pem", "trusted.pem");
  settings.tls_ca = tls_farm_file(&nodes, "trusted.pem");
  redlock_client *client = tls_client(&nodes, &settings);
  assert_int_equal(
      redlock_client_add(client, nodes.farm.nodes[0].tls_address, message, sizeof message),
      REDLOCK_OK);
  warm_up(client);
  tls_farm_show(&nodes, 0, "good_renewed");
  hang_up(0);
  pump_until(client, strstr(error_of(client, 0), "its certificate is invalid") != NULL);
  copy_file("ca_renewed.pem", "trusted.pem");
  pump_until(client, state_of(client, 0) == REDLOCK_NODE_UP);
  redlock_lock *lock = held_lock(client, "r");
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

/* Our certificate has expired, and a new one is written into the same files. */
TEST(client_certificate_may_be_replaced_at_run_time) {
  redlock_settings settings = {0};
  char message[256] = "";
  tls_farm_set(&nodes, 0, "tls-auth-clients", "yes");
  copy_file("client_expired.pem", "mine.pem");
  copy_file("client_expired.key", "mine.key");
  settings.tls_cert = tls_farm_file(&nodes, "mine.pem");
  settings.tls_key = tls_farm_file(&nodes, "mine.key");
  redlock_client *client = tls_client(&nodes, &settings);
  assert_int_equal(
      redlock_client_add(client, nodes.farm.nodes[0].tls_address, message, sizeof message),
      REDLOCK_OK);
  redlock_lock *lock = new_lock(client, "r");
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_contains(redlock_lock_message(lock), "certificate expired");
  copy_file("client.key", "mine.key"); /* For a moment the two files do not match. */
  pump(client, 50);
  copy_file("client.pem", "mine.pem");
  pump_until(client, state_of(client, 0) == REDLOCK_NODE_UP);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

/* ---------------------------------------------------------------------------------- wrong ports */

static redlock_client *client_with_others(const char *address, int tls) {
  char message[256] = "";
  redlock_node node = {0};
  redlock_client *client = tls_client(&nodes, NULL);
  node.address = address;
  node.tls = tls;
  if (redlock_client_add_node(client, &node, message, sizeof message) != REDLOCK_OK) {
    fail_msg("%s", message);
  }
  for (unsigned i = 1; i < 3; i++) {
    assert_int_equal(
        redlock_client_add(client, nodes.farm.nodes[i].tls_address, message, sizeof message),
        REDLOCK_OK);
  }
  return client;
}

TEST(wrong_port_is_reported) {
  for (unsigned i = 0; i < 2; i++) {
    char address[64];
    const farm_node *node = &nodes.farm.nodes[0];
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", i == 0 ? node->port : node->tls_port);
    redlock_client *client = client_with_others(address, i == 0 ? REDLOCK_YES : REDLOCK_NO);
    redlock_lock *lock = held_lock(client, "r");
    pump_until(client, strstr(error_of(client, 0), "is this a TLS port?") != NULL);
    assert_ok(lock, redlock_lock_release(lock));
    free_with_client(lock);
  }
}

/* ------------------------------------------------------------------------------------- doctor */

/* Returns the finding about certificates, or "". */
static const char *examine(redlock_lock *lock) {
  static redlock_finding_info info;
  assert_ok(lock, redlock_lock_doctor(lock, 0));
  for (size_t i = 0; redlock_lock_finding(lock, i, &info) == REDLOCK_OK; i++) {
    if (strcmp(info.name, "certificate") == 0) {
      return info.message;
    }
  }
  return "";
}

/* On a new connection, and on one that resumes a session. */
TEST(expiring_certificate_is_found) {
  char message[256];
  tls_farm_show(&nodes, 0, "lasting");
  tls_farm_show(&nodes, 1, "three_days");
  tls_farm_show(&nodes, 2, "lasting");
  redlock_client *client = tls_client_of(&nodes, 3, NULL);
  redlock_lock *lock = new_lock(client, "r");
  (void)snprintf(message, sizeof message, "the TLS certificate of %s ends in 2 days: renew it",
                 strstr(nodes.farm.nodes[1].tls_address, "://") + 3);
  for (unsigned i = 0; i < 2; i++) {
    eventually(strcmp(examine(lock), message) == 0); /* A connection may be missing at first. */
    hang_up(1);
  }
  free_with_client(lock);
  tls_farm_show(&nodes, 1, "lasting");
  hang_up(1);
  client = tls_client_of(&nodes, 3, NULL);
  lock = new_lock(client, "r");
  assert_string_equal(examine(lock), "");
  free_with_client(lock);
}

/* ----------------------------------------------------------------------------------------- fork */

static int child_frees_all(void *argument) {
  redlock_client_free(argument);
  return 0;
}

static int child_locks(void *argument) {
  redlock_client *client = argument;
  redlock_lock *lock = new_lock(client, "child");
  int error = redlock_lock_acquire(lock, NULL, NULL);
  error = error == REDLOCK_OK ? redlock_lock_release(lock) : error;
  free_with_client(lock);
  return error == REDLOCK_OK ? 0 : 1;
}

/* A farewell or record of the child would end the parent's connections. */
TEST(child_does_not_use_the_connections) {
  SSL *before[3];
  redlock_client *client = tls_client_of(&nodes, 3, NULL);
  warm_up(client);
  for (unsigned i = 0; i < 3; i++) {
    before[i] = client->sockets[i].stream.inner->ssl;
  }
  for (unsigned round = 0; round < 5; round++) {
    in_child(child_frees_all, client);
    in_child(child_locks, client);
    redlock_lock *lock = held_lock(client, "r");
    pump_until(client, farm_count(&nodes.farm, "r", NULL) == 3);
    assert_ok(lock, redlock_lock_release(lock));
    redlock_lock_free(lock);
  }
  for (unsigned i = 0; i < 3; i++) {
    assert_ptr_equal(client->sockets[i].stream.inner->ssl, before[i]);
    eventually(farm_connections(&nodes.farm, i) == 1);
  }
  redlock_client_free(client);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .before = reset, .end = end});
}
