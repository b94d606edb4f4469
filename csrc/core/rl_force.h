/*
 * Releasing by force: an operator deletes somebody else's key.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_FORCE_H
#define RL_FORCE_H

#include "rl_lock.h"
#include "rl_node.h"

/* O2. Sends the command. Returns NULL, or why it was not sent. */
const char *rl_force_send(rl_lock *lock, redlock_time now_us, rl_node *node);

/* O3 */
void rl_force_decide(rl_lock *lock, redlock_time now_us);

#endif
