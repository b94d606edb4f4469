/*
 * Drift and deadline, by exact figures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_validity.h"
#include "rl_test.h"

TEST(drift_is_the_factor_rounded_up_and_2_ms) {
  static const struct {
    redlock_duration ttl_us;
    double factor;
    redlock_duration drift_us;
  } cases[] = {
      {0, 0.01, 2000},
      {1000, 0.0, 2000},
      {1000, 0.01, 2010},
      {10 * SECONDS, 0.01, 102000},
      {10 * SECONDS, 0.0, 2000},
      {10 * SECONDS, 0.5, 5002000},
      {1, 0.5, 2001}, /* half a microsecond becomes a whole one */
      {3, 0.5, 2002}, /* 1.5 becomes 2 */
      {4, 0.5, 2002}, /* 2 stays 2 */
      {1, 0.000001, 2001},
      {1000 * MS, 0.0000005, 2001}, /* 0.5 */
      {2000 * MS, 0.0000005, 2001}, /* exactly 1 */
      {3000 * MS, 0.0000005, 2002}, /* 1.5 */
      {30 * SECONDS, 0.25, 7502000},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    assert_int_equal(rl_validity_drift(cases[i].ttl_us, cases[i].factor), cases[i].drift_us);
  }
}

TEST(largest_ttl_and_factor_do_not_overflow) {
  redlock_duration drift_us = rl_validity_drift(REDLOCK_TTL_MAX_US, 0.999999);
  assert_true(drift_us > REDLOCK_TTL_MAX_US / 100 * 99);
  assert_true(drift_us < REDLOCK_TTL_MAX_US);
  assert_int_equal(rl_validity_drift(REDLOCK_TTL_MAX_US, 0.5), REDLOCK_TTL_MAX_US / 2 + 2000);
}

TEST(deadline_is_start_plus_ttl_less_drift) {
  static const struct {
    redlock_time start_us;
    redlock_duration ttl_us;
    double factor;
    redlock_time deadline_us;
  } cases[] = {
      {0, 10 * SECONDS, 0.01, 9898000},
      {1000000, 10 * SECONDS, 0.01, 10898000},
      {5, SECONDS, 0.0, 998005},
      {5, 2000, 0.0, 5}, /* all drift */
      {5, 2001, 0.0, 6}, /* the first microsecond beyond */
      {5, 1999, 0.0, 5}, /* less than drift: never before start */
      {5, 1000, 0.01, 5},
      {5, 2020, 0.01, 5}, /* 2020 - 21 - 2000 is negative */
      {5, 2021, 0.01, 5}, /* 2021 - 21 - 2000 = 0 */
      {5, 2022, 0.01, 6},
      {5, 0, 0.5, 5},
      {REDLOCK_NEVER, SECONDS, 0.01, REDLOCK_NEVER},
      {REDLOCK_NEVER - 10, SECONDS, 0.01, REDLOCK_NEVER},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    assert_int_equal(rl_validity_deadline(cases[i].start_us, cases[i].ttl_us, cases[i].factor),
                     cases[i].deadline_us);
  }
}

TEST(least_ttl_leaves_a_millisecond) {
  static const double factors[] = {0.0, 0.01, 0.249, 0.25, 0.2501, 0.5, 0.9, 0.99, 0.999999};
  for (unsigned i = 0; i < COUNT_OF(factors); i++) {
    redlock_duration least_us = rl_validity_least_ttl(factors[i]);
    assert_int_equal(least_us % MS, 0);
    assert_true(rl_validity_deadline(0, least_us, factors[i]) >= MS);
    assert_true(rl_validity_deadline(0, least_us - MS, factors[i]) < MS);
  }
  assert_int_equal(rl_validity_least_ttl(0.0), 3 * MS);
  assert_int_equal(rl_validity_least_ttl(0.01), 4 * MS);
  assert_true(rl_validity_least_ttl(1.0 - 1e-16) > REDLOCK_TTL_MAX_US);
}

TEST(longer_ttl_never_gives_an_earlier_deadline) {
  redlock_time before_us = 0;
  for (redlock_duration ttl_us = 0; ttl_us < 20000; ttl_us++) {
    redlock_time deadline_us = rl_validity_deadline(7, ttl_us, 0.013);
    assert_true(deadline_us >= before_us);
    assert_true(deadline_us <= 7 + ttl_us);
    before_us = deadline_us;
  }
}
