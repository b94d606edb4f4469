/*
 * Extending a lease.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_EXTEND_H
#define RL_EXTEND_H

#include "lock/rl_steps.h"

/*
 * For rl_upper: a node votes after the decision. EXT-4: heals a node that denies an extended key.
 * EXT-5: ends a lease that too many nodes deny, after a failed extend.
 */
void rl_extend_late_vote(rl_lock *lock, redlock_time now_us, rl_node *node, redlock_vote vote);

#endif
