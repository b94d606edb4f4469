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

/* ------------------------------------------------------------------------------- hung nodes */

#define PAIRS 50

/* No acquire and no release waits for the first |stopped| nodes, which hang. */
static void check_hung_nodes(unsigned stopped) {
  redlock_options options = endless();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "r");
  warm_up(client);
  farm_each(&five, 0, stopped, farm_stop);
  for (unsigned i = 0; i < PAIRS; i++) {
    redlock_time before_us = stopwatch();
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    assert_ok(lock, redlock_lock_release(lock));
    assert_took(before_us, 0, SOON_US);
  }
  /* The commands that arrive now cancel each other, and the client uses the nodes again. */
  farm_each(&five, 0, stopped, farm_continue);
  pump_until(client, all_up(client) && farm_count(&five, "r", NULL) == 0);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  pump_until(client, on_nodes(5, lock, "r"));
  for (unsigned i = 0; i < stopped; i++) {
    assert_true(farm_calls(&five, i, "set") > 0);
  }
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

TEST(two_hung_nodes_of_five_cost_nothing) {
  check_hung_nodes(1);
  (void)five_reset(state);
  check_hung_nodes(2);
}

TEST(late_node_is_backfilled) {
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

TEST(late_set_leaves_no_key) {
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  farm_each(&five, 0, 3, farm_stop);
  redlock_lock *lock = new_lock(client, "late");
  redlock_options options = brief();
  assert_int_equal(redlock_lock_acquire(lock, &options, NULL), REDLOCK_E_UNAVAILABLE);
  redlock_lock_free(lock);
  farm_each(&five, 0, 3, farm_continue);
  /* Both commands are in flight: the client need not be called. */
  for (unsigned i = 0; i < 3; i++) {
    eventually(farm_calls(&five, i, "set") == 2 && farm_calls(&five, i, "del") == 2);
  }
  eventually(farm_count(&five, "late", NULL) == 0);
  redlock_client_free(client);
}

TEST(three_hung_nodes_of_five_end_calls_in_time) {
  redlock_options options = brief();
  redlock_client *client = client_of(&five, 5, NULL);
  warm_up(client);
  farm_each(&five, 1, 4, farm_stop);
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
  farm_each(&five, 1, 4, farm_continue);
  pump_until(client, all_up(client));
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  pump_until(client, on_nodes(5, lock, "r"));
  free_with_client(lock);
}

/* ---------------------------------------------------------------------------- missing nodes */

TEST(refused_nodes_are_named) {
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
    farm_each(&five, 0, 3, farm_continue);
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

TEST(release_reaches_nodes_when_they_return) {
  for (outage kind = HUNG; kind <= HUNG_THEN_KILLED; kind++) {
    check_release_after(kind);
    (void)five_reset(state);
  }
}

/* ---------------------------------------------------------------------------- scripts flushed */

static void flush_all_scripts(void) {
  farm_command_all(&five, "SCRIPT", "FLUSH", NULL);
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
TEST(freed_client_releases_without_known_scripts) {
  for (ending way = BY_CLOSE; way <= BY_FREE; way++) {
    for (unsigned tries = 0; !is_released(way); tries++) {
      assert_true(way != BY_CLOSE && tries < 20);
      (void)five_reset(state);
    }
  }
}

/* It was sent before an extend, on a connection that has ended since. */
TEST(late_backfill_of_several_keys_shortens_none) {
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

TEST(replica_is_reported_down_until_it_is_a_master) {
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

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .before = five_reset, .end = five_end});
}
