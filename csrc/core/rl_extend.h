/*
 * Extending a lease.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_EXTEND_H
#define RL_EXTEND_H

#include <stdbool.h>

#include "rl_lock.h"
#include "rl_node.h"
#include "rl_steps.h"

/* The node does not know the script: once more, by its text. Returns whether it was sent. */
bool rl_extend_send_text(rl_node *node, redlock_time now_us, const rl_owed *owed);

extern const rl_steps rl_extend_steps;

#endif
