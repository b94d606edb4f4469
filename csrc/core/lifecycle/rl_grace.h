/*
 * Late nodes: how long a caller that does nothing between its calls should go on for them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_GRACE_H
#define RL_GRACE_H

#include "lock/rl_lock.h"

/*
 * Until when to go on with rl_core.h's steps after the operation on |lock| has ended, so that the nodes
 * that were not needed for its decision get their commands too; not after |now_us| when there is nothing
 * to go on for. To be asked again after each step.
 */
redlock_time rl_grace_until(const rl_lock *lock, redlock_time now_us);

#endif
