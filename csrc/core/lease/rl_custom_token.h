/*
 * A token that the caller supplies for the next acquire of a lock, in place of a fresh one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CUSTOM_TOKEN_H
#define RL_CUSTOM_TOKEN_H

#include "lock/rl_lock.h"

/* Copies the token. Returns REDLOCK_OK, or REDLOCK_E_NO_MEMORY, having changed nothing. */
int rl_custom_token_set(rl_lock *lock, const void *token, size_t token_length);

/* Returns the attempt with the token, and its reference; NULL if the caller has supplied none. */
rl_attempt *rl_custom_token_take(rl_lock *lock);

/* Drops the token: the lock is freed, or the process has forked. */
void rl_custom_token_forget(rl_lock *lock);

#endif
