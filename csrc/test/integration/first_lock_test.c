/*
 * Scripts: a client is made, a lock taken, and nothing is called on it while the work is done.
 *
 * SPDX-License-Identifier: MIT
 */
#include "far.h"
#include "support.h"

#define FRESH_CLIENTS 200
#define FLUSHES 100

/* The first three nodes as they are, the others behind relays. */
static redlock_client *client_over(const far_relay *relays, unsigned count) {
  const char *addresses[5];
  for (unsigned i = 0; i < 5; i++) {
    addresses[i] = i < 5 - count ? five.nodes[i].address : relays[i - (5 - count)].address;
  }
  return client_at(addresses, 5, NULL);
}

static void
a_first_lock_does_not_live_on_a_bare_majority_when_two_nodes_are_farther_away(void **state) {
  static const redlock_duration delays_us[] = {0, MS(1), MS(5), MS(10), MS(20), MS(30)};
  (void)state;
  for (unsigned i = 0; i < sizeof delays_us / sizeof delays_us[0]; i++) {
    far_relay relays[2];
    far_start(&relays[0], five.nodes[3].port, delays_us[i]);
    far_start(&relays[1], five.nodes[4].port, delays_us[i] / 2);
    redlock_client *client = client_over(relays, 2);
    redlock_lock *lock = new_lock(client, "r");
    redlock_time before_us = redlock_now();
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    assert_between(redlock_now() - before_us, 0, MS(500));
    eventually(farm_count(&five, "r", redlock_lock_token(lock)) ==
               5); /* and no call on the client */
    assert_ok(lock, redlock_lock_release(lock));
    eventually(farm_count(&five, "r", NULL) == 0);
    redlock_lock_free(lock);
    redlock_client_free(client);
    far_end(&relays[0]);
    far_end(&relays[1]);
  }
}

static void a_first_lock_does_not_live_on_a_bare_majority_of_near_nodes(void **state) {
  (void)state;
  for (unsigned i = 0; i < FRESH_CLIENTS; i++) {
    redlock_client *client = client_of(&five, 5, NULL);
    redlock_lock *lock = held_lock(client, "r");
    eventually(farm_count(&five, "r", redlock_lock_token(lock)) == 5);
    redlock_lock_free(lock);
    redlock_client_free(client);
  }
}

/* One node hangs from the beginning: that costs the first lock its moment, and no other. */
static void a_hung_node_delays_the_first_lock_alone(void **state) {
  (void)state;
  redlock_options options = once();
  options.node_timeout_us = MS(2000);
  farm_stop(&five, 4);
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time before_us = redlock_now();
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  assert_between(redlock_now() - before_us, MS(50), MS(1000));
  assert_ok(lock, redlock_lock_release(lock));
  before_us = redlock_now();
  for (unsigned i = 0; i < 20; i++) {
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    assert_ok(lock, redlock_lock_release(lock));
  }
  assert_between(redlock_now() - before_us, 0, MS(600));
  farm_continue(&five, 4);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void a_release_after_a_script_flush_leaves_no_minority_locked(void **state) {
  (void)state;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = held_lock(client, "r");
  assert_ok(lock, redlock_lock_release(lock));
  for (unsigned i = 0; i < FLUSHES; i++) {
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    for (unsigned k = 0; k < 5; k++) {
      (void)farm_command(&five, k, "SCRIPT", "FLUSH", NULL);
    }
    assert_ok(lock, redlock_lock_release(lock));
    eventually(farm_count(&five, "r", NULL) == 0); /* and no call on the client */
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup(name, five_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_first_lock_does_not_live_on_a_bare_majority_when_two_nodes_are_farther_away),
      TEST(a_first_lock_does_not_live_on_a_bare_majority_of_near_nodes),
      TEST(a_hung_node_delays_the_first_lock_alone),
      TEST(a_release_after_a_script_flush_leaves_no_minority_locked),
  };
  return cmocka_run_group_tests_name("first lock", tests, five_start, five_end);
}
