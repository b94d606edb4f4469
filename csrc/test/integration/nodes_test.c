/*
 * Nodes that hang, crash, return or never existed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"
#include "wire/rl_command.h"

#define BRIEF_US MS(200)
/* After 3 s without a reply a connection ends, and no call waits for its node. */
#define SOON_US MS(2000)

static int start(void **state) {
  /* A write precedes its reply, so that it survives a SIGKILL. */
  static const char *const keeping[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};
  farm_start(&five, 5, keeping);
  return 0;
}

/* Deletes the data of a node, its file included. */
static void lose_data(unsigned node) {
  assert_string_equal(farm_command(&five, node, "FLUSHALL", "SYNC", NULL), "OK");
}

static bool on_nodes(unsigned count, redlock_lock *lock, const char *key) {
  return farm_count(&five, key, redlock_lock_token(lock)) == count;
}

static unsigned keys_of(unsigned node) {
  const char *size = farm_command(&five, node, "DBSIZE", NULL);
  return size == NULL ? 0 : (unsigned)strtoul(size, NULL, 10);
}

/* Operations on nodes that do not answer end soon. */
static redlock_options brief(void) {
  redlock_options options = once();
  options.node_timeout_us = BRIEF_US;
  return options;
}

/* Operations end only when nodes answer or connections end. */
static redlock_options endless(void) {
  redlock_options options = once();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  return options;
}

/*
 * Returns a held lock whose operations end soon. On a loaded machine its first attempts may time
 * out.
 */
static redlock_lock *held_briefly(redlock_client *client, const char *resource) {
  redlock_options options = brief();
  redlock_lock *lock;
  assert_int_equal(redlock_lock_new(&lock, client, resource, strlen(resource), &options),
                   REDLOCK_OK);
  eventually(redlock_lock_acquire(lock, NULL, NULL) == REDLOCK_OK);
  return lock;
}

/* ----------------------------------------------------------------------------------- all up */

static void lock_is_on_every_node(void **state) {
  for (unsigned count = 1; count <= 5; count++) {
    redlock_client *client = client_of(&five, count, NULL);
    redlock_lock *lock = new_lock(client, "r");
    redlock_duration validity_us = 0;
    assert_ok(lock, redlock_lock_acquire(lock, NULL, &validity_us));
    assert_between(validity_us, MS(30000), MS(60000 - 600 - 2));
    pump_until(client, on_nodes(count, lock, "r"));
    redlock_client *other = client_of(&five, count, NULL);
    redlock_lock *second = new_lock(other, "r");
    assert_int_equal(redlock_lock_acquire(second, NULL, NULL), REDLOCK_E_TAKEN);
    assert_contains(redlock_lock_message(second), "taken");
    assert_ok(lock, redlock_lock_extend(lock, MS(120000), &validity_us));
    assert_between(validity_us, MS(60000), MS(120000 - 1200 - 2));
    assert_ok(lock, redlock_lock_release(lock));
    pump_until(client, farm_count(&five, "r", NULL) == 0);
    redlock_lock_free(second);
    redlock_client_free(other);
    free_with_client(lock);
  }
}

static void half_of_the_nodes_is_no_majority(void **state) {
  redlock_client *client = client_of(&five, 4, NULL);
  redlock_lock *lock = new_lock(client, "r");
  farm_command(&five, 0, "SET", "r", "another", NULL);
  farm_command(&five, 1, "SET", "r", "another", NULL);
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_TAKEN);
  pump_until(client, farm_count(&five, "r", NULL) == 2);
  farm_command(&five, 1, "DEL", "r", NULL);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  free_with_client(lock);
}

/* ------------------------------------------------------------------------------- hung nodes */

#define PAIRS 50

/* No acquire and no release waits for the first |stopped| nodes, which hang. */
static void check_hung_nodes(unsigned stopped) {
  redlock_options options = endless();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "r");
  warm_up(client);
  for (unsigned i = 0; i < stopped; i++) {
    farm_stop(&five, i);
  }
  for (unsigned i = 0; i < PAIRS; i++) {
    redlock_time before_us = stopwatch();
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    assert_ok(lock, redlock_lock_release(lock));
    assert_took(before_us, 0, SOON_US);
  }
  /* The commands that arrive now cancel each other, and the client uses the nodes again. */
  for (unsigned i = 0; i < stopped; i++) {
    farm_continue(&five, i);
  }
  pump_until(client, all_up(client) && farm_count(&five, "r", NULL) == 0);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  pump_until(client, on_nodes(5, lock, "r"));
  for (unsigned i = 0; i < stopped; i++) {
    assert_true(farm_calls(&five, i, "set") > 0);
  }
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

static void two_hung_nodes_of_five_cost_nothing(void **state) {
  check_hung_nodes(1);
  (void)five_reset(state);
  check_hung_nodes(2);
}

static void nodes_that_hang_before_connecting_cost_nothing(void **state) {
  farm_stop(&five, 0);
  farm_stop(&five, 3);
  redlock_options options = endless();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_time before_us = stopwatch();
  redlock_lock *lock = held_lock(client, "r");
  assert_ok(lock, redlock_lock_release(lock));
  /* A first acquire waits four times as long as the majority took: a delay counts five times. */
  assert_took(before_us, 0, SOON_US + 4 * witness_delay_us(before_us));
  farm_continue(&five, 0);
  farm_continue(&five, 3);
  pump_until(client, all_up(client) && farm_count(&five, "r", NULL) == 0);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  pump_until(client, on_nodes(5, lock, "r"));
  free_with_client(lock);
}

static void late_node_is_backfilled(void **state) {
  farm_stop(&five, 4);
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, on_nodes(4, lock, "r"));
  farm_continue(&five, 4);
  pump_until(client, on_nodes(5, lock, "r"));
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, farm_count(&five, "r", NULL) == 0);

  farm_stop(&five, 4); /* A released lock is not backfilled. */
  redlock_client *other = client_of(&five, 5, NULL);
  redlock_lock *short_lived = held_lock(other, "s");
  assert_ok(short_lived, redlock_lock_release(short_lived));
  farm_continue(&five, 4);
  pump_until(other, all_up(other));
  assert_int_equal(farm_count(&five, "s", NULL), 0);
  redlock_lock_free(short_lived);
  redlock_client_free(other);
  free_with_client(lock);
}

static void late_set_leaves_no_key(void **state) {
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  for (unsigned i = 0; i < 3; i++) {
    farm_stop(&five, i);
  }
  redlock_lock *lock = new_lock(client, "late");
  redlock_options options = brief();
  assert_int_equal(redlock_lock_acquire(lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  redlock_lock_free(lock);
  for (unsigned i = 0; i < 3; i++) {
    farm_continue(&five, i);
  }
  /* Both commands are in flight: the client need not be called. */
  for (unsigned i = 0; i < 3; i++) {
    eventually(farm_calls(&five, i, "set") == 2 && farm_calls(&five, i, "del") == 2);
  }
  eventually(farm_count(&five, "late", NULL) == 0);
  redlock_client_free(client);
}

static void three_hung_nodes_of_five_end_calls_in_time(void **state) {
  redlock_options options = brief();
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  for (unsigned i = 1; i < 4; i++) {
    farm_stop(&five, i);
  }
  redlock_lock *lock = new_lock(client, "r");
  redlock_time before_us = stopwatch();
  assert_int_equal(redlock_lock_acquire(lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  assert_took(before_us, BRIEF_US, BRIEF_US + MS(250));
  assert_int_equal(redlock_lock_remaining(lock), 0);
  const char *message = redlock_lock_message(lock);
  for (unsigned i = 1; i < 4; i++) {
    char part[128];
    (void)snprintf(part, sizeof part, "%s: no reply", five.nodes[i].address);
    assert_contains(message, part);
    assert_int_equal(vote_of(lock, i), REDLOCK_VOTE_UNKNOWN);
  }
  memset(&options, 0, sizeof options);
  options.wait_us = MS(400);
  before_us = redlock_now();
  assert_int_equal(redlock_lock_acquire(lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  assert_took(before_us, MS(100), MS(650));
  for (unsigned i = 1; i < 4; i++) {
    farm_continue(&five, i);
  }
  pump_until(client, all_up(client));
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  pump_until(client, on_nodes(5, lock, "r"));
  free_with_client(lock);
}

/* ---------------------------------------------------------------------------- missing nodes */

static void refused_nodes_are_named(void **state) {
  char refused[3][32];
  const char *addresses[5] = {five.nodes[0].address, five.nodes[1].address, refused[0], refused[1],
                              refused[2]};
  for (unsigned i = 0; i < 3; i++) {
    (void)snprintf(refused[i], sizeof refused[i], "127.0.0.1:%d", farm_free_port());
  }
  redlock_client *client = client_at(addresses, 5, NULL);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time before_us = stopwatch();
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_took(before_us, 0, SOON_US); /* No refused node is waited for. */
  for (unsigned i = 0; i < 3; i++) {
    char part[128];
    (void)snprintf(part, sizeof part, "%s: Connection refused", refused[i]);
    assert_contains(redlock_lock_message(lock), part);
    assert_int_equal(vote_of(lock, 2 + i), REDLOCK_VOTE_ERROR);
  }
  free_with_client(lock);
  eventually(farm_count(&five, "r", NULL) == 0);

  addresses[2] = five.nodes[2].address;
  client = client_at(addresses, 5, NULL);
  lock = held_lock(client, "r");
  pump_until(client, on_nodes(3, lock, "r"));
  free_with_client(lock);
}

static void two_killed_nodes_are_used_again(void **state) {
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  farm_kill(&five, 0);
  farm_kill(&five, 4);
  for (unsigned i = 0; i < 50; i++) {
    redlock_lock *lock = held_lock(client, "r");
    assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
    assert_ok(lock, redlock_lock_release(lock));
    redlock_lock_free(lock);
  }
  redlock_node_info info;
  assert_int_equal(redlock_client_node_info(client, 4, &info), REDLOCK_OK);
  assert_int_not_equal(info.state, REDLOCK_NODE_UP);
  assert_non_null(info.error);
  farm_restart(&five, 0);
  farm_restart(&five, 4);
  pump_until(client, farm_connections(&five, 0) == 1 && farm_connections(&five, 4) == 1);
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, on_nodes(5, lock, "r"));
  free_with_client(lock);
}

static void three_killed_nodes_end_calls_at_once(void **state) {
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  for (unsigned i = 2; i < 5; i++) {
    farm_kill(&five, i);
  }
  redlock_lock *lock = new_lock(client, "r");
  for (unsigned tries = 0; tries < 3; tries++) {
    redlock_time before_us = stopwatch();
    assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
    assert_took(before_us, 0, SOON_US); /* No refused node is waited for. */
  }
  for (unsigned i = 2; i < 5; i++) {
    assert_contains(redlock_lock_message(lock), five.nodes[i].address);
  }
  assert_contains(redlock_lock_message(lock), "Connection refused");
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  for (unsigned i = 2; i < 5; i++) {
    farm_restart(&five, i);
  }
  pump_until(client, all_up(client));
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  pump_until(client, on_nodes(5, lock, "r"));
  free_with_client(lock);
}

static void lease_survives_restarts_of_its_nodes(void **state) {
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, on_nodes(5, lock, "r"));
  lose_data(0);
  farm_kill(&five, 0); /* This node returns without data, */
  farm_kill(&five, 1); /* these with all data. */
  farm_kill(&five, 2);
  for (unsigned i = 0; i < 3; i++) {
    farm_restart(&five, i);
  }
  assert_int_equal(farm_count(&five, "r", redlock_lock_token(lock)), 4);
  assert_true(redlock_lock_remaining(lock) > 0);
  pump_until(client, all_up(client));
  assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
  pump_until(client, on_nodes(5, lock, "r"));
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  free_with_client(lock);
}

/* -------------------------------------------------------------------- releasing what is down */

typedef enum outage {
  HUNG,
  KILLED,
  HUNG_THEN_KILLED /* It is unknown whether the node has executed the release. */
} outage;

static void check_release_after(outage kind) {
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  redlock_lock *lock = held_briefly(client, "r");
  pump_until(client, on_nodes(5, lock, "r"));
  for (unsigned i = 0; i < 3; i++) {
    (kind == KILLED ? farm_kill : farm_stop)(&five, i);
  }
  redlock_time before_us = stopwatch();
  assert_int_equal(redlock_lock_release(lock), REDLOCK_E_UNAVAILABLE);
  assert_took(before_us, kind == KILLED ? 0 : BRIEF_US, BRIEF_US + MS(250));
  assert_int_equal(redlock_lock_remaining(lock), 0);
  assert_contains(redlock_lock_message(lock), five.nodes[1].address);
  if (kind == HUNG) {
    for (unsigned i = 0; i < 3; i++) {
      farm_continue(&five, i);
    }
    pump_until(client, redlock_lock_release(lock) == REDLOCK_OK);
    assert_int_equal(redlock_lock_release(lock), REDLOCK_E_NOT_HELD);
  }
  redlock_lock_free(lock); /* The client continues without the lock. */
  for (unsigned i = 0; i < 3 && kind != HUNG; i++) {
    farm_kill(&five, i);
    farm_restart(&five, i);
    assert_int_equal(keys_of(i), 1);
  }
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  redlock_client_free(client);
}

static void release_reaches_nodes_when_they_return(void **state) {
  for (outage kind = HUNG; kind <= HUNG_THEN_KILLED; kind++) {
    check_release_after(kind);
    (void)five_reset(state);
  }
}

static void release_succeeds_with_two_nodes_down(void **state) {
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, on_nodes(5, lock, "r"));
  farm_kill(&five, 0);
  farm_stop(&five, 1);
  assert_ok(lock, redlock_lock_release(lock));
  farm_continue(&five, 1);
  farm_restart(&five, 0);
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  free_with_client(lock);
}

/* ---------------------------------------------------------------------------- scripts flushed */

static void flush_all_scripts(void) {
  for (unsigned i = 0; i < five.count; i++) {
    assert_string_equal(farm_command(&five, i, "SCRIPT", "FLUSH", NULL), "OK");
  }
}

static void flush_until(int stop_fd) {
  struct pollfd stop = {stop_fd, POLLIN, 0};
  while (poll(&stop, 1, 0) == 0) {
    flush_all_scripts();
  }
}

static void scripts_may_be_flushed_during_operations(void **state) {
  int fds[2];
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  assert_int_equal(pipe(fds), 0);
  pid_t flusher = fork();
  assert_true(flusher >= 0);
  if (flusher == 0) {
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1);
    flush_until(fds[0]);
    _exit(0);
  }
  for (unsigned pairs = 0; pairs < 60 || farm_calls(&five, 0, "eval") == 0; pairs++) {
    redlock_lock *lock = held_lock(client, "r");
    assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
    assert_ok(lock, redlock_lock_release(lock));
    redlock_lock_free(lock);
  }
  assert_true(write(fds[1], "", 1) == 1);
  int status;
  assert_int_equal(waitpid(flusher, &status, 0), flusher);
  assert_int_equal(status, 0);
  (void)close(fds[0]);
  (void)close(fds[1]);
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  redlock_client_free(client);
}

/* Returns true if the key disappears soon, although no client is called. */
static bool disappears(const char *key) {
  redlock_time until_us = redlock_now() + REDLOCK_SECONDS;
  while (farm_count(&five, key, NULL) > 0) {
    if (redlock_now() > until_us) {
      return false;
    }
    (void)poll(NULL, 0, 2);
  }
  return true;
}

typedef enum ending { BY_CLOSE, BY_RELEASE, BY_FREE } ending;

static bool is_released(ending way) {
  flush_all_scripts();
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  flush_all_scripts();
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, farm_count(&five, "r", NULL) == 5);
  if (way == BY_CLOSE) {
    assert_int_equal(redlock_client_close(client, EVENTUALLY_US), REDLOCK_OK);
  } else if (way == BY_RELEASE) {
    assert_ok(lock, redlock_lock_release(lock));
  }
  free_with_client(lock);
  return disappears("r");
}

/*
 * redlock_client_free() waits for 100 ms at most. A slow machine may need longer: then try again.
 */
static void freed_client_releases_without_known_scripts(void **state) {
  for (ending way = BY_CLOSE; way <= BY_FREE; way++) {
    for (unsigned tries = 0; !is_released(way); tries++) {
      assert_true(way != BY_CLOSE && tries < 20);
      (void)five_reset(state);
    }
  }
}

/* It was sent before an extend, on a connection that has ended since. */
static void late_backfill_of_several_keys_shortens_none(void **state) {
  const char *heal = rl_script_text(RL_SCRIPT_HEAL_ALL);
  assert_string_equal(farm_command(&five, 0, "SET", "a", "token", "PX", "60000", NULL), "OK");
  assert_string_equal(farm_command(&five, 0, "SET", "b", "token", "PX", "500", NULL), "OK");
  assert_string_equal(
      farm_command(&five, 0, "EVAL", heal, "3", "a", "b", "c", "token", "20000", NULL), "OK");
  static const char *const keys[] = {"a", "b", "c"};
  for (unsigned i = 0; i < 3; i++) {
    long left_ms = strtol(farm_command(&five, 0, "PTTL", keys[i], NULL), NULL, 10);
    assert_between(left_ms, i == 0 ? 30000 : 10000, i == 0 ? 60000 : 20000);
    assert_string_equal(farm_command(&five, 0, "GET", keys[i], NULL), "token");
  }
}

static redlock_node_info info_of(redlock_client *client, size_t node) {
  redlock_node_info info;
  assert_int_equal(redlock_client_node_info(client, node, &info), REDLOCK_OK);
  return info;
}

/* Acquires and releases a lock, and returns true if the node is up. */
static bool is_up_after_use(redlock_client *client, size_t node) {
  warm_up(client);
  pump(client, 2);
  return info_of(client, node).state == REDLOCK_NODE_UP;
}

static void replica_is_reported_down_until_it_is_a_master(void **state) {
  char port[16];
  redlock_client *client = client_of(&five, 3, NULL);
  warm_up(client);
  pump_until(client, all_up(client));
  (void)snprintf(port, sizeof port, "%d", five.nodes[4].port);
  assert_string_equal(farm_command(&five, 0, "REPLICAOF", "127.0.0.1", port, NULL), "OK");
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, info_of(client, 0).state == REDLOCK_NODE_DOWN);
  assert_contains(info_of(client, 0).error, "READONLY");
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  eventually(!is_up_after_use(client, 0)); /* while it stays a replica */
  assert_string_equal(farm_command(&five, 0, "REPLICAOF", "NO", "ONE", NULL), "OK");
  eventually(is_up_after_use(client, 0));
  assert_null(info_of(client, 0).error);
  redlock_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup(name, five_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(lock_is_on_every_node),
      TEST(half_of_the_nodes_is_no_majority),
      TEST(two_hung_nodes_of_five_cost_nothing),
      TEST(nodes_that_hang_before_connecting_cost_nothing),
      TEST(late_node_is_backfilled),
      TEST(late_set_leaves_no_key),
      TEST(three_hung_nodes_of_five_end_calls_in_time),
      TEST(refused_nodes_are_named),
      TEST(two_killed_nodes_are_used_again),
      TEST(three_killed_nodes_end_calls_at_once),
      TEST(lease_survives_restarts_of_its_nodes),
      TEST(release_reaches_nodes_when_they_return),
      TEST(release_succeeds_with_two_nodes_down),
      TEST(scripts_may_be_flushed_during_operations),
      TEST(freed_client_releases_without_known_scripts),
      TEST(late_backfill_of_several_keys_shortens_none),
      TEST(replica_is_reported_down_until_it_is_a_master),
  };
  return cmocka_run_group_tests(tests, start, five_end);
}
