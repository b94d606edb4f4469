/*
 * The margin of a lease: how many of its keys may vanish before a second holder is possible.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_MARGIN_H
#define RL_MARGIN_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"
#include "node/rl_verdict.h"

/* M3: an extend begins. Whether it asks for less than is left of the lease. */
void rl_margin_extends(const rl_lock *lock, redlock_time now_us);

/* M1, M2: a node has answered. To be called before the answer becomes a vote. */
void rl_margin_answered(const rl_node *node, const rl_outstanding *command, rl_verdict verdict);

/* M3: the extend of this round is confirmed. */
void rl_margin_confirmed(const rl_lock *lock);

/* M5. The keys that the node has had may have ended. */
void rl_margin_suspect(const struct rl_core *core, const rl_node *node);

/* M5. Whether for that reason fewer nodes are known to hold the key of the lock's own lease than an extend needs. */
bool rl_margin_is_suspect(const rl_lock *lock);

/* M4. The margin of the lease that the lock holds at |now_us|; -1 when it holds none. */
int rl_margin_of(const rl_lock *lock, redlock_time now_us);

#endif
