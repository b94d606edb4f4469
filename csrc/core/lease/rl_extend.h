/*
 * Extending a lease.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_EXTEND_H
#define RL_EXTEND_H

#include <stdbool.h>

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"

/* The node does not know the script: once more, by its text. Returns whether it was sent. */
bool rl_extend_send_text(rl_node *node, redlock_time now_us, const rl_outstanding *owed);

extern const rl_steps rl_extend_steps;

#endif
