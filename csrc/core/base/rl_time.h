/*
 * Arithmetic on times and durations. Nothing else in the core adds or subtracts times, so that
 * nothing can wrap around: REDLOCK_NEVER stays REDLOCK_NEVER, and no difference is negative.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TIME_H
#define RL_TIME_H

#include "redlock.h"

/* The greatest number that a script computes exactly. */
#define RL_NUMBER_MAX (((uint64_t)1 << 53) - 1)

/* time + duration, or REDLOCK_NEVER where that would not fit. */
static inline redlock_time rl_time_add(redlock_time time_us, redlock_duration duration_us) {
  return time_us > REDLOCK_NEVER - duration_us ? REDLOCK_NEVER : time_us + duration_us;
}

/* a - b, or 0 when b is later. REDLOCK_NEVER less anything finite stays REDLOCK_NEVER. */
static inline redlock_duration rl_time_sub(redlock_time a_us, redlock_time b_us) {
  if (a_us <= b_us) {
    return 0;
  }
  return a_us == REDLOCK_NEVER ? REDLOCK_NEVER : a_us - b_us;
}

static inline redlock_time rl_time_min(redlock_time a_us, redlock_time b_us) {
  return a_us < b_us ? a_us : b_us;
}

static inline redlock_time rl_time_max(redlock_time a_us, redlock_time b_us) {
  return a_us > b_us ? a_us : b_us;
}

/* Whole milliseconds: down for what we count on, up for what we ask of others or wait for. */
static inline uint64_t rl_time_ms_down(redlock_duration duration_us) {
  return duration_us / REDLOCK_MILLISECONDS;
}

static inline uint64_t rl_time_ms_up(redlock_duration duration_us) {
  return duration_us / REDLOCK_MILLISECONDS + (duration_us % REDLOCK_MILLISECONDS != 0);
}

#endif
