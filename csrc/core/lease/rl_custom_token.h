/*
 * A token that the caller gives for the next acquire of a lock, in place of a fresh one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CUSTOM_TOKEN_H
#define RL_CUSTOM_TOKEN_H

#include "lock/rl_lock.h"

/* Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY, having changed nothing. */
int rl_custom_token_set(rl_lock *lock, const void *token, size_t token_length);

/* The attempt with the token, whose reference is the caller's from now on; NULL when none was given. */
rl_attempt *rl_custom_token_take(rl_lock *lock);

/* The lock goes, or the process has forked. */
void rl_custom_token_forget(rl_lock *lock);

#endif
