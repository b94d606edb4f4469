/*
 * How long to wait before the next attempt, and before the next connection.
 *
 * SPDX-License-Identifier: MIT
 */
#include "options/rl_backoff.h"

#include <limits.h>

#include "rl_test.h"

static rl_options defaults(void) {
  rl_options options;
  rl_options_default(&options);
  return options;
}

TEST(delay_is_uniform_between_its_ends) {
  rl_options options = defaults();
  options.retry_delay_us = 2000;
  options.retry_jitter_us = 3;
  unsigned seen[7] = {0};
  for (uint64_t random = 0; random < 7000; random++) {
    redlock_duration delay_us = rl_backoff_attempt(&options, random);
    assert_true(delay_us >= 1997 && delay_us <= 2003);
    seen[delay_us - 1997]++;
  }
  for (unsigned i = 0; i < COUNT_OF(seen); i++) {
    assert_int_equal(seen[i], 1000);
  }
  options.retry_jitter_us = 0;
  assert_int_equal(rl_backoff_attempt(&options, UINT64_MAX), 2000);
  options.retry_delay_us = REDLOCK_TTL_MAX_US;
  options.retry_jitter_us = REDLOCK_TTL_MAX_US;
  assert_true(rl_backoff_attempt(&options, UINT64_MAX) <= 2 * REDLOCK_TTL_MAX_US);
}

TEST(pause_lasts_at_least_1_ms) {
  rl_options options = defaults();
  options.retry_delay_us = 0;
  options.retry_jitter_us = 1001;
  assert_int_equal(rl_backoff_attempt(&options, 0), MS);
  assert_int_equal(rl_backoff_attempt(&options, 1000), MS);
  assert_int_equal(rl_backoff_attempt(&options, 1001), MS + 1);
}

TEST(delay_of_connections_doubles_up_to_a_second) {
  static const unsigned delays_ms[] = {50, 100, 200, 400, 800, 1000, 1000};
  for (unsigned i = 0; i < COUNT_OF(delays_ms); i++) {
    assert_int_equal(rl_backoff_connection(i, 0), delays_ms[i] * MS);
  }
  assert_int_equal(rl_backoff_connection(UINT_MAX, 0), SECONDS);
}

TEST(random_part_of_up_to_a_half_is_left_out) {
  redlock_duration least_us = SECONDS;
  for (uint64_t random = 0; random <= 25 * MS + 1; random++) {
    redlock_duration delay_us = rl_backoff_connection(0, random);
    assert_true(delay_us >= 25 * MS && delay_us <= 50 * MS);
    least_us = delay_us < least_us ? delay_us : least_us;
  }
  assert_int_equal(rl_backoff_connection(0, 25 * MS + 1), 50 * MS);
  assert_int_equal(least_us, 25 * MS);
}
