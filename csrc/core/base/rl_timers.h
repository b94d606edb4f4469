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

/* A timer, a member of the struct that it is for. */
typedef struct rl_timers_entry {
  redlock_time due_us; /* kept after the timer is taken */
  uint32_t index;      /* in the heap; RL_TIMERS_NONE while the timer is not set */
} rl_timers_entry;

typedef struct rl_timers {
  rl_timers_entry **heap;
  size_t count;
  size_t capacity;
} rl_timers;

/* Makes room for |count| timers: setting them cannot fail then. Returns false if out of memory. */
bool rl_timers_reserve(rl_timers *timers, size_t count);
void rl_timers_free(rl_timers *timers);

/* Sets |timer|, which may be set already. */
void rl_timers_set(rl_timers *timers, rl_timers_entry *timer, redlock_time due_us);

/* Removes |timer|. Idempotent. */
void rl_timers_clear(rl_timers *timers, rl_timers_entry *timer);

/* Returns the earliest due time, or REDLOCK_NEVER. */
redlock_time rl_timers_next(const rl_timers *timers);

/* Removes and returns the earliest timer if it is due, otherwise returns NULL. */
rl_timers_entry *rl_timers_take(rl_timers *timers, redlock_time now_us);

#endif
