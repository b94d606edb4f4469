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
  atomic_int waited; /* the descriptor to wait for, -1 without one */
  atomic_int set;    /* the one that is written to; the same where there is eventfd() */
} rl_event;

/* Without descriptors. */
void rl_event_init(rl_event *event);

/* Has it have descriptors. False when the system refuses one. */
bool rl_event_open(rl_event *event);
void rl_event_close(rl_event *event);

/* The descriptor that is readable when the event was set, or -1. */
static inline int rl_event_fd(rl_event *event) {
  return atomic_load(&event->waited);
}

/* From any thread, and from a signal handler. Does nothing without descriptors. errno stays. */
void rl_event_set(rl_event *event);

/* Takes it back. Never blocks. */
void rl_event_clear(rl_event *event);

#endif
