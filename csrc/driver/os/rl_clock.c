/*
 * The clock of all leases.
 *
 * SPDX-License-Identifier: MIT
 *
 * CLOCK_BOOTTIME counts suspend, as the nodes' clocks do. CLOCK_MONOTONIC stands still, and a
 * resumed client would believe in a lease that is long over. The wall clock can be set, so no lease
 * depends on it. It is a first guess at the nodes' clocks, which check it (rl_fence.c).
 */
#include "os/rl_clock.h"

#include <stdint.h>

redlock_time redlock_now(void) {
  struct timespec now;
#ifdef CLOCK_BOOTTIME
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
#endif
  {
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
  }
  return (redlock_time)now.tv_sec * REDLOCK_SECONDS + (redlock_time)now.tv_nsec / 1000;
}

void rl_clock_monotonic(redlock_time until_us, struct timespec *until) {
  redlock_duration left_us = rl_clock_slice(until_us);
  (void)clock_gettime(CLOCK_MONOTONIC, until);
  uint64_t nanoseconds = (uint64_t)until->tv_nsec + left_us % REDLOCK_SECONDS * 1000;
  until->tv_sec += (time_t)(left_us / REDLOCK_SECONDS + nanoseconds / 1000000000);
  until->tv_nsec = (long)(nanoseconds % 1000000000);
}

uint64_t rl_clock_wall(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0 || now.tv_sec < 0) {
    return 0;
  }
  return (uint64_t)now.tv_sec * REDLOCK_SECONDS + (uint64_t)now.tv_nsec / 1000;
}
