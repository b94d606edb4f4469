/*
 * What happens next: a heap of events by time, then age.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "sim.h"

static bool sim_queue_before(const sim_event *a, const sim_event *b) {
  /* Without a branch: which way it goes cannot be foreseen. */
  return (bool)((int)(a->at_us < b->at_us) |
                ((int)(a->at_us == b->at_us) & (int)(a->order < b->order)));
}

void sim_queue_add(sim *s, uint64_t at_us, sim_event_kind kind, unsigned subject, uint32_t length,
                   uint32_t generation) {
  sim_queue *queue = &s->queue;
  sim_event event = {at_us, queue->order++, length, (uint16_t)subject, (uint8_t)kind, generation};
  if (queue->count == queue->capacity) {
    queue->capacity = queue->capacity == 0 ? 1024 : queue->capacity * 2;
    queue->events = realloc(queue->events, queue->capacity * sizeof *queue->events);
    if (queue->events == NULL) {
      abort();
    }
  }
  size_t at = queue->count++;
  while (at > 0 && sim_queue_before(&event, &queue->events[(at - 1) / 2])) {
    queue->events[at] = queue->events[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  queue->events[at] = event;
}

bool sim_queue_take(sim *s, sim_event *event) {
  sim_queue *queue = &s->queue;
  if (queue->count == 0) {
    return false;
  }
  *event = queue->events[0];
  sim_event last = queue->events[--queue->count];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= queue->count) {
      break;
    }
    if (child + 1 < queue->count) {
      child += sim_queue_before(&queue->events[child + 1], &queue->events[child]);
    }
    if (!sim_queue_before(&queue->events[child], &last)) {
      break;
    }
    queue->events[at] = queue->events[child];
    at = child;
  }
  queue->events[at] = last;
  return true;
}
