/*
 * Locks as programs see them: making and freeing them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_HANDLE_H
#define RL_HANDLE_H

#include "options/rl_options.h"
#include "redlock.h"

extern const char rl_handle_needs_auto_extend[]; /* a sentence about options */

/*
 * Applies a program's options |given|, a struct of |size| bytes, over |options|. Returns NULL, or
 * why they are wrong, as a static sentence.
 */
const char *rl_handle_read_options(rl_options *options, const redlock_options *given, size_t size);

/* Makes a lock whose arguments have been checked. Errors: NO_MEMORY. */
int rl_handle_new(redlock_lock **made, redlock_client *client, const redlock_resource *resources,
                  size_t count, const rl_options *options);

/* Returns what redlock_lock_lost() does, if less than |least_us| of a lease counts as none. */
int rl_handle_lost(const redlock_lock *lock, redlock_duration least_us, redlock_time *since_us);

/* Returns the approximate memory of a lock without an operation, in bytes. */
size_t rl_handle_size(const redlock_lock *lock);

/* ---- below: the caller has entered the client ---- */

/* Invalidates the message and the token that the program has borrowed from the lock. */
void rl_handle_take_back(redlock_lock *lock);

#endif
