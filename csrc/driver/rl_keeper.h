/*
 * The keeper: a thread that does what is due between the calls of a program.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_KEEPER_H
#define RL_KEEPER_H

#include "rl_client_wait.h"

typedef struct rl_keeper {
  bool forbidden; /* this client may have none: inside nginx */
  bool runs;
  bool stops;
  bool
      loop_is_late; /* the program's loop has been elsewhere when something was due, and has not come since */
  pthread_t thread;
  redlock_time until_us; /* when it wakes by itself; 0 while it is awake */
  rl_waiter self;
  rl_event event;
} rl_keeper;

void rl_keeper_init(rl_keeper *keeper);

/* ---- all below: the caller has entered the client ---- */

/*
 * Has the client have a keeper, unless it has one or may have none. Errors: SYSTEM (no thread, no
 * descriptor).
 */
int rl_keeper_start(redlock_client *client);

/* Ends and joins it, however the nodes are. Others may enter meanwhile. */
void rl_keeper_stop(redlock_client *client);

/* In a forked child: there is no such thread. */
void rl_keeper_forget(rl_keeper *keeper);

/* Whether it has to be called: something is due before it wakes by itself, and nobody leads. */
bool rl_keeper_is_late(const redlock_client *client);

#endif
