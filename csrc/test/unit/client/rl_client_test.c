/*
 * The program's loop, with servers on loopback in this process.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/rl_client.h"
#include "fake_clock.h"
#include "loopback.h"
#include "rl_test.h"

#define PATIENCE_US (10 * SECONDS)

static const char KEY[] = "orders:42";

static redlock_client *make_client(const loopback *farm) {
  redlock_client *client;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < farm->count; i++) {
    assert_error(redlock_client_add(client, farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

static redlock_lock *make_lock(redlock_client *client) {
  redlock_lock *lock;
  redlock_options options = {0};
  options.node_timeout_us = 5 * SECONDS; /* More than a slow machine needs. */
  options.ttl_us = 60 * SECONDS;
  options.retry_count = REDLOCK_RETRIES_NONE;
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), &options), REDLOCK_OK);
  return lock;
}

/* Takes one turn of the loop and one of the servers. */
static void turn(redlock_client *client, loopback *farm) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  int timeout_ms = redlock_client_timeout_ms(client);
  (void)poll(fds, (nfds_t)count, timeout_ms < 0 || timeout_ms > 2 ? 2 : timeout_ms);
  assert_error(redlock_client_process(client, fds, count), REDLOCK_OK);
  loopback_pump(farm, 0);
}

static int finish(redlock_client *client, loopback *farm, redlock_lock *lock) {
  redlock_time until_us = redlock_now() + PATIENCE_US;
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    assert_true(redlock_now() < until_us);
    turn(client, farm);
  }
  return redlock_lock_result(lock);
}

/* Takes turns until |farm| has no key. */
static void wait_gone(redlock_client *client, loopback *farm) {
  redlock_time until_us = redlock_now() + PATIENCE_US;
  while (loopback_keys(farm, KEY) > 0) {
    assert_true(redlock_now() < until_us);
    if (client != NULL) {
      turn(client, farm);
    } else {
      loopback_pump(farm, 1);
    }
  }
}

static void acquire(redlock_client *client, loopback *farm, redlock_lock *lock) {
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(finish(client, farm, lock), REDLOCK_OK);
  assert_ptr_equal(redlock_client_next_ended(client), lock);
}

static redlock_lock *hold(redlock_client *client, loopback *farm) {
  redlock_lock *lock = make_lock(client);
  acquire(client, farm, lock);
  return lock;
}

typedef struct world {
  loopback *farm;
  redlock_client *client;
  redlock_lock *lock;
} world;

/* Makes as many servers as |*state| says, with a client and a lock. */
static int begin(void **state) {
  static world one;
  one.farm = loopback_new((unsigned)(uintptr_t)*state, LOOPBACK_UNIX);
  one.client = make_client(one.farm);
  one.lock = make_lock(one.client);
  *state = &one;
  return 0;
}

static int end(void **state) {
  world *one = *state;
  redlock_lock_free(one->lock);
  redlock_client_free(one->client);
  return loopback_end(one->farm) ? 0 : 1;
}

#define ON(nodes, name)                                                                            \
  { #name, name, begin, end, (void *)(uintptr_t)(nodes) }

/* ----------------------------------------------------------------------------------- arguments */

/* Returns why |settings| are wrong, or "". */
static const char *wrong_settings(const redlock_settings *settings) {
  static char message[128];
  redlock_client *client = NULL;
  message[0] = '\0';
  int error = redlock_client_new(&client, settings, message, sizeof message);
  redlock_client_free(client);
  assert_error(error, message[0] == '\0' ? REDLOCK_OK : REDLOCK_E_INVALID);
  assert_error(redlock_client_new(&client, settings, NULL, 0), error);
  assert_int_equal(client != NULL, error == REDLOCK_OK);
  redlock_client_free(client);
  return message;
}

static void settings_are_checked_and_named(void **state) {
  redlock_settings settings = {0};
  redlock_options options = {0};
  char message[128];
  assert_error(redlock_client_new(NULL, &settings, message, sizeof message), REDLOCK_E_INVALID);
  assert_string_equal(message, "client is NULL");
  settings.tls = 2;
  assert_string_equal(wrong_settings(&settings), "tls must be REDLOCK_YES or REDLOCK_NO");
  settings = (redlock_settings){.db = -2};
  assert_string_equal(wrong_settings(&settings),
                      "db must be from 1 to 1000000, or REDLOCK_DB_ZERO");
  settings = (redlock_settings){.prefix = "p", .prefix_length = REDLOCK_KEY_MAX + 1};
  assert_string_equal(wrong_settings(&settings), "prefix must be at most 4096 bytes");
  settings = (redlock_settings){.prefix_length = 1};
  assert_string_equal(wrong_settings(&settings), "prefix must be at most 4096 bytes");
  options.ttl_us = 999;
  settings = (redlock_settings){.options = &options};
  assert_string_equal(wrong_settings(&settings), "ttl_us must be from 1 ms to 366 days");
  settings = (redlock_settings){.quorum = -1};
  assert_string_equal(wrong_settings(&settings),
                      "quorum must be from a majority of the nodes to all of them, at most 32");
  settings.quorum = REDLOCK_NODES_MAX + 1;
  assert_string_equal(wrong_settings(&settings),
                      "quorum must be from a majority of the nodes to all of them, at most 32");
  settings = (redlock_settings){.db = REDLOCK_DB_ZERO, .tls = REDLOCK_NO};
  assert_string_equal(wrong_settings(&settings), "");
}

/* Nodes are added after the client was made, so the first lock checks the quorum. */
static void quorum_is_from_a_majority_to_all_nodes(void **state) {
  for (int quorum = 0; quorum <= 6; quorum++) {
    redlock_settings settings = {.quorum = quorum};
    redlock_client *client;
    redlock_lock *lock;
    bool fits = quorum == 0 || (quorum >= 3 && quorum <= 5);
    assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
      char address[32];
      (void)snprintf(address, sizeof address, "127.0.0.1:%u", i + 1);
      assert_error(redlock_client_add(client, address, NULL, 0), REDLOCK_OK);
    }
    assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), NULL),
                 fits ? REDLOCK_OK : REDLOCK_E_INVALID);
    assert_string_equal(
        redlock_client_message(client),
        fits ? "" : "the client's quorum must be from a majority of its nodes to all of them");
    redlock_lock_free(lock);
    redlock_client_free(client);
  }
}

/* Fields that only a newer header has must not be ignored. */
static void fields_of_a_newer_header_are_refused(void **state) {
  redlock_client *client;
  redlock_lock *lock;
  char message[160];
  struct {
    redlock_settings settings;
    char more[8];
  } settings = {.more = {0}};
  struct {
    redlock_options options;
    char more[8];
  } options = {.more = {0}};
  struct {
    redlock_node node;
    char more[8];
  } node = {.node = {.host = "h"}};
  settings.settings.options = &options.options;
  options.more[7] = 1;
  assert_error(redlock_client_new_sized(&client, &settings.settings, sizeof settings,
                                        sizeof options, message, sizeof message),
               REDLOCK_E_INVALID);
  assert_non_null(strstr(message, "newer redlock.h"));
  options.more[7] = 0;
  settings.more[0] = 1;
  assert_error(redlock_client_new_sized(&client, &settings.settings, sizeof settings,
                                        sizeof options, message, sizeof message),
               REDLOCK_E_INVALID);
  settings.more[0] = 0;
  assert_error(redlock_client_new_sized(&client, &settings.settings, sizeof settings,
                                        sizeof options, message, sizeof message),
               REDLOCK_OK);
  node.more[0] = 1;
  assert_error(
      redlock_client_add_node_sized(client, &node.node, sizeof node, message, sizeof message),
      REDLOCK_E_INVALID);
  assert_non_null(strstr(message, "newer redlock.h"));
  node.more[0] = 0;
  assert_error(
      redlock_client_add_node_sized(client, &node.node, sizeof node, message, sizeof message),
      REDLOCK_OK);
  options.more[3] = 1;
  assert_error(redlock_lock_new_sized(&lock, client, "k", 1, &options.options, sizeof options),
               REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_client_message(client), "newer redlock.h"));
  assert_error(redlock_lock_new(&lock, client, "k", 1, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire_sized(lock, &options.options, sizeof options, NULL),
               REDLOCK_E_INVALID);
  assert_non_null(strstr(redlock_lock_message(lock), "newer redlock.h"));
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void nodes_are_checked_and_named(void **state) {
  redlock_client *client;
  redlock_node node;
  redlock_lock *lock;
  char message[128];
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(NULL, "h", message, sizeof message), REDLOCK_E_INVALID);
  assert_error(redlock_client_add(client, NULL, message, sizeof message), REDLOCK_E_INVALID);
  assert_error(redlock_client_add(client, "h:x", message, sizeof message), REDLOCK_E_INVALID);
  memset(&node, 0, sizeof node);
  assert_error(redlock_client_add_node(client, &node, message, sizeof message), REDLOCK_E_INVALID);
  assert_error(redlock_client_add_node(client, NULL, message, sizeof message), REDLOCK_E_INVALID);
  assert_error(redlock_lock_new(&lock, client, "k", 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_client_add(client, "h", message, sizeof message), REDLOCK_OK);
  assert_error(redlock_client_add(client, "redis://h:6379/3", message, sizeof message),
               REDLOCK_E_INVALID);
  assert_string_equal(message, "h:6379 is named twice");
  memset(&node, 0, sizeof node);
  node.host = "h";
  node.port = 6380;
  assert_error(redlock_client_add_node(client, &node, message, sizeof message), REDLOCK_OK);
  assert_int_equal(redlock_client_node_count(client), 2);
  assert_int_equal(redlock_client_node_count(NULL), 0);
  assert_error(redlock_lock_new(&lock, client, "k", 1, NULL), REDLOCK_OK);
  assert_error(redlock_client_add(client, "late", message, sizeof message), REDLOCK_E_BUSY);
  assert_non_null(strstr(message, "before the first lock"));
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void client_refuses_the_33rd_node(void **state) {
  redlock_client *client;
  char address[16];
  char message[128];
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i <= REDLOCK_NODES_MAX; i++) {
    (void)snprintf(address, sizeof address, "h%u", i);
    assert_error(redlock_client_add(client, address, message, sizeof message),
                 i < REDLOCK_NODES_MAX ? REDLOCK_OK : REDLOCK_E_LIMIT);
  }
  assert_non_null(strstr(message, "more than 32 nodes"));
  redlock_client_free(client);
}

static void keys_are_limited_with_their_prefix(void **state) {
  redlock_client *client;
  redlock_settings settings = {0};
  redlock_lock *lock;
  char *name = calloc(1, REDLOCK_KEY_MAX + 1);
  settings.prefix = "pre:";
  settings.prefix_length = 4;
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "h", NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, name, REDLOCK_KEY_MAX - 3, NULL), REDLOCK_E_LIMIT);
  assert_null(lock);
  assert_error(redlock_lock_new(&lock, client, name, SIZE_MAX, NULL), REDLOCK_E_LIMIT);
  assert_error(redlock_lock_new(&lock, client, NULL, 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_new(NULL, client, name, 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_new(&lock, NULL, name, 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_new(&lock, client, name, REDLOCK_KEY_MAX - 4, NULL), REDLOCK_OK);
  size_t length;
  assert_memory_equal(redlock_lock_resource(lock, &length), name, REDLOCK_KEY_MAX - 4);
  assert_int_equal(length, REDLOCK_KEY_MAX - 4);
  redlock_lock_free(lock);
  assert_error(redlock_lock_new(&lock, client, NULL, 0, NULL), REDLOCK_OK);
  redlock_lock_free(lock);
  redlock_client_free(client);
  free(name);
}

static void missing_node_and_missing_client_differ(void **state) {
  redlock_client *client;
  redlock_node node = {.host = "h"};
  char message[128];
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add_node(client, NULL, message, sizeof message), REDLOCK_E_INVALID);
  assert_string_equal(message, "node is NULL");
  assert_error(redlock_client_add_node(client, NULL, NULL, sizeof message), REDLOCK_E_INVALID);
  assert_error(redlock_client_add_node(NULL, &node, message, sizeof message), REDLOCK_E_INVALID);
  assert_string_equal(message, "client is NULL");
  redlock_client_free(client);
}

/* nginx does TLS by itself. */
static void external_client_accepts_tls(void **state) {
  redlock_client *client;
  char message[128];
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "rediss://h", NULL, 0), REDLOCK_E_UNSUPPORTED);
  client->external = true;
  assert_error(redlock_client_add(client, "rediss://h", NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "rediss://h:0", message, sizeof message),
               REDLOCK_E_INVALID);
  assert_int_equal(redlock_client_node_count(client), 1);
  redlock_client_free(client);
}

static void null_is_an_error_and_no_crash(void **state) {
  struct pollfd fds[1];
  redlock_node_info node;
  redlock_vote_info vote;
  redlock_client_free(NULL);
  redlock_lock_free(NULL);
  redlock_lock_cancel(NULL);
  assert_error(redlock_client_close(NULL, 0), REDLOCK_E_INVALID);
  assert_error(redlock_client_process(NULL, NULL, 0), REDLOCK_E_INVALID);
  assert_error(redlock_client_node_info(NULL, 0, &node), REDLOCK_E_INVALID);
  assert_error(redlock_lock_vote(NULL, 0, &vote), REDLOCK_E_INVALID);
  assert_error(redlock_lock_result(NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_acquire(NULL, NULL, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_extend(NULL, 0, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_lock_release(NULL), REDLOCK_E_INVALID);
  assert_int_equal(redlock_client_pollfds(NULL, fds, 1), 0);
  assert_int_equal(redlock_client_timeout(NULL), REDLOCK_NEVER);
  assert_int_equal(redlock_client_timeout_ms(NULL), -1);
  assert_int_equal(redlock_client_pollfd(NULL), -1);
  assert_null(redlock_client_next_ended(NULL));
  assert_int_equal(redlock_lock_remaining(NULL), 0);
  assert_int_equal(redlock_lock_deadline(NULL), 0);
  assert_int_equal(redlock_lock_margin(NULL), -1);
  assert_int_equal(redlock_lock_ttl(NULL), 0);
  assert_null(redlock_lock_client(NULL));
  assert_string_equal(redlock_lock_token(NULL), "");
  assert_true(redlock_lock_fence(NULL) == 0);
  assert_string_equal(redlock_lock_message(NULL), "");
}

static void lock_has_one_to_64_different_resources(void **state) {
  static unsigned char names[REDLOCK_RESOURCES_MAX + 1];
  redlock_resource resources[REDLOCK_RESOURCES_MAX + 1];
  redlock_client *client;
  redlock_lock *lock;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < COUNT_OF(resources); i++) {
    names[i] = (unsigned char)i;
    resources[i] = (redlock_resource){&names[i], 1};
  }
  assert_error(redlock_lock_new_many(&lock, client, NULL, 2, NULL), REDLOCK_E_INVALID);
  assert_string_equal(redlock_client_message(client), "there is no resource");
  assert_error(redlock_lock_new_many(&lock, client, resources, 0, NULL), REDLOCK_E_INVALID);
  assert_string_equal(redlock_client_message(client), "there is no resource");
  assert_error(redlock_lock_new_many(&lock, client, resources, REDLOCK_RESOURCES_MAX + 1, NULL),
               REDLOCK_E_LIMIT);
  assert_string_equal(redlock_client_message(client), "a lock has at most 64 resources");
  assert_null(lock);
  assert_error(redlock_lock_new_many(&lock, client, resources, REDLOCK_RESOURCES_MAX, NULL),
               REDLOCK_OK);
  assert_int_equal(redlock_lock_resource_count(lock), REDLOCK_RESOURCES_MAX);
  redlock_lock_free(lock);
  names[REDLOCK_RESOURCES_MAX - 1] = 0;
  assert_error(redlock_lock_new_many(&lock, client, resources, REDLOCK_RESOURCES_MAX, NULL),
               REDLOCK_E_INVALID);
  assert_string_equal(redlock_client_message(client), "a resource is named twice");
  resources[1] = (redlock_resource){"a:redlock-fence", 15};
  assert_error(redlock_lock_new_many(&lock, client, resources, 2, NULL), REDLOCK_E_INVALID);
  assert_string_equal(
      redlock_client_message(client),
      "the name of a resource is reserved for the library: names that end in "
      "':redlock-fence', ':redlock-queue', ':redlock-reserved' or ':redlock-wait', and 'redlock:lineage'");
  redlock_client_free(client);
}

static void supplied_token_has_one_to_256_bytes(void **state) {
  char token[REDLOCK_TOKEN_MAX + 1];
  redlock_resource resource;
  redlock_client *client;
  redlock_lock *lock;
  memset(token, 'x', sizeof token);
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), NULL), REDLOCK_OK);
  assert_error(redlock_lock_give_token(NULL, token, 1), REDLOCK_E_INVALID);
  assert_error(redlock_lock_give_token(lock, NULL, 1), REDLOCK_E_INVALID);
  assert_error(redlock_lock_give_token(lock, token, 0), REDLOCK_E_INVALID);
  assert_error(redlock_lock_give_token(lock, token, REDLOCK_TOKEN_MAX + 1), REDLOCK_E_LIMIT);
  assert_error(redlock_lock_give_token(lock, token, REDLOCK_TOKEN_MAX), REDLOCK_OK);
  assert_error(redlock_lock_resource_at(lock, 0, &resource), REDLOCK_OK);
  assert_error(redlock_lock_resource_at(lock, 1, &resource), REDLOCK_E_INVALID);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void null_has_no_resource_no_data_and_no_references(void **state) {
  size_t length = 7;
  assert_null(redlock_client_ref(NULL));
  assert_null(redlock_lock_resource(NULL, NULL));
  assert_null(redlock_lock_resource(NULL, &length));
  assert_int_equal(length, 0);
  redlock_lock_set_data(NULL, &length);
  assert_null(redlock_lock_data(NULL));
}

/* ---------------------------------------------------------------------------------------- loop */

static void start_sends_nothing_before_the_next_turn(void **state) {
  world *one = *state;
  struct pollfd fds[REDLOCK_NODES_MAX];
  assert_int_equal(redlock_client_timeout(one->client), REDLOCK_NEVER);
  assert_int_equal(redlock_client_timeout_ms(one->client), -1);
  assert_int_equal(redlock_client_pollfds(one->client, fds, REDLOCK_NODES_MAX), 0);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_int_equal(redlock_client_timeout(one->client), 0);
  assert_int_equal(redlock_client_pollfds(one->client, fds, REDLOCK_NODES_MAX), 0);
  assert_error(redlock_client_process(one->client, NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_pollfds(one->client, fds, REDLOCK_NODES_MAX), 3);
  assert_int_equal(redlock_client_pollfds(one->client, fds, 1), 3); /* only one is filled in */
  assert_int_equal(redlock_client_pollfds(one->client, NULL, 0), 3);
  assert_true(redlock_client_timeout(one->client) > 0);
  assert_true(redlock_client_timeout_ms(one->client) <= 5000);
  assert_error(finish(one->client, one->farm, one->lock), REDLOCK_OK);
}

/* Turns only when the epoll descriptor says so, or time has passed. */
static void dead_majority_is_reported_and_used_again_later(void **state) {
  world *one = *state;
  redlock_node_info info;
  redlock_node_info *none = NULL;
  loopback_down(one->farm, 1);
  loopback_down(one->farm, 2);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_error(finish(one->client, one->farm, one->lock), REDLOCK_E_UNAVAILABLE);
  assert_non_null(strstr(redlock_lock_message(one->lock), "Connection refused"));
  assert_error(redlock_client_node_info(one->client, 1, &info), REDLOCK_OK);
  assert_int_equal(info.state, REDLOCK_NODE_DOWN);
  assert_string_equal(info.error, "Connection refused");
  assert_int_equal(info.latency_us, REDLOCK_NEVER);
  loopback_up(one->farm, 1);
  loopback_up(one->farm, 2);
  redlock_time until_us = redlock_now() + PATIENCE_US;
  do { /* The back-off decides when. */
    assert_true(redlock_now() < until_us);
    assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  } while (finish(one->client, one->farm, one->lock) != REDLOCK_OK);
  assert_error(redlock_client_node_info(one->client, 0, &info), REDLOCK_OK);
  assert_int_equal(info.state, REDLOCK_NODE_UP);
  assert_null(info.error);
  assert_true(info.latency_us != REDLOCK_NEVER);
  assert_error(redlock_client_node_info(one->client, 3, &info), REDLOCK_E_INVALID);
  assert_error(redlock_client_node_info(one->client, 0, none), REDLOCK_E_INVALID);
}

/* -------------------------------------------------------------------------------------- ending */

static void closing_step_reports_if_waiting_makes_sense(void **state) {
  world *one = *state;
  acquire(one->client, one->farm, one->lock);
  redlock_time until_us = redlock_now() + PATIENCE_US;
  assert_true(
      rl_client_closing(one->client, redlock_now() + MS, PATIENCE_US)); /* No server runs. */
  loopback_run(one->farm);
  while (rl_client_closing(one->client, redlock_now() + 20 * MS, PATIENCE_US)) {
    assert_true(redlock_now() < until_us);
  }
  assert_int_equal(loopback_keys(one->farm, KEY), 0);
  assert_null(one->client->callers.poller); /* Each step has ended its wait. */
  assert_int_equal(one->client->callers.count, 1);
  assert_error(redlock_client_close(one->client, 0), REDLOCK_OK);
}

static void child_removes_nothing_from_its_parents_epoll_set(void **state) {
  int status = -1;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  struct pollfd ready = {redlock_client_pollfd(client), POLLIN, 0};
  redlock_lock *lock = hold(client, farm);
  while (poll(&ready, 1, 50) == 1) {
    turn(client, farm);
  }
  pid_t child = fork();
  if (child == 0) {
    _exit(redlock_client_node_count(client) == 3 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  loopback_down(farm, 0);
  struct epoll_event events[8];
  int count = epoll_wait(ready.fd, events, 8, 5000);
  bool reported = false;
  for (int i = 0; i < count; i++) { /* The timer may be ready, too. */
    reported = reported || events[i].data.fd == client->sockets[0].fd;
  }
  assert_true(reported);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

/* One node is silent and one is down: only these two have not confirmed. */
static void close_names_exactly_the_unconfirmed_nodes(void **state) {
  world *one = *state;
  loopback_run(one->farm);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  loopback_lock(one->farm);
  one->farm->nodes[1].deaf = true;
  loopback_down(one->farm, 2);
  loopback_unlock(one->farm);
  assert_error(redlock_client_close(one->client, SECONDS), REDLOCK_E_UNAVAILABLE);
  const char *message = redlock_client_message(one->client);
  assert_null(strstr(message, one->farm->nodes[0].name));
  assert_non_null(strstr(message, one->farm->nodes[1].name));
  assert_non_null(strstr(message, one->farm->nodes[2].name));
}

static void free_releases_a_held_lock_without_waiting(void **state) {
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = hold(client, farm);
  assert_int_equal(loopback_keys(farm, KEY) >= 2, 1);
  redlock_lock_free(lock);
  wait_gone(NULL, farm); /* No further call on the client is needed. */
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void lock_keeps_its_client_alive(void **state) {
  loopback *farm = loopback_new(1, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = hold(client, farm);
  redlock_client_free(client);
  assert_true(redlock_lock_remaining(lock) > 0);
  assert_ptr_equal(redlock_lock_client(lock), client);
  redlock_lock_free(lock);
  wait_gone(NULL, farm);
  assert_true(loopback_end(farm));
}

static void close_releases_all_locks_and_refuses_operations(void **state) {
  world *one = *state;
  loopback_run(one->farm);
  redlock_lock *other;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_client_close(one->client, PATIENCE_US), REDLOCK_OK);
  assert_int_equal(loopback_keys(one->farm, KEY), 0);
  assert_int_equal(redlock_lock_remaining(one->lock), 0);
  assert_error(redlock_client_close(one->client, 0), REDLOCK_OK);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_E_CLOSED);
  assert_error(redlock_lock_extend(one->lock, 0, NULL), REDLOCK_E_CLOSED);
  assert_error(redlock_lock_release(one->lock), REDLOCK_E_CLOSED);
  assert_error(redlock_lock_new(&other, one->client, "k", 1, NULL), REDLOCK_E_CLOSED);
  assert_error(redlock_client_add(one->client, "late", NULL, 0), REDLOCK_E_CLOSED);
  assert_int_equal(redlock_client_timeout(one->client), REDLOCK_NEVER);
  assert_int_equal(redlock_client_pollfd(one->client), -1);
}

/* ---------------------------------------------------------------------------------------- fork */

static int child_of(redlock_client *client, redlock_lock *lock) {
  int failed = 0;
  failed |= redlock_lock_remaining(lock) != 0 ? 1 : 0;
  failed |= redlock_lock_token(lock)[0] != '\0' ? 2 : 0;
  failed |= redlock_lock_deadline(lock) != 0 ? 4 : 0;
  failed |= redlock_lock_release(lock) != REDLOCK_E_NOT_HELD ? 8 : 0;
  failed |= redlock_client_pollfds(client, NULL, 0) != 0 ? 16 : 0;
  redlock_lock_free(lock);
  redlock_client_free(client);
  return failed;
}

static void child_holds_and_releases_nothing(void **state) {
  static loopback *farm; /* where valgrind finds it in the child, too */
  farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = hold(client, farm);
  redlock_lock *pending = make_lock(client);
  int status = -1;
  assert_true(redlock_client_pollfd(client) >= 0);
  assert_error(redlock_lock_acquire_start(pending, NULL), REDLOCK_OK);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    int failed = redlock_lock_result(pending) == REDLOCK_E_CANCELLED ? 0 : 32;
    redlock_lock_free(pending);
    _exit(failed | child_of(client, lock));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  loopback_pump(farm, 0);
  assert_int_equal(farm->nodes[0].releases, 0);
  assert_true(redlock_lock_remaining(lock) > 0);
  assert_error(finish(client, farm, pending), REDLOCK_E_TAKEN); /* the connections are intact */
  assert_error(redlock_lock_extend_start(lock, 0), REDLOCK_OK);
  assert_error(finish(client, farm, lock), REDLOCK_OK);
  assert_int_equal(farm->nodes[0].accepted, 1);
  redlock_lock_free(pending);
  redlock_lock_free(lock);
  wait_gone(client, farm);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

/* As many threads as a machine can have. */
static void thousands_of_threads_can_wait(void **state) {
  static rl_caller *callers[5000];
  redlock_client *client;
  redlock_lock *lock;
  assert_int_equal(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_lock_new(&lock, client, "r", 1, NULL), REDLOCK_OK);
  rl_client_enter(client);
  for (unsigned i = 0; i < 5000; i++) {
    callers[i] = rl_caller_begin(client, i == 4999 ? lock : NULL);
    assert_non_null(callers[i]);
  }
  assert_ptr_equal(rl_caller_of(lock), callers[4999]);
  for (unsigned i = 0; i < 5000; i++) {
    rl_caller_end(client, callers[i]);
  }
  assert_null(rl_caller_of(lock));
  rl_client_leave(client);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void child_acquires_by_its_own_connections(void **state) {
  static loopback *farm; /* where valgrind finds it in the child, too */
  farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = hold(client, farm);
  assert_error(redlock_lock_release_start(lock), REDLOCK_OK);
  assert_error(finish(client, farm, lock), REDLOCK_OK);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    farm->served = true; /* The child has inherited the servers. */
    int error = redlock_lock_acquire(lock, NULL, NULL);
    int released = error == REDLOCK_OK ? redlock_lock_release(lock) : error;
    redlock_lock_free(lock);
    redlock_client_free(client);
    bool own = farm->nodes[0].accepted == 2;
    _exit(error == REDLOCK_OK && released == REDLOCK_OK && own ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(settings_are_checked_and_named),
      cmocka_unit_test(quorum_is_from_a_majority_to_all_nodes),
      cmocka_unit_test(fields_of_a_newer_header_are_refused),
      cmocka_unit_test(nodes_are_checked_and_named),
      cmocka_unit_test(client_refuses_the_33rd_node),
      cmocka_unit_test(keys_are_limited_with_their_prefix),
      cmocka_unit_test(missing_node_and_missing_client_differ),
      cmocka_unit_test(external_client_accepts_tls),
      cmocka_unit_test(null_is_an_error_and_no_crash),
      cmocka_unit_test(lock_has_one_to_64_different_resources),
      cmocka_unit_test(supplied_token_has_one_to_256_bytes),
      cmocka_unit_test(null_has_no_resource_no_data_and_no_references),
      ON(3, start_sends_nothing_before_the_next_turn),
      ON(3, dead_majority_is_reported_and_used_again_later),
      ON(3, closing_step_reports_if_waiting_makes_sense),
      ON(3, close_names_exactly_the_unconfirmed_nodes),
      cmocka_unit_test(free_releases_a_held_lock_without_waiting),
      cmocka_unit_test(lock_keeps_its_client_alive),
      ON(3, close_releases_all_locks_and_refuses_operations),
      cmocka_unit_test(thousands_of_threads_can_wait),
      cmocka_unit_test(child_acquires_by_its_own_connections),
#ifdef __linux__ /* epoll and timerfd */
      cmocka_unit_test(child_removes_nothing_from_its_parents_epoll_set),
      cmocka_unit_test(child_holds_and_releases_nothing),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
