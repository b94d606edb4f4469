/* SPDX-License-Identifier: MIT */
#include "base/rl_timers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define RL_TIMERS_CAPACITY_MIN 16

bool rl_timers_reserve(rl_timers *timers, size_t count) {
  size_t capacity = timers->capacity == 0 ? RL_TIMERS_CAPACITY_MIN : timers->capacity;
  if (count <= timers->capacity) {
    return true;
  }
  while (capacity < count) {
    capacity *= 2;
  }
  rl_timers_entry **heap = malloc(capacity * sizeof *heap);
  if (heap == NULL) {
    return false;
  }
  /* realloc() would copy unused room, and so make it resident. */
  if (timers->count > 0) {
    memcpy(heap, timers->heap, timers->count * sizeof *heap);
  }
  free(timers->heap);
  timers->heap = heap;
  timers->capacity = capacity;
  return true;
}

void rl_timers_free(rl_timers *timers) {
  free(timers->heap);
  *timers = (rl_timers){0};
}

static void rl_timers_put(rl_timers *timers, size_t index, rl_timers_entry *timer) {
  timers->heap[index] = timer;
  timer->index = (uint32_t)index;
}

static void rl_timers_up(rl_timers *timers, size_t index, rl_timers_entry *timer) {
  while (index > 0) {
    size_t parent = (index - 1) / 2;
    if (timers->heap[parent]->due_us <= timer->due_us) {
      break;
    }
    rl_timers_put(timers, index, timers->heap[parent]);
    index = parent;
  }
  rl_timers_put(timers, index, timer);
}

static void rl_timers_down(rl_timers *timers, size_t index, rl_timers_entry *timer) {
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= timers->count) {
      break;
    }
    if (child + 1 < timers->count &&
        timers->heap[child + 1]->due_us < timers->heap[child]->due_us) {
      child++;
    }
    if (timers->heap[child]->due_us >= timer->due_us) {
      break;
    }
    rl_timers_put(timers, index, timers->heap[child]);
    index = child;
  }
  rl_timers_put(timers, index, timer);
}

void rl_timers_set(rl_timers *timers, rl_timers_entry *timer, redlock_time due_us) {
  rl_timers_clear(timers, timer);
  assert(timers->count < timers->capacity);
  timer->due_us = due_us;
  rl_timers_up(timers, timers->count++, timer);
}

void rl_timers_clear(rl_timers *timers, rl_timers_entry *timer) {
  size_t index = timer->index;
  if (index == RL_TIMERS_NONE) {
    return;
  }
  timer->index = RL_TIMERS_NONE;
  rl_timers_entry *last = timers->heap[--timers->count];
  if (last == timer) {
    return;
  }
  if (index > 0 && timers->heap[(index - 1) / 2]->due_us > last->due_us) {
    rl_timers_up(timers, index, last);
  } else {
    rl_timers_down(timers, index, last);
  }
}

redlock_time rl_timers_next(const rl_timers *timers) {
  return timers->count == 0 ? REDLOCK_NEVER : timers->heap[0]->due_us;
}

rl_timers_entry *rl_timers_take(rl_timers *timers, redlock_time now_us) {
  if (timers->count == 0 || timers->heap[0]->due_us > now_us) {
    return NULL;
  }
  rl_timers_entry *timer = timers->heap[0];
  rl_timers_clear(timers, timer);
  return timer;
}
