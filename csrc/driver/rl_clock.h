/*
 * The clock of all leases, and the one that threads sleep by.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLOCK_H
#define RL_CLOCK_H

#include <time.h>

#include "redlock.h"

/* What CLOCK_MONOTONIC will say at |until_us| of redlock_now(), which is not REDLOCK_NEVER. */
void rl_clock_monotonic(redlock_time until_us, struct timespec *until);

/* What the wall clock shows, in microseconds since 1970; 0 where it can't be read. */
uint64_t rl_clock_wall(void);

#endif
