/*
 * Releasing by force: an operator deletes somebody else's key.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_FORCE_H
#define RL_FORCE_H

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"

int rl_lock_force_release(rl_lock *lock, redlock_time now_us, const void *token,
                          size_t token_length, bool notify);

extern const rl_steps rl_force_steps;

#endif
