/*
 * Joining: a node that could not be asked when a lock was taken gets the key while the lease lasts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_JOIN_H
#define RL_JOIN_H

#include "rl_lock.h"
#include "rl_node.h"

/* How often the locks are gone through, and what a node may owe before it is given more to join. */
#define RL_JOIN_EVERY_US (100 * REDLOCK_MILLISECONDS)
#define RL_JOIN_WINDOW 1024

typedef struct rl_joins {
  uint32_t due;       /* nodes that are well again, and may lack keys */
  redlock_time at_us; /* when to go through the locks */
} rl_joins;

/* J1. A lease has begun: notes the nodes to which its SET was not sent. */
void rl_join_begin(rl_lock *lock, redlock_time now_us);

/* J2. The node is up, or has answered: it may have to be given keys. */
void rl_join_ready(struct rl_core *core, rl_node *node);

/* J3, for one lock. The node is up. Returns whether that is done with; else it is to be tried again. */
bool rl_join(rl_lock *lock, redlock_time now_us, rl_node *node);

/* Whether the locks are to be gone through by now, when that will be, and doing so. */
bool rl_join_wanted(const struct rl_core *core);
redlock_time rl_join_deadline(const struct rl_core *core);
void rl_join_continue(struct rl_core *core, redlock_time now_us);

#endif
