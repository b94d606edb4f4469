/*
 * Events: what happened to nodes and locks, for logs and traces.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_events.h"

#include <stdio.h>
#include <stdlib.h>

int rl_events_open(rl_events **events) {
  if (*events == NULL) {
    *events = calloc(1, sizeof **events);
  }
  return *events != NULL ? REDLOCK_OK : REDLOCK_E_NO_MEMORY;
}

static void rl_events_drop(rl_events_entry *event) {
  if (event->resource != NULL) {
    rl_resource_unref(event->resource);
    event->resource = NULL;
  }
}

void rl_events_reset(rl_events *events) {
  if (events == NULL) {
    return;
  }
  rl_events_drop(&events->taken);
  for (unsigned i = 0; i < RL_EVENTS_MAX; i++) {
    rl_events_drop(&events->queue[i]);
  }
  events->count = 0;
  events->missed = 0;
}

void rl_events_close(rl_events **events) {
  rl_events_reset(*events);
  free(*events);
  *events = NULL;
}

/* Appends an event and returns it, or NULL if there is no room. */
static rl_events_entry *rl_events_append(rl_events *events, redlock_time now_us,
                                         redlock_event kind) {
  if (events == NULL) {
    return NULL;
  }
  if (events->count == RL_EVENTS_MAX) {
    events->missed++;
    return NULL;
  }
  rl_events_entry *event = &events->queue[(events->head + events->count++) % RL_EVENTS_MAX];
  events->total++;
  event->event = kind;
  event->at_us = now_us;
  event->missed = events->missed;
  event->code = REDLOCK_OK;
  event->waited_us = 0;
  event->reason[0] = '\0';
  events->missed = 0;
  return event;
}

void rl_events_note_node(rl_events *events, redlock_time now_us, redlock_event kind, unsigned node,
                         const char *reason) {
  rl_events_entry *event = rl_events_append(events, now_us, kind);
  if (event != NULL) {
    event->node = node;
    (void)snprintf(event->reason, sizeof event->reason, "%s", reason);
  }
}

static void rl_events_name(rl_events_entry *event, rl_resource *resource) {
  resource->references++;
  event->resource = resource;
}

void rl_events_note_loss(rl_events *events, redlock_time now_us, redlock_event kind,
                         rl_resource *resource, int reason) {
  rl_events_entry *event = rl_events_append(events, now_us, kind);
  if (event != NULL) {
    rl_events_name(event, resource);
    event->code = reason;
  }
}

void rl_events_note_wait(rl_events *events, redlock_time now_us, rl_resource *resource, int result,
                         redlock_duration waited_us) {
  rl_events_entry *event = rl_events_append(events, now_us, REDLOCK_EVENT_WAITED);
  if (event != NULL) {
    rl_events_name(event, resource);
    event->code = result;
    event->waited_us = waited_us;
  }
}

const rl_events_entry *rl_events_take(rl_events *events) {
  if (!rl_events_are_there(events)) {
    return NULL;
  }
  rl_events_entry *oldest = &events->queue[events->head];
  rl_events_drop(&events->taken);
  events->taken = *oldest;
  oldest->resource = NULL;
  events->head = (events->head + 1) % RL_EVENTS_MAX;
  events->count--;
  return &events->taken;
}
