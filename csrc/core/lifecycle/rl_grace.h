/*
 * The grace period: how long a blocking call waits for slow nodes after its operation has ended.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_GRACE_H
#define RL_GRACE_H

#include "lock/rl_lock.h"

/*
 * Returns until when the caller must go on with the steps of rl_core.h after the operation on
 * |lock| has ended; at most |now_us| if no node needs more time. Call it again after each step.
 */
redlock_time rl_grace_until(const rl_lock *lock, redlock_time now_us);

#endif
