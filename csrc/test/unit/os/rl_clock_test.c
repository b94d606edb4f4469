/*
 * The clock of all leases. clock_gettime() is wrapped to see which clock is read.
 *
 * SPDX-License-Identifier: MIT
 */
#include <time.h>

#include "rl_test.h"

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static bool wrapped;
static bool no_boottime;
static clockid_t asked;
static struct timespec answer;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  if (!wrapped) {
    return __real_clock_gettime(clock, now);
  }
  if (no_boottime && clock == CLOCK_BOOTTIME) {
    return -1;
  }
  asked = clock;
  *now = answer;
  return 0;
}

static redlock_time read_as(time_t seconds, long nanoseconds) {
  answer = (struct timespec){seconds, nanoseconds};
  wrapped = true;
  redlock_time now_us = redlock_now();
  wrapped = false;
  return now_us;
}

TEST(clock_counts_suspend_in_microseconds) {
  no_boottime = false;
  assert_int_equal(read_as(0, 0), 0);
  assert_int_equal(asked, CLOCK_BOOTTIME);
  assert_int_equal(read_as(0, 999), 0);
  assert_int_equal(read_as(0, 1000), 1);
  assert_int_equal(read_as(1, 999999999), 1999999);
  if (sizeof(time_t) > 4) {
    assert_int_equal(read_as((time_t)INT64_C(4294967296), 0), 4294967296000000);
  }
}

TEST(monotonic_clock_replaces_a_missing_boot_clock) {
  no_boottime = true;
  assert_int_equal(read_as(7, 8000), 7000008);
  assert_int_equal(asked, CLOCK_MONOTONIC);
}

TEST(clock_never_goes_back) {
  redlock_time before_us = redlock_now();
  for (unsigned i = 0; i < 100000; i++) {
    redlock_time now_us = redlock_now();
    assert_true(now_us >= before_us);
    before_us = now_us;
  }
}
