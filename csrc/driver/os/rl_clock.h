/*
 * The clock of all leases, and the one that threads sleep by.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLOCK_H
#define RL_CLOCK_H

#include <time.h>

#include "base/rl_time.h"

/*
 * How long to wait at once for |until_us| on a clock that stands still in suspend: poll()'s, or CLOCK_MONOTONIC. Time
 * passes unseen there, so a longer wait is made of several, and ends this much after a resume at the latest.
 */
#define RL_CLOCK_SLICE_US REDLOCK_SECONDS

/* Returns what is left until |until_us|, and RL_CLOCK_SLICE_US at most. */
static inline redlock_duration rl_clock_slice(redlock_time until_us) {
  return rl_time_min(rl_time_sub(until_us, redlock_now()), RL_CLOCK_SLICE_US);
}

/* Fills |until| with what CLOCK_MONOTONIC will show after rl_clock_slice(). */
void rl_clock_monotonic(redlock_time until_us, struct timespec *until);

/* What the wall clock shows, in microseconds since 1970; 0 where it can't be read. */
uint64_t rl_clock_wall(void);

#endif
