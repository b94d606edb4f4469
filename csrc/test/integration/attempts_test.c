/*
 * The number of attempts of a waiter on real servers, counted by INFO commandstats. The script that
 * sets a key with a fencing token executes TIME once; no other command of a failed wait does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"

#define KEY "orders:42"

static redlock_options fenced(int retry_count, int notify) {
  redlock_options options = {.retry_count = retry_count,
                             .retry_delay_us = MS(20),
                             .retry_jitter_us = MS(15),
                             .node_timeout_us = 5 * REDLOCK_SECONDS,
                             .fence = REDLOCK_YES,
                             .notify = notify};
  return options;
}

/* Another client holds the key. The first acquire makes all connections. */
static redlock_lock *contender(redlock_client **client, int notify) {
  redlock_options options = fenced(1, notify);
  farm_command_all(&three, "SET", KEY, "another", NULL);
  *client = client_of(&three, 3, &options);
  redlock_lock *lock = new_lock(*client, KEY);
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_TAKEN);
  pump_until(*client, all_up(*client));
  return lock;
}

TEST(retry_count_limits_the_attempts_on_each_node) {
  static const int counts[] = {1, 3, 10};
  for (unsigned i = 0; i < 6; i++) {
    redlock_client *client;
    int notify = i < 3 ? REDLOCK_NO : REDLOCK_YES;
    redlock_options options = fenced(counts[i % 3], notify);
    unsigned attempts = (unsigned)counts[i % 3] + 1;
    redlock_lock *lock = contender(&client, notify);
    for (unsigned node = 0; node < three.count; node++) {
      assert_non_null(farm_command(&three, node, "CONFIG", "RESETSTAT", NULL));
    }
    assert_int_equal(redlock_lock_acquire(lock, &options, NULL), REDLOCK_E_TAKEN);
    pump_until(client, all_up(client));
    for (unsigned node = 0; node < three.count; node++) {
      unsigned made = farm_calls(&three, node, "time");
      assert_between(made, notify == REDLOCK_NO ? attempts : 1, attempts);
    }
    free_with_client(lock);
  }
}

int main(void) {
  return tests_run(&(tests_fixture){.start = three_start, .before = three_reset, .end = three_end});
}
