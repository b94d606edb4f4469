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
#define RL_BACKFILL_WINDOW 1024 /* outstanding commands of a node, from which on it gets no key */

typedef struct rl_backfills {
  uint32_t due;       /* nodes that are well again, and may lack keys */
  redlock_time at_us; /* time of the next search */
} rl_backfills;

/* FILL-1. Notes the nodes without a key of the lease, which has begun. */
void rl_backfill_begin(rl_lock *lock, redlock_time now_us);

/*
 * FILL-2. The node has come up, or has answered: gives it the keys that it lacks at the next
 *         search.
 */
void rl_backfill_note_well(rl_core *core, rl_node *node);

/*
 * FILL-3, FILL-4. Sends the key of the lock to a node that lacks it and is up. Returns false if it
 *          cannot be sent yet.
 */
bool rl_backfill_lock(rl_lock *lock, redlock_time now_us, rl_node *node);

/* Returns the time of the next search; REDLOCK_NEVER if none is needed. */
redlock_time rl_backfill_deadline(const rl_core *core);

/* FILL-3, FILL-5. If a search is due, sends the keys of all locks to the nodes that lack them. */
void rl_backfill_continue(rl_core *core, redlock_time now_us);

#endif
