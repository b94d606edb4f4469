/*
 * An event that poll() can wait for: an eventfd, or two sockets where there is none.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_EVENTFD_H
#define RL_EVENTFD_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct rl_eventfd {
  atomic_int waited; /* descriptor to poll, -1 without one */
  atomic_int set;    /* descriptor to write to; the same one with eventfd() */
} rl_eventfd;

/* Makes an event without descriptors. */
void rl_eventfd_init(rl_eventfd *event);

/* Opens the descriptors. Returns false if the system refuses one. */
bool rl_eventfd_open(rl_eventfd *event);
void rl_eventfd_close(rl_eventfd *event);

/* Returns the descriptor that is readable while the event is set, or -1. */
static inline int rl_eventfd_to_poll(rl_eventfd *event) {
  return atomic_load(&event->waited);
}

/* Any thread and any signal handler may call it. Does nothing without descriptors. Keeps errno. */
void rl_eventfd_set(rl_eventfd *event);

/* Never blocks. */
void rl_eventfd_clear(rl_eventfd *event);

#endif
