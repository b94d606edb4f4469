/*
 * The clock of all leases, and the clock that threads sleep by.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLOCK_H
#define RL_CLOCK_H

#include <time.h>

#include "base/rl_time.h"

/*
 * Longest single wait on a clock that stands still in suspend: poll()'s, or CLOCK_MONOTONIC. A
 * longer wait consists of several, so that it ends at most this late after a resume.
 */
#define RL_CLOCK_SLICE_US REDLOCK_SECONDS

/* Returns the time left until |until_us|, at most RL_CLOCK_SLICE_US. */
static inline redlock_duration rl_clock_slice(redlock_time until_us) {
  return rl_time_min(rl_time_sub(until_us, redlock_now()), RL_CLOCK_SLICE_US);
}

/* Fills |until| with the time of CLOCK_MONOTONIC after rl_clock_slice(). */
void rl_clock_monotonic(redlock_time until_us, struct timespec *until);

/* Returns the wall clock's time, in microseconds since 1970; 0 if it cannot be read. */
uint64_t rl_clock_wall(void);

#endif
