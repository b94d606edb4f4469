/*
 * Scripts: a program makes a client, acquires a lock, and calls nothing while it works.
 *
 * SPDX-License-Identifier: MIT
 */
#include "relay.h"
#include "support.h"

/*
 * A call waits for slower nodes for a grace period of 100 ms, so that they set or delete the key,
 * too. A slow machine may need longer: only some of several tries must succeed. rl_grace_test.c
 * tests the rule with the fake clock.
 */
#define TRIES 20
#define GRACE_US MS(500)

/* Returns true if |count| nodes have the key soon, although no client is called. */
static bool soon_on(unsigned count, const char *key, const char *token) {
  redlock_time until_us = redlock_now() + GRACE_US;
  while (farm_count(&five, key, token) != count) {
    if (redlock_now() > until_us) {
      return false;
    }
    (void)poll(NULL, 0, 1);
  }
  return true;
}

/* The last |count| nodes are behind relays. */
static redlock_client *client_over(const relay *relays, unsigned count) {
  const char *addresses[5];
  for (unsigned i = 0; i < 5; i++) {
    addresses[i] = i < 5 - count ? five.nodes[i].address : relays[i - (5 - count)].address;
  }
  return client_at(addresses, 5, NULL);
}

static bool first_lock_reaches_all(redlock_client *client) {
  redlock_lock *lock = held_lock(client, "r");
  bool all = soon_on(5, "r", redlock_lock_token(lock));
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, farm_count(&five, "r", NULL) == 0);
  free_with_client(lock);
  return all;
}

TEST(first_lock_reaches_two_slower_nodes) {
  static const redlock_duration delays_us[] = {0, MS(5), MS(30)};
  for (unsigned i = 0; i < sizeof delays_us / sizeof delays_us[0]; i++) {
    relay relays[2];
    relay_start(&relays[0], five.nodes[3].port, delays_us[i]);
    relay_start(&relays[1], five.nodes[4].port, delays_us[i] / 2);
    for (unsigned tries = 0; !first_lock_reaches_all(client_over(relays, 2)); tries++) {
      assert_true(tries < TRIES);
    }
    relay_end(&relays[0]);
    relay_end(&relays[1]);
  }
}

/* Three nodes refuse, and two slow ones have not replied yet: their keys are released. */
static bool slow_nodes_are_released(const relay relays[2]) {
  farm_reset(&five);
  redlock_client *client = client_over(relays, 2);
  redlock_lock *lock = new_lock(client, "r");
  warm_up(client);
  pump_until(client, farm_count(&five, "warm-up", NULL) == 0);
  for (unsigned i = 0; i < 3; i++) {
    assert_string_equal(farm_command(&five, i, "SET", "r", "another", NULL), "OK");
  }
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_TAKEN);
  eventually(farm_calls(&five, 3, "set") >= 2 && farm_calls(&five, 4, "set") >= 2);
  bool released = soon_on(3, "r", NULL);
  assert_int_equal(farm_count(&five, "r", "another"), 3);
  free_with_client(lock);
  return released;
}

TEST(failed_acquire_releases_slow_nodes) {
  relay relays[2];
  relay_start(&relays[0], five.nodes[3].port, MS(30));
  relay_start(&relays[1], five.nodes[4].port, MS(30));
  for (unsigned tries = 0; !slow_nodes_are_released(relays); tries++) {
    assert_true(tries < TRIES);
  }
  relay_end(&relays[0]);
  relay_end(&relays[1]);
}

/* One node hangs from the start: only the first acquire waits for its grace period. */
TEST(hung_node_delays_only_the_first_lock) {
  redlock_options options = once();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  farm_stop(&five, 4);
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time before_us = stopwatch();
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  /* The grace period is four times what the majority took: a delay counts five times. */
  assert_took(before_us, MS(50), MS(1000) + 4 * witness_delay_us(before_us));
  assert_ok(lock, redlock_lock_release(lock));
  for (unsigned i = 0; i < 20; i++) {
    before_us = redlock_now();
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    assert_ok(lock, redlock_lock_release(lock));
    assert_took(before_us, 0, MS(2000)); /* After 3 s the connection would end. */
  }
  farm_continue(&five, 4);
  free_with_client(lock);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = five_start, .before = five_reset, .end = five_end});
}
