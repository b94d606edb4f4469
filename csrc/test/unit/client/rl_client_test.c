/*
 * The caller-owned loop, over servers on loopback that this process runs itself.
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
  options.node_timeout_us = 5 * SECONDS; /* Nothing here depends on how fast this machine is. */
  options.ttl_us = 60 * SECONDS;
  options.retry_count = REDLOCK_RETRIES_NONE;
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), &options), REDLOCK_OK);
  return lock;
}

/* One turn of the caller's loop, and one of the servers. */
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

/* Turns until |farm| has no key any more. */
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

static redlock_lock *hold(redlock_client *client, loopback *farm) {
  redlock_lock *lock = make_lock(client);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(finish(client, farm, lock), REDLOCK_OK);
  assert_ptr_equal(redlock_client_next_ended(client), lock);
  return lock;
}

/* ----------------------------------------------------------------------------------- arguments */

/* What is wrong with |settings|; "" if nothing is. */
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
  (void)state;
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

/* Nodes are added after the client was made: it is looked at with the first lock. */
static void a_quorum_is_from_a_majority_of_the_nodes_to_all_of_them(void **state) {
  (void)state;
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

/* A caller that was compiled with an older header, whose structs end earlier. */
static void older_callers_are_served(void **state) {
  (void)state;
  redlock_client *client;
  redlock_settings settings = {.tls = REDLOCK_YES}; /* is not looked at */
  redlock_options options = {.retry_count = 7};     /* nor is this */
  redlock_node node = {.host = "h", .tls = REDLOCK_YES};
  struct {
    redlock_node_info info;
    char guard;
  } small;
  settings.options = &options;
  assert_error(redlock_client_new_sized(&client, &settings, offsetof(redlock_settings, tls),
                                        offsetof(redlock_options, retry_count), NULL, 0),
               REDLOCK_OK);
  assert_int_equal(client->core.options.retry_count, 0);
  assert_error(redlock_client_add_node_sized(client, &node, offsetof(redlock_node, tls), NULL, 0),
               REDLOCK_OK);
  memset(&small, 0x5a, sizeof small);
  assert_error(redlock_client_node_info_sized(client, 0, &small.info,
                                              offsetof(redlock_node_info, latency_us)),
               REDLOCK_OK);
  assert_string_equal(small.info.name, "h:6379");
  assert_int_equal(small.info.latency_us, 0x5a5a5a5a5a5a5a5a); /* untouched */
  redlock_client_free(client);
}

/* A caller that was compiled with a newer header: what it has set must not be ignored. */
static void what_a_newer_caller_has_set_is_refused(void **state) {
  (void)state;
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

static void a_struct_of_a_wrong_size_is_refused(void **state) {
  (void)state;
  redlock_client *client;
  redlock_settings settings = {0};
  redlock_node node = {.host = "h"};
  char message[128];
  static const size_t sizes[] = {0, 1, offsetof(redlock_settings, quorum) + 1, 4097, SIZE_MAX};
  for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
    assert_error(redlock_client_new_sized(&client, &settings, sizes[i], sizeof(redlock_options),
                                          message, sizeof message),
                 REDLOCK_E_INVALID);
    assert_non_null(strstr(message, "size of a struct"));
  }
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add_node_sized(client, &node, 1, message, sizeof message),
               REDLOCK_E_INVALID);
  assert_non_null(strstr(message, "size of a struct"));
  redlock_client_free(client);
}

static void nodes_are_checked_and_named(void **state) {
  (void)state;
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

static void the_33rd_node_is_refused(void **state) {
  (void)state;
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
  (void)state;
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

static void a_node_that_is_missing_is_told_from_a_client_that_is(void **state) {
  (void)state;
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

/* A node that says so itself, and one that leaves it to the client. */
static void a_node_that_speaks_tls_wants_a_carrier(void **state) {
  (void)state;
  redlock_client *client;
  redlock_settings settings = {.tls = REDLOCK_YES};
  redlock_node node = {.host = "h", .tls = REDLOCK_NO};
  char message[128];
  const char *wanted =
      "h:6379: TLS is in a library of its own: link with -lredlock_tls, and set transport to "
      "redlock_tls()";
  assert_error(redlock_client_new(&client, &settings, message, sizeof message), REDLOCK_OK);
  assert_error(redlock_client_add(client, "rediss://u:secret@h", message, sizeof message),
               REDLOCK_E_UNSUPPORTED);
  assert_string_equal(message, wanted);
  assert_error(redlock_client_add(client, "h", message, sizeof message), REDLOCK_E_UNSUPPORTED);
  assert_string_equal(message, wanted);
  assert_int_equal(redlock_client_node_count(client), 0);
  assert_error(redlock_client_add_node(client, &node, message, sizeof message), REDLOCK_OK);
  redlock_client_free(client);
}

/* nginx speaks TLS for us. */
static void tls_is_taken_where_another_carries_it(void **state) {
  (void)state;
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

static void closing_waits_for_nothing_when_nothing_is_owed(void **state) {
  (void)state;
  redlock_client *client;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "h", NULL, 0), REDLOCK_OK);
  redlock_time start_us = redlock_now();
  assert_error(redlock_client_close(client, 5 * SECONDS), REDLOCK_OK);
  assert_true(redlock_now() - start_us < 2 * SECONDS);
  redlock_client_free(client);
}

static void null_is_an_error_and_not_a_crash(void **state) {
  (void)state;
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

static void a_lock_has_one_to_64_resources_and_none_twice(void **state) {
  (void)state;
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
      "':redlock-fence', ':redlock-queue' or ':redlock-wait', and 'redlock:lineage'");
  redlock_client_free(client);
}

static void a_token_that_is_given_has_one_to_256_bytes(void **state) {
  (void)state;
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
  (void)state;
  size_t length = 7;
  assert_null(redlock_client_ref(NULL));
  assert_null(redlock_lock_resource(NULL, NULL));
  assert_null(redlock_lock_resource(NULL, &length));
  assert_int_equal(length, 0);
  redlock_lock_set_data(NULL, &length);
  assert_null(redlock_lock_data(NULL));
}

/* ---------------------------------------------------------------------------------------- loop */

static void starting_sends_nothing_until_the_loop_turns(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  struct pollfd fds[REDLOCK_NODES_MAX];
  assert_int_equal(redlock_client_timeout(client), REDLOCK_NEVER);
  assert_int_equal(redlock_client_timeout_ms(client), -1);
  assert_int_equal(redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX), 0);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_int_equal(redlock_client_timeout(client), 0);
  assert_int_equal(redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX), 0);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX), 3);
  assert_int_equal(redlock_client_pollfds(client, fds, 1), 3); /* only one is filled in */
  assert_int_equal(redlock_client_pollfds(client, NULL, 0), 3);
  assert_true(redlock_client_timeout(client) > 0);
  assert_true(redlock_client_timeout_ms(client) <= 5000);
  assert_error(finish(client, farm, lock), REDLOCK_OK);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void an_operation_ends_once_and_its_lock_says_how(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  int data;
  redlock_lock_set_data(lock, &data);
  assert_ptr_equal(redlock_lock_data(lock), &data);
  assert_null(redlock_client_next_ended(client));
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_E_BUSY);
  assert_error(finish(client, farm, lock), REDLOCK_OK);
  assert_ptr_equal(redlock_client_next_ended(client), lock);
  assert_null(redlock_client_next_ended(client));
  assert_true(redlock_lock_remaining(lock) > 0);
  assert_int_equal(strlen(redlock_lock_token(lock)), REDLOCK_TOKEN_LENGTH);
  assert_error(redlock_lock_extend_start(lock, 0), REDLOCK_OK);
  assert_error(finish(client, farm, lock), REDLOCK_OK);
  assert_ptr_equal(redlock_client_next_ended(client), lock);
  assert_error(redlock_lock_release_start(lock), REDLOCK_OK);
  assert_int_equal(redlock_lock_remaining(lock), 0);
  assert_error(finish(client, farm, lock), REDLOCK_OK);
  assert_ptr_equal(redlock_client_next_ended(client), lock);
  wait_gone(client, farm);
  assert_ptr_equal(redlock_lock_client(lock), client);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void a_loop_that_takes_one_at_a_time_is_woken_for_the_next(void **state) {
  (void)state;
  redlock_client *client;
  redlock_lock *one, *other;
  redlock_time until_us = redlock_now() + PATIENCE_US;
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK); /* Nobody. */
  one = make_lock(client);
  other = make_lock(client);
  struct pollfd fd = {redlock_client_pollfd(client), POLLIN, 0};
  assert_error(redlock_lock_acquire_start(one, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(other, NULL), REDLOCK_OK);
  while (redlock_lock_result(one) == REDLOCK_PENDING ||
         redlock_lock_result(other) == REDLOCK_PENDING) {
    assert_true(redlock_now() < until_us);
    (void)poll(&fd, 1, 10);
    assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  }
  assert_non_null(redlock_client_next_ended(client));
  assert_int_equal(poll(&fd, 1, 0), 1);
  assert_non_null(redlock_client_next_ended(client));
  assert_null(redlock_client_next_ended(client));
  redlock_lock_free(one);
  redlock_lock_free(other);
  redlock_client_free(client);
}

static void the_loop_may_wait_for_other_things_as_well(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  int other[2];
  assert_int_equal(pipe(other), 0);
  assert_int_equal(write(other[1], "x", 1), 1);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  redlock_time until_us = redlock_now() + PATIENCE_US;
  while (redlock_lock_result(lock) == REDLOCK_PENDING && redlock_now() < until_us) {
    struct pollfd fds[REDLOCK_NODES_MAX + 2];
    /* The library's in reverse order, between two of the caller's own. */
    struct pollfd mine[REDLOCK_NODES_MAX];
    size_t count = redlock_client_pollfds(client, mine, REDLOCK_NODES_MAX);
    fds[0] = (struct pollfd){other[0], POLLIN, 0};
    for (size_t i = 0; i < count; i++) {
      fds[1 + i] = mine[count - 1 - i];
    }
    fds[count + 1] = (struct pollfd){-1, 0, 0};
    (void)poll(fds, (nfds_t)count + 2, 1);
    assert_error(redlock_client_process(client, fds, count + 2), REDLOCK_OK);
    loopback_pump(farm, 0);
  }
  assert_error(redlock_lock_result(lock), REDLOCK_OK);
  (void)close(other[0]);
  (void)close(other[1]);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

/* Turns only when the epoll descriptor says so, or time has passed. */
static int finish_by_epoll(redlock_client *client, loopback *farm, redlock_lock *lock, int fd) {
  redlock_time until_us = redlock_now() + PATIENCE_US;
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    struct pollfd ready = {fd, POLLIN, 0};
    assert_true(redlock_now() < until_us);
    assert_int_equal(redlock_client_pollfd(client), fd);
    if (redlock_client_timeout(client) == 0 || poll(&ready, 1, 1) > 0) {
      assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
    }
    loopback_pump(farm, 0);
  }
  return redlock_lock_result(lock);
}

static void one_descriptor_stands_for_all_across_reconnections(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    loopback *farm = loopback_new(3, kind == 0 ? LOOPBACK_UNIX : LOOPBACK_UNIX);
    redlock_client *client = make_client(farm);
    redlock_lock *lock = make_lock(client);
    int fd = redlock_client_pollfd(client);
    assert_true(fd >= 0);
    for (unsigned round = 0; round < 4; round++) {
      assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
      assert_error(finish_by_epoll(client, farm, lock, fd), REDLOCK_OK);
      assert_error(redlock_lock_release_start(lock), REDLOCK_OK);
      assert_error(finish_by_epoll(client, farm, lock, fd), REDLOCK_OK);
      /* All nodes hang up. The new sockets often have the numbers of the old ones. */
      for (unsigned i = 0; i < 3; i++) {
        loopback_down(farm, i);
        loopback_up(farm, i);
      }
      redlock_time until_us = redlock_now() + PATIENCE_US;
      redlock_node_info info;
      do {
        struct pollfd ready = {fd, POLLIN, 0};
        assert_true(redlock_now() < until_us);
        if (poll(&ready, 1, 1) > 0 || redlock_client_timeout(client) == 0) {
          assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
        }
        loopback_pump(farm, 0);
        unsigned up = 0;
        for (unsigned i = 0; i < 3; i++) {
          assert_error(redlock_client_node_info(client, i, &info), REDLOCK_OK);
          up += info.state == REDLOCK_NODE_UP && farm->nodes[i].accepted >= round + 2;
        }
        if (up == 3) {
          break;
        }
      } while (true);
    }
    redlock_lock_free(lock);
    redlock_client_free(client);
    assert_true(loopback_end(farm));
  }
}

static void a_dead_majority_is_reported_and_used_again_when_it_is_back(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  redlock_node_info info;
  redlock_node_info *none = NULL;
  loopback_down(farm, 1);
  loopback_down(farm, 2);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(finish(client, farm, lock), REDLOCK_E_UNAVAILABLE);
  assert_non_null(strstr(redlock_lock_message(lock), "Connection refused"));
  assert_error(redlock_client_node_info(client, 1, &info), REDLOCK_OK);
  assert_int_equal(info.state, REDLOCK_NODE_DOWN);
  assert_string_equal(info.error, "Connection refused");
  assert_int_equal(info.latency_us, REDLOCK_NEVER);
  loopback_up(farm, 1);
  loopback_up(farm, 2);
  redlock_time until_us = redlock_now() + PATIENCE_US;
  do { /* The back-off decides when. */
    assert_true(redlock_now() < until_us);
    assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  } while (finish(client, farm, lock) != REDLOCK_OK);
  assert_error(redlock_client_node_info(client, 0, &info), REDLOCK_OK);
  assert_int_equal(info.state, REDLOCK_NODE_UP);
  assert_null(info.error);
  assert_true(info.latency_us != REDLOCK_NEVER);
  assert_error(redlock_client_node_info(client, 3, &info), REDLOCK_E_INVALID);
  assert_error(redlock_client_node_info(client, 0, none), REDLOCK_E_INVALID);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void a_cancelled_acquire_leaves_nothing(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *warm = hold(client, farm);
  assert_error(redlock_lock_release_start(warm), REDLOCK_OK);
  assert_error(finish(client, farm, warm), REDLOCK_OK);
  assert_ptr_equal(redlock_client_next_ended(client), warm);
  assert_error(redlock_lock_acquire_start(warm, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK); /* The commands are out. */
  redlock_lock_cancel(warm);
  assert_error(redlock_lock_result(warm), REDLOCK_E_CANCELLED);
  assert_ptr_equal(redlock_client_next_ended(client), warm);
  redlock_time until_us = redlock_now() + PATIENCE_US;
  while (farm->nodes[0].sets < 2 || farm->nodes[0].releases < 2) {
    assert_true(redlock_now() < until_us);
    turn(client, farm);
  }
  wait_gone(client, farm);
  redlock_lock_free(warm);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

/* -------------------------------------------------------------------------------------- ending */

static void closing_in_steps_tells_whether_there_is_more_to_wait_for(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = hold(client, farm);
  redlock_time until_us = redlock_now() + PATIENCE_US;
  assert_true(rl_client_closing(client, redlock_now() + MS, PATIENCE_US)); /* No server runs. */
  loopback_run(farm);
  while (rl_client_closing(client, redlock_now() + 20 * MS, PATIENCE_US)) {
    assert_true(redlock_now() < until_us);
  }
  assert_int_equal(loopback_keys(farm, KEY), 0);
  assert_null(client->wait.leader); /* Each step has given back what it waited with. */
  assert_int_equal(client->wait.made_count, 1);
  assert_error(redlock_client_close(client, 0), REDLOCK_OK);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void a_forked_child_takes_nothing_out_of_its_parents_epoll_set(void **state) {
  (void)state;
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
  bool told = false;
  for (int i = 0; i < count; i++) { /* The timer may have come as well. */
    told = told || events[i].data.fd == client->sockets[0].fd;
  }
  assert_true(told);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

/* One owes an answer, one is not there: of those two, and of no other, a release is left behind. */
static void close_names_the_nodes_that_have_not_confirmed_and_no_other(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  loopback_run(farm);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  loopback_lock(farm);
  farm->nodes[1].deaf = true;
  loopback_down(farm, 2);
  loopback_unlock(farm);
  assert_error(redlock_client_close(client, SECONDS), REDLOCK_E_UNAVAILABLE);
  const char *message = redlock_client_message(client);
  assert_null(strstr(message, farm->nodes[0].name));
  assert_non_null(strstr(message, farm->nodes[1].name));
  assert_non_null(strstr(message, farm->nodes[2].name));
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void freeing_a_held_lock_releases_it_without_waiting(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = hold(client, farm);
  assert_int_equal(loopback_keys(farm, KEY) >= 2, 1);
  redlock_lock_free(lock);
  wait_gone(NULL, farm); /* No further call on the client is needed. */
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void a_lock_keeps_its_client(void **state) {
  (void)state;
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

static void closing_releases_and_refuses_everything_later(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  loopback_run(farm);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  redlock_lock *other;
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_client_close(client, PATIENCE_US), REDLOCK_OK);
  assert_int_equal(loopback_keys(farm, KEY), 0);
  assert_int_equal(redlock_lock_remaining(lock), 0);
  assert_error(redlock_client_close(client, 0), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_CLOSED);
  assert_error(redlock_lock_extend(lock, 0, NULL), REDLOCK_E_CLOSED);
  assert_error(redlock_lock_release(lock), REDLOCK_E_CLOSED);
  assert_error(redlock_lock_new(&other, client, "k", 1, NULL), REDLOCK_E_CLOSED);
  assert_error(redlock_client_add(client, "late", NULL, 0), REDLOCK_E_CLOSED);
  assert_int_equal(redlock_client_timeout(client), REDLOCK_NEVER);
  assert_int_equal(redlock_client_pollfd(client), -1);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void closing_says_when_not_all_was_confirmed(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = hold(client, farm);
  redlock_time start_us = redlock_now();
  assert_error(redlock_client_close(client, 20 * MS), REDLOCK_E_UNAVAILABLE); /* nobody pumps */
  const char *message = redlock_client_message(client);
  assert_non_null(strstr(message, "not all nodes confirmed the releases in time: unix:/"));
  assert_non_null(strstr(message, "/0, unix:/"));
  assert_non_null(strstr(message, "/2"));
  assert_true(redlock_now() - start_us >= 20 * MS);
  wait_gone(NULL, farm);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
}

static void an_operation_in_flight_ends_as_closed(void **state) {
  (void)state;
  loopback *farm = loopback_new(3, LOOPBACK_UNIX);
  redlock_client *client = make_client(farm);
  redlock_lock *lock = make_lock(client);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  (void)redlock_client_close(client, 0);
  assert_error(redlock_lock_result(lock), REDLOCK_E_CLOSED);
  assert_ptr_equal(redlock_client_next_ended(client), lock);
  redlock_lock_free(lock);
  redlock_client_free(client);
  assert_true(loopback_end(farm));
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

static void a_child_holds_nothing_and_releases_nothing(void **state) {
  (void)state;
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

/* Any number of threads, as redlock.h says: as many as a machine has. */
static void thousands_of_calls_wait_at_once(void **state) {
  (void)state;
  static rl_waiter *waiters[5000];
  redlock_client *client;
  redlock_lock *lock;
  assert_int_equal(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_lock_new(&lock, client, "r", 1, NULL), REDLOCK_OK);
  rl_client_enter(client);
  for (unsigned i = 0; i < 5000; i++) {
    waiters[i] = rl_wait_begin(client, i == 4999 ? lock : NULL);
    assert_non_null(waiters[i]);
  }
  assert_ptr_equal(rl_wait_of(lock), waiters[4999]);
  for (unsigned i = 0; i < 5000; i++) {
    rl_wait_end(client, waiters[i]);
  }
  assert_null(rl_wait_of(lock));
  rl_client_leave(client);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void a_child_can_lock_with_connections_of_its_own(void **state) {
  (void)state;
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
      cmocka_unit_test(a_quorum_is_from_a_majority_of_the_nodes_to_all_of_them),
      cmocka_unit_test(older_callers_are_served),
      cmocka_unit_test(what_a_newer_caller_has_set_is_refused),
      cmocka_unit_test(a_struct_of_a_wrong_size_is_refused),
      cmocka_unit_test(nodes_are_checked_and_named),
      cmocka_unit_test(the_33rd_node_is_refused),
      cmocka_unit_test(keys_are_limited_with_their_prefix),
      cmocka_unit_test(a_node_that_is_missing_is_told_from_a_client_that_is),
      cmocka_unit_test(a_node_that_speaks_tls_wants_a_carrier),
      cmocka_unit_test(tls_is_taken_where_another_carries_it),
      cmocka_unit_test(closing_waits_for_nothing_when_nothing_is_owed),
      cmocka_unit_test(null_is_an_error_and_not_a_crash),
      cmocka_unit_test(a_lock_has_one_to_64_resources_and_none_twice),
      cmocka_unit_test(a_token_that_is_given_has_one_to_256_bytes),
      cmocka_unit_test(null_has_no_resource_no_data_and_no_references),
      cmocka_unit_test(starting_sends_nothing_until_the_loop_turns),
      cmocka_unit_test(an_operation_ends_once_and_its_lock_says_how),
      cmocka_unit_test(a_loop_that_takes_one_at_a_time_is_woken_for_the_next),
      cmocka_unit_test(the_loop_may_wait_for_other_things_as_well),
      cmocka_unit_test(one_descriptor_stands_for_all_across_reconnections),
      cmocka_unit_test(a_dead_majority_is_reported_and_used_again_when_it_is_back),
      cmocka_unit_test(a_cancelled_acquire_leaves_nothing),
      cmocka_unit_test(closing_in_steps_tells_whether_there_is_more_to_wait_for),
      cmocka_unit_test(a_forked_child_takes_nothing_out_of_its_parents_epoll_set),
      cmocka_unit_test(close_names_the_nodes_that_have_not_confirmed_and_no_other),
      cmocka_unit_test(freeing_a_held_lock_releases_it_without_waiting),
      cmocka_unit_test(a_lock_keeps_its_client),
      cmocka_unit_test(closing_releases_and_refuses_everything_later),
      cmocka_unit_test(closing_says_when_not_all_was_confirmed),
      cmocka_unit_test(an_operation_in_flight_ends_as_closed),
      cmocka_unit_test(a_child_holds_nothing_and_releases_nothing),
      cmocka_unit_test(thousands_of_calls_wait_at_once),
      cmocka_unit_test(a_child_can_lock_with_connections_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
