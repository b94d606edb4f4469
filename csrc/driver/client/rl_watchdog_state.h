/*
 * The state of the keeper (rl_watchdog.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WATCHDOG_STATE_H
#define RL_WATCHDOG_STATE_H

#include "client/rl_waiters.h"

typedef struct rl_watchdog {
  bool forbidden; /* this client may have none: inside nginx */
  bool runs;
  bool stops;
  /* Ends the client with it: it has given up the last reference. NULL: others refer to the client. */
  void (*ends_client)(redlock_client *);
  bool
      loop_is_late; /* the program's loop has been elsewhere when something was due, and has not come since */
  pthread_t thread;
  redlock_time until_us; /* when it wakes by itself; 0 while it is awake */
  rl_waiter self;
  rl_event event;
  redlock_lost_function *on_lost; /* whom it tells of losses; NULL: nobody */
  void *on_lost_data;
  uint32_t reported_count; /* how many losses there had been when it told last */
} rl_watchdog;

static inline void rl_watchdog_init(rl_watchdog *keeper) {
  rl_event_init(&keeper->event);
  keeper->self.event = &keeper->event;
}

/* In a forked child: there is no such thread. */
static inline void rl_watchdog_forget(rl_watchdog *keeper) {
  keeper->runs = false;
  keeper->on_lost = NULL;
  rl_event_close(&keeper->event); /* It is the parent's, too. */
}

#endif
