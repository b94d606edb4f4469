/*
 * Joining: a node that could not be asked when a lock was taken gets the key while the lease lasts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BACKFILL_H
#define RL_BACKFILL_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"

/* How often the locks are gone through, and what a node may owe before it is given more to join. */
#define RL_BACKFILL_EVERY_US (100 * REDLOCK_MILLISECONDS)
#define RL_BACKFILL_WINDOW 1024

typedef struct rl_backfills {
  uint32_t due;       /* nodes that are well again, and may lack keys */
  redlock_time at_us; /* when to go through the locks */
} rl_backfills;

/* J1. A lease has begun: notes the nodes to which its SET was not sent. */
void rl_backfill_begin(rl_lock *lock, redlock_time now_us);

/* J2. The node is up, or has answered: it may have to be given keys. */
void rl_backfill_ready(struct rl_core *core, rl_node *node);

/* J3, for one lock. The node is up. Returns whether that is done with; else it is to be tried again. */
bool rl_backfill(rl_lock *lock, redlock_time now_us, rl_node *node);

/* Returns true if the locks are to be gone through by now, when that will be, and doing so. */
bool rl_backfill_wanted(const struct rl_core *core);
redlock_time rl_backfill_deadline(const struct rl_core *core);
void rl_backfill_continue(struct rl_core *core, redlock_time now_us);

#endif
