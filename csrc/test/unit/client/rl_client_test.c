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
#include "client_world.h"
#include "fake_clock.h"

static const char KEY[] = "orders:42";

/* Takes one turn of the loop. The servers work while it polls. */
static void turn(redlock_client *client) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  int timeout_ms = redlock_client_timeout_ms(client);
  (void)poll(fds, (nfds_t)count, timeout_ms < 0 || timeout_ms > 2 ? 2 : timeout_ms);
  assert_error(redlock_client_process(client, fds, count), REDLOCK_OK);
}

static int finish(redlock_lock *lock) {
  redlock_client *client = redlock_lock_client(lock);
  eventually_by(turn(client), redlock_lock_result(lock) != REDLOCK_PENDING);
  return redlock_lock_result(lock);
}

static void acquire(redlock_lock *lock) {
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(finish(lock), REDLOCK_OK);
  assert_ptr_equal(redlock_client_next_ended(redlock_lock_client(lock)), lock);
}

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

static int supply_nothing(redlock_client *client, size_t node, redlock_credentials *filled,
                          void *data) {
  return REDLOCK_OK;
}

TEST(settings_are_checked_and_named) {
  static const char EITHER[] =
      "credentials supply username and password: give either one or the other";
  static const char QUORUM[] =
      "quorum must be from a majority of the nodes to all of them, at most 32";
  static const redlock_options too_short = {.ttl_us = 999};
  const struct {
    redlock_settings settings;
    const char *message;
  } rows[] = {
      {{.tls = 2}, "tls must be REDLOCK_YES or REDLOCK_NO"},
      {{.db = -2}, "db must be from 1 to 1000000, or REDLOCK_DB_ZERO"},
      {{.prefix = "p", .prefix_length = REDLOCK_KEY_MAX + 1}, "prefix must be at most 4096 bytes"},
      {{.prefix_length = 1}, "prefix must be at most 4096 bytes"},
      {{.options = &too_short}, "ttl_us must be from 1 ms to 366 days"},
      {{.quorum = -1}, QUORUM},
      {{.quorum = REDLOCK_NODES_MAX + 1}, QUORUM},
      {{.db = REDLOCK_DB_ZERO, .tls = REDLOCK_NO}, ""},
      {{.credentials = supply_nothing}, ""},
      {{.credentials = supply_nothing, .username = "u"}, EITHER},
      {{.credentials = supply_nothing, .password = "p"}, EITHER},
      {{.credentials = supply_nothing, .password = "p", .options = &too_short},
       "ttl_us must be from 1 ms to 366 days"},
  };
  char message[128];
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    assert_string_equal(wrong_settings(&rows[i].settings), rows[i].message);
  }
  assert_error(redlock_client_new(NULL, &rows[0].settings, message, sizeof message),
               REDLOCK_E_INVALID);
  assert_string_equal(message, "client is NULL");
}

/* Nodes are added after the client was made, so the first lock checks the quorum. */
TEST(quorum_is_from_a_majority_to_all_nodes) {
  for (int quorum = 0; quorum <= 6; quorum++) {
    redlock_settings settings = {.quorum = quorum};
    redlock_client *client;
    redlock_lock *lock;
    bool fits = quorum == 0 || (quorum >= 3 && quorum <= 5);
    assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
    add_nodes_without_servers(client, 5);
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
TEST(fields_of_a_newer_header_are_refused) {
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
  free_with_client(lock);
}

TEST(nodes_are_checked_and_named) {
  redlock_client *client;
  redlock_node nowhere = {0}, other = {.host = "h", .port = 6380};
  redlock_lock *lock;
  char message[128];
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  assert_error(redlock_client_add(NULL, "h", message, sizeof message), REDLOCK_E_INVALID);
  assert_string_equal(message, "client is NULL");
  assert_error(redlock_client_add_node(NULL, &other, message, sizeof message), REDLOCK_E_INVALID);
  assert_string_equal(message, "client is NULL");
  assert_error(redlock_client_add(client, NULL, message, sizeof message), REDLOCK_E_INVALID);
  assert_error(redlock_client_add(client, "h:x", message, sizeof message), REDLOCK_E_INVALID);
  assert_error(redlock_client_add_node(client, &nowhere, message, sizeof message),
               REDLOCK_E_INVALID);
  assert_error(redlock_client_add_node(client, NULL, NULL, sizeof message), REDLOCK_E_INVALID);
  assert_error(redlock_client_add_node(client, NULL, message, sizeof message), REDLOCK_E_INVALID);
  assert_string_equal(message, "node is NULL");
  assert_error(redlock_lock_new(&lock, client, "k", 1, NULL), REDLOCK_E_INVALID);
  assert_error(redlock_client_add(client, "h", message, sizeof message), REDLOCK_OK);
  assert_error(redlock_client_add(client, "redis://h:6379/3", message, sizeof message),
               REDLOCK_E_INVALID);
  assert_string_equal(message, "h:6379 is named twice");
  assert_error(redlock_client_add_node(client, &other, message, sizeof message), REDLOCK_OK);
  assert_int_equal(redlock_client_node_count(client), 2);
  assert_int_equal(redlock_client_node_count(NULL), 0);
  lock = new_lock(client, "k", NULL);
  assert_error(redlock_client_add(client, "late", message, sizeof message), REDLOCK_E_BUSY);
  assert_contains(message, "before the first lock");
  free_with_client(lock);
}

TEST(client_refuses_the_33rd_node) {
  redlock_client *client = client_without_servers(REDLOCK_NODES_MAX);
  char message[128];
  assert_error(redlock_client_add(client, "h", message, sizeof message), REDLOCK_E_LIMIT);
  assert_contains(message, "more than 32 nodes");
  redlock_client_free(client);
}

TEST(keys_are_limited_with_their_prefix) {
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

/* nginx does TLS by itself. */
TEST(external_client_accepts_tls) {
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

TEST(null_is_an_error_and_no_crash) {
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
  size_t length = 7;
  assert_null(redlock_client_ref(NULL));
  assert_null(redlock_lock_resource(NULL, NULL));
  assert_null(redlock_lock_resource(NULL, &length));
  assert_int_equal(length, 0);
  redlock_lock_set_data(NULL, &length);
  assert_null(redlock_lock_data(NULL));
}

TEST(lock_has_one_to_64_different_resources) {
  static unsigned char names[REDLOCK_RESOURCES_MAX + 1];
  redlock_resource resources[REDLOCK_RESOURCES_MAX + 1];
  redlock_lock *lock;
  redlock_client *client = client_without_servers(1);
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

TEST(supplied_token_has_one_to_256_bytes) {
  char token[REDLOCK_TOKEN_MAX + 1];
  redlock_resource resource;
  redlock_lock *lock;
  memset(token, 'x', sizeof token);
  redlock_client *client = client_without_servers(1);
  assert_error(redlock_lock_new(&lock, client, KEY, strlen(KEY), NULL), REDLOCK_OK);
  assert_error(redlock_lock_give_token(NULL, token, 1), REDLOCK_E_INVALID);
  assert_error(redlock_lock_give_token(lock, NULL, 1), REDLOCK_E_INVALID);
  assert_error(redlock_lock_give_token(lock, token, 0), REDLOCK_E_INVALID);
  assert_error(redlock_lock_give_token(lock, token, REDLOCK_TOKEN_MAX + 1), REDLOCK_E_LIMIT);
  assert_error(redlock_lock_give_token(lock, token, REDLOCK_TOKEN_MAX), REDLOCK_OK);
  assert_error(redlock_lock_resource_at(lock, 0, &resource), REDLOCK_OK);
  assert_error(redlock_lock_resource_at(lock, 1, &resource), REDLOCK_E_INVALID);
  free_with_client(lock);
}

/* ---------------------------------------------------------------------------------------- loop */

TEST(start_sends_nothing_before_the_next_turn) {
  world *one = world_new(3);
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
  assert_error(finish(one->lock), REDLOCK_OK);
}

/* Turns only when the epoll descriptor says so, or time has passed. */
TEST(dead_majority_is_reported_and_used_again_later) {
  world *one = world_new(3);
  redlock_node_info info;
  redlock_node_info *none = NULL;
  loopback_down(one->farm, 1);
  loopback_down(one->farm, 2);
  assert_error(redlock_lock_acquire_start(one->lock, NULL), REDLOCK_OK);
  assert_error(finish(one->lock), REDLOCK_E_UNAVAILABLE);
  assert_non_null(strstr(redlock_lock_message(one->lock), "Connection refused"));
  assert_error(redlock_client_node_info(one->client, 1, &info), REDLOCK_OK);
  assert_int_equal(info.state, REDLOCK_NODE_DOWN);
  assert_string_equal(info.error, "Connection refused");
  assert_int_equal(info.latency_us, REDLOCK_NEVER);
  loopback_up(one->farm, 1);
  loopback_up(one->farm, 2);
  eventually(redlock_lock_acquire_start(one->lock, NULL) == REDLOCK_OK && /* after the back-off */
             finish(one->lock) == REDLOCK_OK);
  assert_error(redlock_client_node_info(one->client, 0, &info), REDLOCK_OK);
  assert_int_equal(info.state, REDLOCK_NODE_UP);
  assert_null(info.error);
  assert_true(info.latency_us != REDLOCK_NEVER);
  assert_error(redlock_client_node_info(one->client, 3, &info), REDLOCK_E_INVALID);
  assert_error(redlock_client_node_info(one->client, 0, none), REDLOCK_E_INVALID);
}

/* -------------------------------------------------------------------------------------- ending */

TEST(closing_step_reports_if_waiting_makes_sense) {
  world *one = world_new(3);
  acquire(one->lock);
  one->farm->served = false; /* No server runs. */
  assert_true(rl_client_closing(one->client, redlock_now() + MS, 10 * SECONDS));
  one->farm->served = true;
  eventually(!rl_client_closing(one->client, redlock_now() + 20 * MS, 10 * SECONDS));
  assert_int_equal(loopback_keys(one->farm, KEY), 0);
  assert_null(one->client->callers.poller); /* Each step has ended its wait. */
  assert_int_equal(one->client->callers.count, 1);
  assert_error(redlock_client_close(one->client, 0), REDLOCK_OK);
}

LINUX_TEST(child_removes_nothing_from_its_parents_epoll_set) {
  world *one = world_new(3);
  struct pollfd ready = {redlock_client_pollfd(one->client), POLLIN, 0};
  acquire(one->lock);
  while (poll(&ready, 1, 50) == 1) {
    turn(one->client);
  }
  pid_t child = fork();
  if (child == 0) {
    _exit(redlock_client_node_count(one->client) == 3 ? 0 : 1);
  }
  assert_int_equal(exit_status(child), 0);
  loopback_down(one->farm, 0);
  struct epoll_event events[8];
  int count = epoll_wait(ready.fd, events, 8, 5000);
  bool reported = false;
  for (int i = 0; i < count; i++) { /* The timer may be ready, too. */
    reported = reported || events[i].data.fd == one->client->sockets[0].fd;
  }
  assert_true(reported);
}

/* One node is silent and one is down: only these two have not confirmed. */
TEST(close_names_exactly_the_unconfirmed_nodes) {
  world *one = world_new(3);
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  one->farm->nodes[1].deaf = true;
  stop_server(one->farm, 2);
  assert_error(redlock_client_close(one->client, SECONDS), REDLOCK_E_UNAVAILABLE);
  const char *message = redlock_client_message(one->client);
  assert_null(strstr(message, one->farm->nodes[0].name));
  assert_non_null(strstr(message, one->farm->nodes[1].name));
  assert_non_null(strstr(message, one->farm->nodes[2].name));
}

/* No further call on the client is needed. The lock keeps it alive. */
TEST(free_releases_a_held_lock_without_waiting) {
  world *one = world_new(3);
  redlock_client *client = new_client_of(one->farm, (redlock_settings){0});
  redlock_lock *lock = new_lock(client, KEY, NULL);
  redlock_client_free(client);
  acquire(lock);
  assert_ptr_equal(redlock_lock_client(lock), client);
  assert_true(loopback_keys(one->farm, KEY) >= 2);
  redlock_lock_free(lock);
  eventually(loopback_keys(one->farm, KEY) == 0);
}

TEST(close_releases_all_locks_and_refuses_operations) {
  world *one = world_new(3);
  redlock_lock *other;
  assert_error(redlock_lock_acquire(one->lock, NULL, NULL), REDLOCK_OK);
  assert_error(redlock_client_close(one->client, 10 * SECONDS), REDLOCK_OK);
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

LINUX_TEST(child_holds_and_releases_nothing) {
  world *one = world_new(3);
  acquire(one->lock);
  redlock_lock *pending = new_lock(one->client, KEY, NULL);
  assert_true(redlock_client_pollfd(one->client) >= 0);
  assert_error(redlock_lock_acquire_start(pending, NULL), REDLOCK_OK);
  pid_t child = fork();
  if (child == 0) {
    int failed = redlock_lock_result(pending) == REDLOCK_E_CANCELLED ? 0 : 32;
    redlock_lock_free(pending);
    _exit(failed | child_of(one->client, one->lock));
  }
  assert_int_equal(exit_status(child), 0);
  loopback_pump(one->farm, 0);
  assert_int_equal(one->farm->nodes[0].releases, 0);
  assert_true(redlock_lock_remaining(one->lock) > 0);
  assert_error(finish(pending), REDLOCK_E_TAKEN); /* the connections are intact */
  assert_error(redlock_lock_extend_start(one->lock, 0), REDLOCK_OK);
  assert_error(finish(one->lock), REDLOCK_OK);
  assert_int_equal(one->farm->nodes[0].accepted, 1);
  redlock_lock_free(pending);
}

/* As many threads as a machine can have. */
TEST(thousands_of_threads_can_wait) {
  static rl_caller *callers[5000];
  redlock_client *client = client_without_servers(1);
  redlock_lock *lock = new_lock(client, "r", NULL);
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
  free_with_client(lock);
}

TEST(child_acquires_by_its_own_connections) {
  world *one = world_new(3);
  acquire(one->lock);
  assert_error(redlock_lock_release_start(one->lock), REDLOCK_OK);
  assert_error(finish(one->lock), REDLOCK_OK);
  pid_t child = fork();
  if (child == 0) {
    int error = redlock_lock_acquire(one->lock, NULL, NULL);
    int released = error == REDLOCK_OK ? redlock_lock_release(one->lock) : error;
    free_with_client(one->lock);
    bool own = one->farm->nodes[0].accepted == 2;
    _exit(error == REDLOCK_OK && released == REDLOCK_OK && own ? 0 : 1);
  }
  assert_int_equal(exit_status(child), 0);
}
