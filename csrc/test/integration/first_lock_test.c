/*
 * Scripts: a client is made, a lock taken, and nothing is called on it while the work is done.
 *
 * SPDX-License-Identifier: MIT
 */
#include "relay.h"
#include "support.h"

#define FRESH_CLIENTS 40
#define FLUSHES 20
/*
 * A call that ends early goes on for a moment of 100 ms, so that slower nodes get the key, or lose it, as
 * well. A slow machine may take longer: of several tries only some must succeed. rl_grace_test.c has the
 * rule, on the fake clock.
 */
#define TRIES 20
#define MOMENT_US MS(500)

/* Returns true if |count| nodes have the key within a moment, although nothing is called. */
static bool soon_on(unsigned count, const char *key, const char *token) {
  redlock_time until_us = redlock_now() + MOMENT_US;
  while (farm_count(&five, key, token) != count) {
    if (redlock_now() > until_us) {
      return false;
    }
    (void)poll(NULL, 0, 1);
  }
  return true;
}

/* The first three nodes as they are, the others behind relays. */
static redlock_client *client_over(const relay *relays, unsigned count) {
  const char *addresses[5];
  for (unsigned i = 0; i < 5; i++) {
    addresses[i] = i < 5 - count ? five.nodes[i].address : relays[i - (5 - count)].address;
  }
  return client_at(addresses, 5, NULL);
}

static bool a_first_lock_is_on_all(redlock_client *client) {
  redlock_lock *lock = held_lock(client, "r");
  bool all = soon_on(5, "r", redlock_lock_token(lock));
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  redlock_lock_free(lock);
  redlock_client_free(client);
  return all;
}

static void
a_first_lock_does_not_live_on_a_bare_majority_when_two_nodes_are_farther_away(void **state) {
  static const redlock_duration delays_us[] = {0, MS(5), MS(30)};
  (void)state;
  for (unsigned i = 0; i < sizeof delays_us / sizeof delays_us[0]; i++) {
    relay relays[2];
    relay_start(&relays[0], five.nodes[3].port, delays_us[i], 0);
    relay_start(&relays[1], five.nodes[4].port, delays_us[i] / 2, 0);
    for (unsigned tries = 0; !a_first_lock_is_on_all(client_over(relays, 2)); tries++) {
      assert_true(tries < TRIES);
    }
    relay_end(&relays[0]);
    relay_end(&relays[1]);
  }
}

static void a_first_lock_does_not_live_on_a_bare_majority_of_near_nodes(void **state) {
  (void)state;
  unsigned on_all = 0;
  for (unsigned i = 0; i < FRESH_CLIENTS; i++) {
    on_all += a_first_lock_is_on_all(client_of(&five, 5, NULL));
  }
  assert_between(on_all, FRESH_CLIENTS / 2, FRESH_CLIENTS);
}

/* A third of the nodes refuse, two are far away and have not answered yet: what they hold is released. */
static bool what_far_nodes_hold_is_released(const relay relays[2]) {
  farm_reset(&five);
  redlock_client *client = client_over(relays, 2);
  redlock_lock *lock = new_lock(client, "r");
  warm_up(client);
  pump_until(client, farm_count(&five, "warm-up", NULL) == 0);
  for (unsigned i = 0; i < 3; i++) {
    assert_string_equal(farm_command(&five, i, "SET", "r", "another's", NULL), "OK");
  }
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_TAKEN);
  eventually(farm_calls(&five, 3, "set") >= 2 && farm_calls(&five, 4, "set") >= 2);
  bool released = soon_on(3, "r", NULL);
  assert_int_equal(farm_count(&five, "r", "another's"), 3);
  redlock_lock_free(lock);
  redlock_client_free(client);
  return released;
}

static void a_blocking_call_that_fails_leaves_no_release_to_the_next(void **state) {
  (void)state;
  relay relays[2];
  relay_start(&relays[0], five.nodes[3].port, MS(30), 0);
  relay_start(&relays[1], five.nodes[4].port, MS(30), 0);
  for (unsigned tries = 0; !what_far_nodes_hold_is_released(relays); tries++) {
    assert_true(tries < TRIES);
  }
  relay_end(&relays[0]);
  relay_end(&relays[1]);
}

/* One node hangs from the beginning: that costs the first lock its moment, and no other. */
static void a_hung_node_delays_the_first_lock_alone(void **state) {
  (void)state;
  redlock_options options = once();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  farm_stop(&five, 4);
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time before_us = stopwatch();
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  /* It waits for four times what the majority took: a delay counts five times. */
  assert_took(before_us, MS(50), MS(1000) + 4 * witness_delay_us(before_us));
  assert_ok(lock, redlock_lock_release(lock));
  for (unsigned i = 0; i < 20; i++) {
    before_us = redlock_now();
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    assert_ok(lock, redlock_lock_release(lock));
    assert_took(before_us, 0, MS(2000)); /* After 3 s the silent connection is given up. */
  }
  farm_continue(&five, 4);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void a_release_after_a_script_flush_leaves_no_minority_locked(void **state) {
  (void)state;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = held_lock(client, "r");
  assert_ok(lock, redlock_lock_release(lock));
  unsigned released = 0;
  for (unsigned i = 0; i < FLUSHES; i++) {
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    for (unsigned k = 0; k < 5; k++) {
      (void)farm_command(&five, k, "SCRIPT", "FLUSH", NULL);
    }
    assert_ok(lock, redlock_lock_release(lock));
    released += soon_on(0, "r", NULL);
    pump_until(client, farm_count(&five, "r", NULL) == 0);
  }
  assert_between(released, FLUSHES / 2, FLUSHES);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup(name, five_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_first_lock_does_not_live_on_a_bare_majority_when_two_nodes_are_farther_away),
      TEST(a_first_lock_does_not_live_on_a_bare_majority_of_near_nodes),
      TEST(a_blocking_call_that_fails_leaves_no_release_to_the_next),
      TEST(a_hung_node_delays_the_first_lock_alone),
      TEST(a_release_after_a_script_flush_leaves_no_minority_locked),
  };
  return cmocka_run_group_tests_name("first lock", tests, five_start, five_end);
}
