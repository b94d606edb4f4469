/*
 * The margin of a lease: how many of its keys may vanish before a second holder is possible.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_MARGIN_H
#define RL_MARGIN_H

#include "lock/rl_lock.h"
#include "node/rl_verdict.h"

/* MAR-3. An extend begins: notes if it asks for less than is left of the lease. */
void rl_margin_extend_begins(const rl_lock *lock, redlock_time now_us);

/* MAR-1, MAR-2. Notes an answer of the node. Call it before the answer becomes a vote. */
void rl_margin_answered(const rl_node *node, const rl_outstanding *command,
                        const rl_verdict *verdict);

/* MAR-3. The extend is confirmed: reduces the set to the nodes that confirmed it. */
void rl_margin_extend_confirmed(const rl_lock *lock);

/* MAR-5. Makes the node suspect for all leases: it may have lost its keys. */
void rl_margin_suspect(const rl_core *core, const rl_node *node);

/*
 * MAR-5. Returns true if stepped clocks leave fewer certain keys of the lock's own lease than an
 * extend needs.
 */
bool rl_margin_is_suspect(const rl_lock *lock);

/* MAR-4. Returns the margin of the lease that the lock holds at |now_us|; -1 if it holds none. */
int rl_margin_of(const rl_lock *lock, redlock_time now_us);

#endif
