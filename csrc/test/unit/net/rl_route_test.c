/*
 * How a node is reached: a transport notes which options it gets.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/rl_route.h"
#include "rl_test.h"

struct rl_transport_node {
  int unused;
};

static rl_transport_node node_made;
static unsigned made, freed;
static int answer;
static char heard[1024]; /* options of the transport, by name */

#define TEXTS(X)                                                                                   \
  X(host) X(ca) X(ca_path) X(crl) X(cert) X(key) X(key_password) X(server_name) X(ciphers)

static int node_new(rl_transport_node **node, const rl_transport_options *options, char *message,
                    size_t message_size) {
  size_t used = 0;
  made++;
#define HEAR(field)                                                                                \
  if (options->field != NULL) {                                                                    \
    used += (size_t)snprintf(heard + used, sizeof heard - used, #field "=%s ", options->field);    \
  }
  TEXTS(HEAR)
  (void)snprintf(heard + used, sizeof heard - used, "min_version=%d unverified=%d",
                 options->min_version, options->unverified);
  *node = answer == REDLOCK_OK ? &node_made : NULL;
  if (answer != REDLOCK_OK) {
    (void)snprintf(message, message_size, "the transport's sentence");
  }
  return answer;
}

static void node_free(rl_transport_node *node) {
  assert_ptr_equal(node, &node_made);
  freed++;
}

static redlock_transport transport = {
    .version = RL_TRANSPORT_VERSION, .node_new = node_new, .node_free = node_free};

static char message[RL_ROUTE_ERROR_MAX];
static rl_route route;

static int reset(void **state) {
  made = freed = 0;
  answer = REDLOCK_OK;
  heard[0] = message[0] = '\0';
  transport.version = RL_TRANSPORT_VERSION;
  return 0;
}

static int make(const redlock_node *node, const redlock_settings *settings) {
  rl_address address;
  assert_error(rl_address_read(&address, node, settings, message, sizeof message), REDLOCK_OK);
  return rl_route_make(&route, &address, node, settings, NULL, message);
}

TEST(every_option_reaches_the_transport) {
  redlock_settings settings = {.transport = &transport};
  redlock_node node = {.host = "h",
                       .tls = REDLOCK_YES,
                       .tls_ca = "a",
                       .tls_ca_path = "b",
                       .tls_crl = "c",
                       .tls_cert = "d",
                       .tls_key = "e",
                       .tls_key_password = "f",
                       .tls_server_name = "g",
                       .tls_ciphers = "i",
                       .tls_min_version = REDLOCK_TLS_1_3,
                       .tls_dangerously_unverified = REDLOCK_YES};
  char all[] = "host=h ca=a ca_path=b crl=c cert=d key=e key_password=f server_name=g ciphers=i "
               "min_version=2 unverified=1";
  assert_error(make(&node, &settings), REDLOCK_OK);
  assert_string_equal(heard, all);
  assert_ptr_equal(route.transport, &transport);
  assert_ptr_equal(route.node, &node_made);
  rl_route_free(&route);
}

static unsigned occurrences(const char *what) {
  unsigned count = 0;
  for (const char *at = heard; (at = strstr(at, what)) != NULL; at++) {
    count++;
  }
  return count;
}

/* The node sets one field each time; the client sets the others. */
TEST(node_inherits_unset_options_from_its_client) {
  const redlock_settings all = {.transport = &transport,
                                .tls = REDLOCK_YES,
                                .tls_ca = "above",
                                .tls_ca_path = "above",
                                .tls_crl = "above",
                                .tls_cert = "above",
                                .tls_key = "above",
                                .tls_key_password = "above",
                                .tls_server_name = "above",
                                .tls_ciphers = "above",
                                .tls_min_version = REDLOCK_TLS_1_3,
                                .tls_dangerously_unverified = REDLOCK_YES};
  static const struct {
    redlock_node node;
    const char *own; /* what the transport hears of it */
    unsigned above;  /* number of texts that are the client's */
  } rows[] = {
      {{.tls_ca = "own"}, " ca=own ", 7},
      {{.tls_ca_path = "own"}, " ca_path=own ", 7},
      {{.tls_crl = "own"}, " crl=own ", 7},
      {{.tls_cert = "own"}, " cert=own ", 7},
      {{.tls_key = "own"}, " key=own ", 7},
      {{.tls_key_password = "own"}, " key_password=own ", 7},
      {{.tls_server_name = "own"}, " server_name=own ", 7},
      {{.tls_ciphers = "own"}, " ciphers=own min_version=2 unverified=1", 7},
      {{.tls_min_version = REDLOCK_TLS_1_2}, "min_version=1 unverified=1", 8},
      {{.tls_dangerously_unverified = REDLOCK_NO}, "min_version=2 unverified=0", 8},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    redlock_node node = rows[i].node;
    node.host = "h";
    assert_error(make(&node, &all), REDLOCK_OK);
    assert_contains(heard, rows[i].own);
    assert_int_equal(occurrences("=above "), rows[i].above);
    rl_route_free(&route);
  }
}

TEST(node_without_tls_uses_no_transport) {
  redlock_settings settings = {.transport = &transport, .tls = REDLOCK_YES, .tls_ca = "a"};
  redlock_node node = {.host = "h", .tls = REDLOCK_NO};
  assert_error(make(&node, &settings), REDLOCK_OK);
  node = (redlock_node){.path = "/s"};
  assert_error(make(&node, &settings), REDLOCK_OK);
  settings = (redlock_settings){.transport = &transport};
  node = (redlock_node){.address = "h"};
  assert_error(make(&node, &settings), REDLOCK_OK);
  assert_null(route.transport);
  assert_null(route.node);
  assert_int_equal(made, 0);
  rl_route_free(&route);
  assert_int_equal(freed, 0);
}

TEST(tls_options_of_a_node_need_tls) {
  redlock_settings settings = {.transport = &transport};
  redlock_node node = {.host = "h", .tls_server_name = "s"};
  assert_error(make(&node, &settings), REDLOCK_E_INVALID);
  assert_string_equal(message, "tls_server_name has no effect without tls");
  node = (redlock_node){.path = "/s", .tls_min_version = REDLOCK_TLS_1_2};
  settings.tls = REDLOCK_YES; /* Not for a Unix socket. */
  assert_error(make(&node, &settings), REDLOCK_E_INVALID);
  assert_string_equal(message, "tls_min_version has no effect without tls");
}

/* A program with a CA and without "rediss" would send its password in clear text. */
TEST(tls_options_of_a_client_need_a_choice) {
  redlock_settings settings = {.transport = &transport, .tls_ca = "a"};
  redlock_node node = {.address = "redis://:secret@h"};
  assert_error(make(&node, &settings), REDLOCK_E_INVALID);
  assert_string_equal(message, "tls_ca is set, but tls is not: set tls to REDLOCK_YES, or to "
                               "REDLOCK_NO for a node or a client without");
  assert_int_equal(made, 0);
  settings.tls = REDLOCK_NO;
  assert_error(make(&node, &settings), REDLOCK_OK);
  settings.tls = 0;
  node.tls = REDLOCK_NO;
  assert_error(make(&node, &settings), REDLOCK_OK);
  node = (redlock_node){.address = "unix:///s"};
  assert_error(make(&node, &settings), REDLOCK_OK);
  assert_int_equal(made, 0);
  node = (redlock_node){.address = "rediss://h"};
  assert_error(make(&node, &settings), REDLOCK_OK);
  assert_int_equal(made, 1);
  rl_route_free(&route);
}

TEST(tls_needs_a_transport_of_this_version) {
  redlock_settings settings = {0};
  redlock_node node = {.address = "rediss://h"};
  assert_error(make(&node, &settings), REDLOCK_E_UNSUPPORTED);
  assert_non_null(strstr(message, "redlock_tls()"));
  settings.transport = &transport;
  transport.version++;
  assert_error(make(&node, &settings), REDLOCK_E_UNSUPPORTED);
  assert_string_equal(message,
                      "libredlock_tls has another version than libredlock: install the same");
  transport.version -= 2;
  assert_error(make(&node, &settings), REDLOCK_E_UNSUPPORTED);
  assert_int_equal(made, 0);
  assert_null(route.transport);
}

TEST(refusal_of_the_transport_is_passed_on) {
  static const int errors[] = {REDLOCK_E_INVALID, REDLOCK_E_NO_MEMORY, REDLOCK_E_SYSTEM};
  redlock_settings settings = {.transport = &transport};
  redlock_node node = {.address = "rediss://h"};
  for (unsigned i = 0; i < COUNT_OF(errors); i++) {
    answer = errors[i];
    assert_error(make(&node, &settings), errors[i]);
    assert_string_equal(message, "the transport's sentence");
    rl_route_free(&route);
  }
  assert_int_equal(freed, 0);
}

TEST(route_is_freed_once) {
  redlock_settings settings = {.transport = &transport};
  redlock_node node = {.address = "rediss://h"};
  assert_error(make(&node, &settings), REDLOCK_OK);
  rl_route_free(&route);
  assert_int_equal(freed, 1);
  rl_route_free(&route);
  assert_int_equal(freed, 1);
}

/* The same through the public functions: each route is freed once, also that of a refused node. */
TEST(client_frees_its_routes) {
  redlock_client *client;
  redlock_lock *lock;
  redlock_settings settings = {.transport = &transport, .tls_server_name = "s"};
  char sentence[512];
  assert_error(redlock_client_new(&client, &settings, sentence, sizeof sentence), REDLOCK_OK);
  assert_error(redlock_client_add(client, "rediss://h", sentence, sizeof sentence), REDLOCK_OK);
  assert_error(redlock_client_add(client, "rediss://h", sentence, sizeof sentence),
               REDLOCK_E_INVALID);
  assert_string_equal(sentence, "h:6379 is named twice");
  assert_int_equal(made, 1);
  answer = REDLOCK_E_INVALID;
  assert_error(redlock_client_add(client, "rediss://:secret@i", sentence, sizeof sentence),
               REDLOCK_E_INVALID);
  assert_string_equal(sentence, "i:6379: the transport's sentence");
  answer = REDLOCK_OK;
  assert_error(redlock_client_add(client, "h2", sentence, sizeof sentence), REDLOCK_E_INVALID);
  assert_non_null(strstr(sentence, "h2:6379: tls_server_name is set, but tls is not"));
  assert_error(redlock_lock_new(&lock, client, "r", 1, NULL), REDLOCK_OK);
  assert_error(redlock_client_add(client, "rediss://j", sentence, sizeof sentence), REDLOCK_E_BUSY);
  assert_int_equal(freed, made - 2); /* All but the first and the refused one. */
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_int_equal(freed, made - 1);
}

int main(void) {
  return tests_run(&(tests_fixture){.before = reset});
}
