/*
 * Connections on which nothing is acknowledged. rl_core_test.c has nodes that do not reply.
 *
 * SPDX-License-Identifier: MIT
 */
#include "relay.h"
#include "support.h"

static relay relays[3];

static int relays_start(void **state) {
  farm_reset(&three);
  for (unsigned i = 0; i < 3; i++) {
    relay_start(&relays[i], farm_client_port(&three, i), 0);
  }
  return 0;
}

static int relays_end(void **state) {
  for (unsigned i = 0; i < 3; i++) {
    relay_end(&relays[i]);
  }
  return 0;
}

static redlock_client *client_over_relays(const redlock_options *options) {
  const char *addresses[] = {relays[0].address, relays[1].address, relays[2].address};
  return client_at(addresses, 3, options);
}

/*
 * A silent connection must end by itself, however long the ttl. Otherwise a lease that is extended
 * rarely would be lost with it.
 */
TEST(silent_connections_end_after_3_s) {
  redlock_client *client = client_over_relays(NULL);
  redlock_options options = once();
  options.node_timeout_us = MS(500);
  redlock_lock *lock;
  assert_int_equal(redlock_lock_new(&lock, client, "r", 1, &options), REDLOCK_OK);
  warm_up(client);
  eventually(redlock_lock_acquire(lock, NULL, NULL) == REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    relay_turn_to(&relays[i], farm_client_port(&three, i), RELAY_SILENCE);
  }
  redlock_time silent_us = redlock_now();
  int error;
  do {
    assert_true(redlock_lock_remaining(lock) > 0);
    assert_true(redlock_now() - silent_us < EVENTUALLY_US); /* the ttl is longer */
    (void)poll(NULL, 0, 50);
    error = redlock_lock_extend(lock, 0, NULL);
  } while (error == REDLOCK_E_UNAVAILABLE);
  assert_ok(lock, error);
  assert_true(redlock_now() - silent_us >= MS(2000));
  eventually(redlock_lock_release(lock) == REDLOCK_OK);
  free_with_client(lock);
}

/* This process was stalled, and the replies are in its sockets. */
TEST(stalled_client_ends_no_connection) {
  redlock_options options = once();
  options.ttl_us = MS(60000);
  options.node_timeout_us = MS(20000);
  redlock_client *client = client_of(&three, 3, &options);
  redlock_lock *lock = held_lock(client, "r");
  assert_int_equal(redlock_lock_extend_start(lock, 0), REDLOCK_OK);
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  assert_int_equal(redlock_client_process(client, fds, count), REDLOCK_OK); /* sends it */
  assert_int_equal(redlock_lock_result(lock), REDLOCK_PENDING);
  (void)poll(NULL, 0, 3200);
  count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  assert_int_equal(redlock_client_process(client, fds, count), REDLOCK_OK);
  assert_ok(lock, redlock_lock_result(lock));
  for (unsigned i = 0; i < 3; i++) {
    redlock_node_info info;
    assert_int_equal(redlock_client_node_info(client, i, &info), REDLOCK_OK);
    assert_int_equal(info.state, REDLOCK_NODE_UP);
  }
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

/*
 * Three proxies lead to one server, which grants the lock once and then refuses it. If both
 * refusals arrive before the grant, the lock seems taken, and a later attempt reports the reason.
 */
TEST(proxies_of_one_server_are_named) {
  relay proxies[3];
  const char *addresses[3];
  farm_reset(&three);
  for (unsigned i = 0; i < 3; i++) {
    relay_start(&proxies[i], farm_client_port(&three, 0), 0);
    addresses[i] = proxies[i].address;
  }
  redlock_client *client = client_at(addresses, 3, NULL);
  redlock_lock *lock = new_lock(client, "r");
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  for (unsigned i = 0, named = 0; named < 3; i++) {
    int error = redlock_lock_acquire(lock, NULL, NULL);
    assert_true(error == REDLOCK_E_TAKEN || error == REDLOCK_E_UNAVAILABLE);
    if (error == REDLOCK_E_UNAVAILABLE) {
      assert_contains(redlock_lock_message(lock), "it is the same server as 127.0.0.1:");
      named++;
    }
    assert_true(redlock_now() < until_us);
    (void)poll(NULL, 0,
               (int)(i % 4)); /* The proxies sleep for another time, and answer in another order. */
  }
  pump_until(client, farm_count(&three, "r", NULL) == 0);
  free_with_client(lock);
  for (unsigned i = 0; i < 3; i++) {
    relay_end(&proxies[i]);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){
      .start = three_start, .before = relays_start, .after = relays_end, .end = three_end});
}
