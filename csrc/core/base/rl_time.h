/*
 * Arithmetic on times and durations, in microseconds. The core adds and subtracts times only here,
 * so that nothing overflows: REDLOCK_NEVER stays REDLOCK_NEVER, and no difference is negative.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TIME_H
#define RL_TIME_H

#include "redlock.h"

/* The greatest integer that a script (Lua) represents exactly. */
#define RL_NUMBER_MAX (((uint64_t)1 << 53) - 1)

/* Returns time + duration, or REDLOCK_NEVER if that overflows. */
static inline redlock_time rl_time_add(redlock_time time_us, redlock_duration duration_us) {
  return time_us > REDLOCK_NEVER - duration_us ? REDLOCK_NEVER : time_us + duration_us;
}

/* Returns a - b, or 0 if b is later. REDLOCK_NEVER minus a finite time is REDLOCK_NEVER. */
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

/* Whole milliseconds: rounded down to rely on, rounded up to ask for or to wait. */
static inline uint64_t rl_time_ms_down(redlock_duration duration_us) {
  return duration_us / REDLOCK_MILLISECONDS;
}

static inline uint64_t rl_time_ms_up(redlock_duration duration_us) {
  return duration_us / REDLOCK_MILLISECONDS + (duration_us % REDLOCK_MILLISECONDS != 0);
}

#endif
