/*
 * Saturating arithmetic on times.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_time.h"
#include "rl_test.h"

TEST(adding_saturates_at_never) {
  assert_int_equal(rl_time_add(0, 0), 0);
  assert_int_equal(rl_time_add(1, 2), 3);
  assert_int_equal(rl_time_add(REDLOCK_NEVER - 1, 0), REDLOCK_NEVER - 1);
  assert_int_equal(rl_time_add(REDLOCK_NEVER - 1, 1), REDLOCK_NEVER);
  assert_int_equal(rl_time_add(REDLOCK_NEVER - 1, 2), REDLOCK_NEVER);
  assert_int_equal(rl_time_add(REDLOCK_NEVER, 0), REDLOCK_NEVER);
  assert_int_equal(rl_time_add(REDLOCK_NEVER, REDLOCK_NEVER), REDLOCK_NEVER);
  assert_int_equal(rl_time_add(0, REDLOCK_NEVER), REDLOCK_NEVER);
  assert_int_equal(rl_time_add(1, REDLOCK_NEVER), REDLOCK_NEVER);
}

TEST(subtracting_is_never_negative_and_keeps_never) {
  assert_int_equal(rl_time_sub(5, 3), 2);
  assert_int_equal(rl_time_sub(3, 3), 0);
  assert_int_equal(rl_time_sub(3, 4), 0);
  assert_int_equal(rl_time_sub(0, REDLOCK_NEVER), 0);
  assert_int_equal(rl_time_sub(REDLOCK_NEVER, 1), REDLOCK_NEVER);
  assert_int_equal(rl_time_sub(REDLOCK_NEVER, REDLOCK_NEVER - 1), REDLOCK_NEVER);
  assert_int_equal(rl_time_sub(REDLOCK_NEVER, REDLOCK_NEVER), 0);
  assert_int_equal(rl_time_sub(REDLOCK_NEVER - 1, 1), REDLOCK_NEVER - 2);
}

TEST(min_and_max_return_the_right_time) {
  assert_int_equal(rl_time_min(1, 2), 1);
  assert_int_equal(rl_time_min(2, 1), 1);
  assert_int_equal(rl_time_min(REDLOCK_NEVER, 7), 7);
  assert_int_equal(rl_time_max(1, 2), 2);
  assert_int_equal(rl_time_max(2, 1), 2);
  assert_int_equal(rl_time_max(REDLOCK_NEVER, 7), REDLOCK_NEVER);
}

TEST(milliseconds_are_rounded_down_or_up) {
  assert_int_equal(rl_time_ms_down(0), 0);
  assert_int_equal(rl_time_ms_down(999), 0);
  assert_int_equal(rl_time_ms_down(1000), 1);
  assert_int_equal(rl_time_ms_down(1999), 1);
  assert_int_equal(rl_time_ms_up(0), 0);
  assert_int_equal(rl_time_ms_up(1), 1);
  assert_int_equal(rl_time_ms_up(1000), 1);
  assert_int_equal(rl_time_ms_up(1001), 2);
  assert_int_equal(rl_time_ms_up(REDLOCK_NEVER), REDLOCK_NEVER / 1000 + 1);
}
