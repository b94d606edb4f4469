/*
 * Acquiring a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ACQUIRE_H
#define RL_ACQUIRE_H

#include <stdbool.h>

#include "rl_lock.h"
#include "rl_node.h"
#include "rl_steps.h"

/*
 * The node does not know the script that sets several keys: once more, by its text, while the round
 * lasts, or the lease. Returns whether it was sent.
 */
bool rl_acquire_send_text(rl_node *node, redlock_time now_us, const rl_owed *owed);

extern const rl_steps rl_acquire_steps;

#endif
