/*
 * Backfill: a node that could not be asked at the acquire gets the key while the lease lasts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BACKFILL_H
#define RL_BACKFILL_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"

#define RL_BACKFILL_EVERY_US (100 * REDLOCK_MILLISECONDS) /* between two searches */
#define RL_BACKFILL_WINDOW 1024 /* commands outstanding, of a node that gets no more */

typedef struct rl_backfills {
  uint32_t due;       /* nodes that are well again, and may lack keys */
  redlock_time at_us; /* time of the next search */
} rl_backfills;

/* FILL-1. A lease has begun. */
void rl_backfill_begin(rl_lock *lock, redlock_time now_us);

/* FILL-2. The node has come up, or has answered. */
void rl_backfill_ready(rl_core *core, rl_node *node);

/* FILL-3, for one lock and a node that is up. Returns false if the lock must try again. */
bool rl_backfill_lock(rl_lock *lock, redlock_time now_us, rl_node *node);

/* Returns true if a search is due. */
bool rl_backfill_wanted(const rl_core *core);

/* Returns the time of the next search; REDLOCK_NEVER if none is needed. */
redlock_time rl_backfill_deadline(const rl_core *core);

/* FILL-3, for all locks, if a search is due. */
void rl_backfill_continue(rl_core *core, redlock_time now_us);

#endif
