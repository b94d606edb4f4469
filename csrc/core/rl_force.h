/*
 * Releasing by force: an operator deletes somebody else's key.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_FORCE_H
#define RL_FORCE_H

#include "rl_lock.h"
#include "rl_node.h"
#include "rl_steps.h"

int rl_lock_force_release(rl_lock *lock, redlock_time now_us, const void *token,
                          size_t token_length, bool notify);

extern const rl_steps rl_force_steps;

#endif
