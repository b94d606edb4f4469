/*
 * An event that poll() can wait for.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_EVENT_H
#define RL_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct rl_event {
  atomic_int waited; /* descriptor to poll, -1 without one */
  atomic_int set;    /* descriptor to write to; the same one with eventfd() */
} rl_event;

/* Makes an event without descriptors. */
void rl_event_init(rl_event *event);

/* Opens the descriptors. Returns false if the system refuses one. */
bool rl_event_open(rl_event *event);
void rl_event_close(rl_event *event);

/* Returns the descriptor that is readable while the event is set, or -1. */
static inline int rl_event_fd(rl_event *event) {
  return atomic_load(&event->waited);
}

/* Any thread and any signal handler may call it. Does nothing without descriptors. Keeps errno. */
void rl_event_set(rl_event *event);

/* Never blocks. */
void rl_event_clear(rl_event *event);

#endif
