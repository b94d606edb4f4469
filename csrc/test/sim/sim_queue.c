/*
 * What happens next: a heap of events by time, then age.
 *
 * SPDX-License-Identifier: MIT
 *
 * When a client wakes is most of it, and only the last such event of a client counts (its
 * generation): that has a place of its own for each.
 */
#include <stdlib.h>

#include "sim.h"

static bool sim_queue_before(const sim_event *a, const sim_event *b) {
  /* Without a branch: which way it goes cannot be foreseen. */
  return (bool)((int)(a->at_us < b->at_us) |
                ((int)(a->at_us == b->at_us) & (int)(a->order < b->order)));
}

void sim_queue_clear(sim *s) {
  s->queue.count = 0;
  s->queue.order = 0;
  for (unsigned i = 0; i < SIM_CLIENTS_MAX; i++) {
    s->queue.clients[i].at_us = SIM_NEVER;
  }
}

void sim_queue_add(sim *s, uint64_t at_us, sim_event_kind kind, unsigned subject, uint32_t length,
                   uint32_t generation) {
  sim_queue *queue = &s->queue;
  sim_event event = {at_us, queue->order++, length, (uint16_t)subject, (uint8_t)kind, generation};
  if (kind == SIM_EVENT_CLIENT) {
    queue->clients[subject] = event;
    return;
  }
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

/* Takes the first of the heap, which is not empty. */
static void sim_queue_pop(sim_queue *queue) {
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
}

bool sim_queue_take(sim *s, sim_event *event) {
  sim_queue *queue = &s->queue;
  const sim_event *first = &queue->clients[0];
  for (unsigned i = 1; i < SIM_CLIENTS_MAX; i++) {
    first = sim_queue_before(&queue->clients[i], first) ? &queue->clients[i] : first;
  }
  if (queue->count > 0 &&
      (first->at_us == SIM_NEVER || sim_queue_before(&queue->events[0], first))) {
    *event = queue->events[0];
    sim_queue_pop(queue);
    return true;
  }
  if (first->at_us == SIM_NEVER) {
    return false;
  }
  *event = *first;
  queue->clients[first->subject].at_us = SIM_NEVER;
  return true;
}
