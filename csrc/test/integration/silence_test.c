/*
 * Connections that went silent: nothing is acknowledged any more, or nothing is answered.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_server.h"
#include "far.h"
#include "support.h"

static far_relay relays[3];

static int relays_start(void **state) {
  (void)state;
  farm_reset(&three);
  for (unsigned i = 0; i < 3; i++) {
    far_start(&relays[i], farm_client_port(&three, i), 0);
  }
  return 0;
}

static int relays_end(void **state) {
  (void)state;
  for (unsigned i = 0; i < 3; i++) {
    far_end(&relays[i]);
  }
  return 0;
}

static redlock_client *client_over_relays(const redlock_options *options) {
  const char *addresses[] = {relays[0].address, relays[1].address, relays[2].address};
  return client_at(addresses, 3, options);
}

/* However long the ttl: a path on which nothing is acknowledged is given up by itself. */
static void silent_connections_are_given_up_in_3_s_whatever_the_ttl(void **state) {
  (void)state;
  redlock_options options = once();
  options.ttl_us = MS(60000);
  options.node_timeout_us = MS(250);
  redlock_client *client = client_over_relays(&options);
  redlock_lock *lock = new_lock(client, "r");
  warm_up(client);
  for (unsigned i = 0; i < 3; i++) {
    far_silence(&relays[i]);
  }
  options.retry_count = 0; /* as many as the wait allows */
  options.wait_us = MS(4000);
  redlock_time before_us = redlock_now();
  assert_ok(lock, redlock_lock_acquire(lock, &options, NULL));
  assert_between(redlock_now() - before_us, MS(2000), MS(4000));
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/* A lease that is prolonged each second does not go down with the connections. */
static void no_lease_that_is_extended_each_second_is_lost_by_it(void **state) {
  (void)state;
  redlock_options options = once();
  options.ttl_us = MS(10000);
  options.node_timeout_us = MS(500);
  redlock_client *client = client_over_relays(&options);
  redlock_lock *lock = held_lock(client, "r");
  for (unsigned i = 0; i < 3; i++) {
    far_silence(&relays[i]);
  }
  redlock_time silent_us = redlock_now();
  int error;
  do {
    assert_true(redlock_lock_remaining(lock) > 0);
    (void)poll(NULL, 0, 500);
    error = redlock_lock_extend(lock, 0, NULL);
  } while (error == REDLOCK_E_UNAVAILABLE);
  assert_ok(lock, error);
  assert_between(redlock_now() - silent_us, 0, MS(6000));
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/*
 * What is sent is acknowledged, and never answered: as by a node that hangs, or a proxy that has lost
 * its other half. New connections are well.
 */
static redlock_client *client_of_mute(fake_server servers[3], const redlock_options *options) {
  static const fake_behaviour mute = {.first_until = 3}; /* CLIENT SETNAME, SET, the script */
  const char *addresses[3];
  for (unsigned i = 0; i < 3; i++) {
    fake_start(&servers[i], &mute);
    addresses[i] = servers[i].address;
  }
  redlock_client *client = client_at(addresses, 3, options);
  warm_up(client);
  return client;
}

static void connections_that_do_not_answer_are_given_up_in_3_s_whatever_the_ttl(void **state) {
  (void)state;
  fake_server servers[3];
  redlock_options options = once();
  options.ttl_us = MS(60000);
  options.node_timeout_us = MS(250);
  redlock_client *client = client_of_mute(servers, &options);
  redlock_lock *lock = new_lock(client, "r");
  options.retry_count = 0; /* as many as the wait allows */
  options.wait_us = MS(4000);
  options.notify = REDLOCK_NO; /* It would have further connections. */
  redlock_time before_us = redlock_now();
  assert_ok(lock, redlock_lock_acquire(lock, &options, NULL));
  assert_between(redlock_now() - before_us, MS(2000), MS(4000));
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_client_free(client);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(*servers[i].accepted, 2);
    fake_end(&servers[i]);
  }
}

static void a_lease_that_is_extended_each_second_outlives_them(void **state) {
  (void)state;
  fake_server servers[3];
  redlock_options options = once();
  options.ttl_us = MS(10000);
  options.node_timeout_us = MS(300);
  static const fake_behaviour mute = {.first_until = 2}; /* CLIENT SETNAME, SET */
  const char *addresses[3];
  for (unsigned i = 0; i < 3; i++) {
    fake_start(&servers[i], &mute);
    addresses[i] = servers[i].address;
  }
  redlock_client *client = client_at(addresses, 3, &options);
  redlock_lock *lock = held_lock(client, "r");
  redlock_time silent_us = redlock_now();
  int error;
  do {
    assert_true(redlock_lock_remaining(lock) > 0);
    (void)poll(NULL, 0, 1000);
    error = redlock_lock_extend(lock, 0, NULL);
  } while (error == REDLOCK_E_UNAVAILABLE);
  assert_ok(lock, error);
  assert_between(redlock_now() - silent_us, MS(2000), MS(7000));
  redlock_lock_free(lock);
  redlock_client_free(client);
  for (unsigned i = 0; i < 3; i++) {
    fake_end(&servers[i]);
  }
}

/* What is held up is this process: the answers lie there, and only it thinks that it has looked. */
static void a_client_that_was_held_up_takes_no_node_for_silent(void **state) {
  (void)state;
  redlock_options options = once();
  options.ttl_us = MS(60000);
  options.node_timeout_us = MS(10000);
  redlock_client *client = client_of(&three, 3, &options);
  redlock_lock *lock = held_lock(client, "r");
  assert_int_equal(redlock_lock_extend_start(lock, 0), REDLOCK_OK);
  struct pollfd fds[REDLOCK_NODES_MAX];
  size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
  assert_int_equal(redlock_client_process(client, fds, count), REDLOCK_OK); /* It is sent now. */
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
  redlock_lock_free(lock);
  redlock_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, relays_start, relays_end)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(silent_connections_are_given_up_in_3_s_whatever_the_ttl),
      TEST(no_lease_that_is_extended_each_second_is_lost_by_it),
      cmocka_unit_test(connections_that_do_not_answer_are_given_up_in_3_s_whatever_the_ttl),
      cmocka_unit_test(a_lease_that_is_extended_each_second_outlives_them),
      cmocka_unit_test(a_client_that_was_held_up_takes_no_node_for_silent),
  };
  return cmocka_run_group_tests_name("silence", tests, three_start, three_end);
}
