/*
 * Acquiring a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ACQUIRE_H
#define RL_ACQUIRE_H

#include <stdbool.h>

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"

/*
 * The node does not know the script that sets several keys: once more, by its text, while the round
 * lasts, or the lease. Returns whether it was sent.
 */
bool rl_acquire_send_text(rl_node *node, redlock_time now_us, const rl_outstanding *owed);

extern const rl_steps rl_acquire_steps;

#endif
