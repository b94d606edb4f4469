/*
 * Applies what the guard has found (rl_guard_news) to leases and rounds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_GUARD_EFFECTS_H
#define RL_GUARD_EFFECTS_H

#include "lock/rl_lock.h"

/* GRD-1. All nodes have been added. */
void rl_guard_effects_prepare(rl_core *core);

/*
 * GRD-2. The node has answered the guard. Unless that was the last step of its handshake,
 *        |came_up|, rounds that wait for it go on.
 */
void rl_guard_effects_answered(rl_core *core, rl_node *node, redlock_time now_us,
                               const rl_outstanding *command, bool came_up);

/*
 * GRD-6. A reply to |command| has the time of the node's clock, |node_us|. Returns true if the
 *        caller must call rl_renew_warn_all() after it has read the reply.
 */
bool rl_guard_effects_note_clock(rl_core *core, rl_node *node, redlock_time now_us,
                                 const rl_outstanding *command, uint64_t node_us);

/* GRD-3, GRD-6. A connection has ended. */
void rl_guard_effects_review(rl_core *core, redlock_time now_us);

#endif
