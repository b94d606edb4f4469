/*
 * A heap of timers, the earliest first.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TIMERS_H
#define RL_TIMERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rl_time.h"

#define RL_TIMERS_NONE UINT32_MAX

/* A timer stands in what it is for, and knows its place in the heap: RL_TIMERS_NONE while it is not set. */
typedef struct rl_timers_entry {
  redlock_time due_us; /* also when it was due, after it was taken off */
  uint32_t index;
} rl_timers_entry;

typedef struct rl_timers {
  rl_timers_entry **heap;
  size_t count;
  size_t capacity;
} rl_timers;

/* Makes room for |count| timers; the other calls then cannot fail. False when out of memory. */
bool rl_timers_reserve(rl_timers *timers, size_t count);
void rl_timers_free(rl_timers *timers);

/* Sets |timer|, which may be set in this heap already. */
void rl_timers_set(rl_timers *timers, rl_timers_entry *timer, redlock_time due_us);

/* Idempotent. */
void rl_timers_clear(rl_timers *timers, rl_timers_entry *timer);

/* The earliest time, or REDLOCK_NEVER. */
redlock_time rl_timers_next(const rl_timers *timers);

/* Takes off one timer that is due, or NULL. */
rl_timers_entry *rl_timers_take(rl_timers *timers, redlock_time now_us);

#endif
