/*
 * A heap of locks by the time at which each wants to be looked at.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_timers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rl_lock.h"

#define RL_TIMERS_CAPACITY_MIN 16

bool rl_timers_reserve(rl_timers *timers, size_t count) {
  size_t capacity = timers->capacity == 0 ? RL_TIMERS_CAPACITY_MIN : timers->capacity;
  if (count <= timers->capacity) {
    return true;
  }
  while (capacity < count) {
    capacity *= 2;
  }
  rl_lock **locks = malloc(capacity * sizeof *locks);
  if (locks == NULL) {
    return false;
  }
  /* realloc() would copy room that was never used, and so make it resident. */
  if (timers->count > 0) {
    memcpy(locks, timers->locks, timers->count * sizeof *locks);
  }
  free(timers->locks);
  timers->locks = locks;
  timers->capacity = capacity;
  return true;
}

void rl_timers_free(rl_timers *timers) {
  free(timers->locks);
  timers->locks = NULL;
  timers->count = 0;
  timers->capacity = 0;
}

static void rl_timers_put(rl_timers *timers, size_t index, rl_lock *lock) {
  timers->locks[index] = lock;
  lock->timer_index = (uint32_t)index;
}

static void rl_timers_up(rl_timers *timers, size_t index, rl_lock *lock) {
  while (index > 0) {
    size_t parent = (index - 1) / 2;
    if (timers->locks[parent]->timer_due_us <= lock->timer_due_us) {
      break;
    }
    rl_timers_put(timers, index, timers->locks[parent]);
    index = parent;
  }
  rl_timers_put(timers, index, lock);
}

static void rl_timers_down(rl_timers *timers, size_t index, rl_lock *lock) {
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= timers->count) {
      break;
    }
    if (child + 1 < timers->count &&
        timers->locks[child + 1]->timer_due_us < timers->locks[child]->timer_due_us) {
      child++;
    }
    if (timers->locks[child]->timer_due_us >= lock->timer_due_us) {
      break;
    }
    rl_timers_put(timers, index, timers->locks[child]);
    index = child;
  }
  rl_timers_put(timers, index, lock);
}

void rl_timers_set(rl_timers *timers, rl_lock *lock, redlock_time due_us) {
  rl_timers_clear(timers, lock);
  assert(timers->count < timers->capacity);
  lock->timer_due_us = due_us;
  rl_timers_up(timers, timers->count++, lock);
}

void rl_timers_clear(rl_timers *timers, rl_lock *lock) {
  size_t index = lock->timer_index;
  if (index == RL_TIMERS_NONE) {
    return;
  }
  lock->timer_index = RL_TIMERS_NONE;
  rl_lock *last = timers->locks[--timers->count];
  if (last == lock) {
    return;
  }
  if (index > 0 && timers->locks[(index - 1) / 2]->timer_due_us > last->timer_due_us) {
    rl_timers_up(timers, index, last);
  } else {
    rl_timers_down(timers, index, last);
  }
}

redlock_time rl_timers_next(const rl_timers *timers) {
  return timers->count == 0 ? REDLOCK_NEVER : timers->locks[0]->timer_due_us;
}

rl_lock *rl_timers_take(rl_timers *timers, redlock_time now_us) {
  if (timers->count == 0 || timers->locks[0]->timer_due_us > now_us) {
    return NULL;
  }
  rl_lock *lock = timers->locks[0];
  rl_timers_clear(timers, lock);
  return lock;
}
