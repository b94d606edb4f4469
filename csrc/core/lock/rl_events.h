/*
 * Events: what happened to nodes and locks, for logs and traces.
 *
 * SPDX-License-Identifier: MIT
 *
 * The queue exists only if a caller wants events. It is bounded: if the caller does not take them,
 * new events are dropped, and the next one has their number.
 */
#ifndef RL_EVENTS_H
#define RL_EVENTS_H

#include <stdbool.h>

#include "base/rl_reason.h"
#include "base/rl_time.h"
#include "wire/rl_resource.h"

#define RL_EVENTS_MAX 64
#define RL_EVENTS_LONG_WAIT_US REDLOCK_LONG_WAIT_US

typedef struct rl_events_entry {
  redlock_event event;
  int code;      /* LOST, WARNED: the reason; WAITED: the result */
  unsigned node; /* UP, DOWN, QUARANTINED */
  size_t missed; /* events that were dropped before it */
  redlock_time at_us;
  redlock_duration waited_us;
  rl_resource *resource;          /* LOST, WARNED, WAITED: a reference; otherwise NULL */
  char reason[RL_REASON_MAX + 1]; /* DOWN, QUARANTINED; otherwise "" */
} rl_events_entry;

typedef struct rl_events {
  unsigned head, count;
  size_t missed;         /* events dropped since the last one in the queue */
  uint32_t total;        /* of all events in the queue so far */
  rl_events_entry taken; /* the last event that the caller took */
  rl_events_entry queue[RL_EVENTS_MAX];
} rl_events;

/* Creates the queue, unless it exists. Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY. */
int rl_events_open(rl_events **events);
void rl_events_close(rl_events **events);

/* Queue an event. |events| may be NULL; then they do nothing. */
void rl_events_note_node(rl_events *events, redlock_time now_us, redlock_event event, unsigned node,
                         const char *reason);
void rl_events_note_loss(rl_events *events, redlock_time now_us, redlock_event event,
                         rl_resource *resource, int reason);
void rl_events_note_wait(rl_events *events, redlock_time now_us, rl_resource *resource, int result,
                         redlock_duration waited_us);

/* Takes the oldest event, which lives until the next call; NULL if there is none. */
const rl_events_entry *rl_events_take(rl_events *events);

/* Drops all events (a forked child). */
void rl_events_reset(rl_events *events);

static inline bool rl_events_are_there(const rl_events *events) {
  return events != NULL && events->count > 0;
}

#endif
