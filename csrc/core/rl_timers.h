/*
 * A heap of locks by the time at which each wants to be looked at.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TIMERS_H
#define RL_TIMERS_H

#include <stdbool.h>
#include <stddef.h>

#include "rl_time.h"

struct rl_lock;

#define RL_TIMERS_NONE UINT32_MAX

/* A lock knows its place: lock->timer_index, RL_TIMERS_NONE when it is not in the heap, and lock->timer_due_us. */
typedef struct rl_timers {
  struct rl_lock **locks;
  size_t count;
  size_t capacity;
} rl_timers;

/* Makes room for |count| timers; the other calls then cannot fail. False when out of memory. */
bool rl_timers_reserve(rl_timers *timers, size_t count);
void rl_timers_free(rl_timers *timers);

/* Sets the lock's timer, whether it is set already or not. */
void rl_timers_set(rl_timers *timers, struct rl_lock *lock, redlock_time due_us);

/* Idempotent. */
void rl_timers_clear(rl_timers *timers, struct rl_lock *lock);

/* The earliest time, or REDLOCK_NEVER. */
redlock_time rl_timers_next(const rl_timers *timers);

/* Takes off one lock that is due, or NULL. */
struct rl_lock *rl_timers_take(rl_timers *timers, redlock_time now_us);

#endif
