/*
 * Fencing tokens on real servers. contention_test.c has many grants while nodes are killed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"
#include "wire/rl_command.h"

#define COUNTER "r" RL_COMMAND_COUNTER

static redlock_options fenced(void) {
  redlock_options options = once();
  options.fence = REDLOCK_YES;
  return options;
}

/* Returns the number of nodes that have run the CONFIRM script since the last SCRIPT FLUSH. */
static unsigned nodes_with_confirm(void) {
  unsigned nodes = 0;
  for (unsigned i = 0; i < five.count; i++) {
    const char *known = farm_command(&five, i, "EVALSHA", rl_script_sha1(RL_SCRIPT_CONFIRM), "2",
                                     "x", "y", "t", "1000", "1", "0", NULL);
    nodes += known != NULL && strncmp(known, "-NOSCRIPT", 9) != 0;
  }
  return nodes;
}

static void flush_scripts(void) {
  farm_command_all(&five, "SCRIPT", "FLUSH", NULL);
}

static unsigned confirmed(uint64_t token) {
  unsigned nodes = 0;
  for (unsigned i = 0; i < five.count; i++) {
    const char *counter = farm_command(&five, i, "GET", COUNTER, NULL);
    nodes += counter != NULL && strtoull(counter, NULL, 10) >= token;
  }
  return nodes;
}

TEST(agreeing_nodes_need_no_confirmation) {
  redlock_options options = fenced();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = held_lock(client, "r");
  uint64_t last = redlock_lock_fence(lock);
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  flush_scripts(); /* The first proposal did not know the clocks of the nodes. */
  for (unsigned i = 0; i < 100; i++) {
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    assert_true(redlock_lock_fence(lock) > last);
    last = redlock_lock_fence(lock);
    assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
    assert_true(redlock_lock_fence(lock) == last);
    pump_until(client, all_up(client));
    assert_ok(lock, redlock_lock_release(lock));
    assert_true(redlock_lock_fence(lock) == 0);
    pump_until(client, all_up(client));
  }
  assert_int_equal(nodes_with_confirm(), 0);
  free_with_client(lock);
}

static void on_all_nodes(const char *command, const char *key, const char *value) {
  farm_command_all(&five, command, key, value, NULL);
}

/* Such a key neither takes the lock nor ends a lease. */
TEST(counter_of_another_type_is_an_error) {
  redlock_options options = fenced();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = held_lock(client, "r");
  uint64_t token = redlock_lock_fence(lock);
  on_all_nodes("DEL", COUNTER, NULL);
  on_all_nodes("LPUSH", COUNTER, "1");
  assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
  assert_true(redlock_lock_fence(lock) == token);
  assert_between(confirmed(token), 3, 5);
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, all_up(client) && farm_count(&five, "r", NULL) == 0);
  on_all_nodes("DEL", COUNTER, NULL);
  on_all_nodes("LPUSH", COUNTER, "1");
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_non_null(strstr(redlock_lock_message(lock), "no counter of fencing tokens: " COUNTER));
  free_with_client(lock);
}

TEST(lease_is_extended_on_full_nodes) {
  redlock_options options = fenced();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, all_up(client) && farm_count(&five, "r", NULL) == 5);
  farm_command_all(&five, "CONFIG", "SET", "maxmemory", "1", NULL);
  int shorter = redlock_lock_extend(lock, 2 * REDLOCK_SECONDS, NULL);
  int longer = redlock_lock_extend(lock, 60 * REDLOCK_SECONDS, NULL);
  farm_command_all(&five, "CONFIG", "SET", "maxmemory", "0", NULL);
  assert_int_equal(shorter, REDLOCK_OK);
  assert_int_equal(longer, REDLOCK_OK);
  free_with_client(lock);
}

TEST(last_counter_grants_nothing) {
  redlock_options options = fenced();
  redlock_client *client = client_of(&five, 5, &options);
  warm_up(client);
  farm_command_all(&five, "SET", COUNTER, "9007199254740990", NULL);
  redlock_lock *lock = held_lock(client, "r");
  assert_true(redlock_lock_fence(lock) == 9007199254740991);
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_contains(redlock_lock_message(lock), "no fencing token is left");
  pump_until(client, all_up(client));
  assert_int_equal(farm_count(&five, "r", NULL), 0);
  free_with_client(lock);
}

TEST(lock_without_fence_creates_no_counter) {
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = held_lock(client, "r");
  assert_true(redlock_lock_fence(lock) == 0);
  pump_until(client, all_up(client));
  assert_int_equal(farm_count(&five, COUNTER, NULL), 0);
  free_with_client(lock);
}

TEST(several_resources_have_one_token) {
  redlock_options options = fenced();
  redlock_client *client = client_of(&five, 5, &options);
  static const redlock_resource both[] = {{"r", 1}, {"s", 1}};
  redlock_lock *lock;
  warm_up(client);
  redlock_lock *first = held_lock(client, "r");
  uint64_t token = redlock_lock_fence(first);
  assert_ok(first, redlock_lock_release(first));
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  assert_int_equal(redlock_lock_new_many(&lock, client, both, 2, NULL), REDLOCK_OK);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  assert_true(redlock_lock_fence(lock) > token);
  token = redlock_lock_fence(lock);
  assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, farm_count(&five, "s", NULL) == 0);
  redlock_lock *second = held_lock(client, "s");
  assert_true(redlock_lock_fence(second) > token);
  redlock_lock_free(second);
  redlock_lock_free(lock);
  redlock_lock_free(first);
  redlock_client_free(client);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = five_start, .before = five_reset, .end = five_end});
}
