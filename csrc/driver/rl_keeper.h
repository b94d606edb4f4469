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
  bool orphaned; /* it has given up the last reference to the client, which ends with it */
  bool
      loop_is_late; /* the program's loop has been elsewhere when something was due, and has not come since */
  pthread_t thread;
  redlock_time until_us; /* when it wakes by itself; 0 while it is awake */
  rl_waiter self;
  rl_event event;
  redlock_lost_function *told; /* whom it tells of losses; NULL: nobody */
  void *told_data;
  uint32_t told_count; /* how many losses there had been when it told last */
} rl_keeper;

void rl_keeper_init(rl_keeper *keeper);

/* ---- all below: the caller has entered the client ---- */

/*
 * Has the client have a keeper, unless it has one or may have none. Errors: SYSTEM (no thread, no
 * descriptor).
 */
int rl_keeper_start(redlock_client *client);

/*
 * Ends and joins it, however the nodes are. Others may enter meanwhile. Called by the keeper itself, it ends
 * later, and is joined by the next call.
 */
void rl_keeper_stop(redlock_client *client);

/* Whether the caller is the keeper, which tells the program of losses. */
bool rl_keeper_is_self(const redlock_client *client);

/* In a forked child: there is no such thread. */
void rl_keeper_forget(rl_keeper *keeper);

/* Whether there are losses of which it has to tell the program. */
bool rl_keeper_has_news(const redlock_client *client);

/* Whether it has to be called: it has to tell of losses, or something is due before it wakes by itself, and
 * nobody leads. */
bool rl_keeper_is_late(const redlock_client *client);

#endif
