/*
 * Locks as callers see them, and the blocking calls.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_HANDLE_H
#define RL_HANDLE_H

#include "options/rl_options.h"
#include "redlock.h"

/*
 * Puts what a caller has |given|, a struct of |size|, over |options|. Returns NULL, or what is wrong, as a static
 * sentence.
 */
const char *rl_handle_read_options(rl_options *options, const redlock_options *given, size_t size);

/* A lock whose arguments are known to be right. Errors: NO_MEMORY. */
int rl_handle_new(redlock_lock **made, redlock_client *client, const redlock_resource *resources,
                  size_t count, const rl_options *options);

/*
 * What the last operation has ended with, by one reading of the clock; REDLOCK_PENDING before. Every
 * way out of every driver asks here: of an acquire or an extend that ended well, less than |least_us|
 * of the lease is no lock any more (rl_lock_outcome()). |least_us| is at least 1; a caller that counts
 * in whole milliseconds gives one of them. |validity_us| may be NULL; it receives what is left, and 0
 * when nothing is held.
 */
int rl_handle_outcome(redlock_lock *lock, redlock_duration least_us, redlock_duration *validity_us);

/* What redlock_lock_lost() says, where less than |least_us| of a lease is none any more. */
int rl_handle_lost(const redlock_lock *lock, redlock_duration least_us, redlock_time *since_us);

/* Returns true if an operation is in flight; looks, and does nothing else. None is in a forked child. */
int rl_handle_pending(const redlock_lock *lock);

/* The caller of the operation in flight is gone: it gives way to the next one. */
void rl_handle_abandon(redlock_lock *lock);

/* Looks for what a release that nobody waits for has ended with, without waiting. */
void rl_handle_look(redlock_lock *lock);

/*
 * For a loop that ends with the operation that was started: a lease that is to keep itself is given the keeper.
 * Returns REDLOCK_OK, or SYSTEM: the operation has been ended for it then.
 */
int rl_handle_keep(redlock_lock *lock);

/* For how long to go on for late nodes (rl_grace.c) after the operation has ended; 0 = no longer. */
redlock_duration rl_handle_late(redlock_lock *lock);

/*
 * The blocking calls in their steps, for a caller that has to look at something else while it waits:
 * one of the three that start; then, if that returned REDLOCK_OK, begin; go on as long as the operation is
 * pending; end. Starting returns what redlock_lock_acquire() and its kin would return at once, the next two
 * REDLOCK_OK or an error to end with. Going on returns when something has come, after every signal that this
 * thread takes, when Lua code is to be asked for credentials, and after |patience_us| at the latest. Ended with an error, an operation that is in flight is
 * given up for it; rl_handle_outcome() tells the result. Other threads may use the client between the steps.
 */
int rl_handle_acquire(redlock_lock *lock, const redlock_options *options, size_t options_size);
int rl_handle_extend(redlock_lock *lock, redlock_duration ttl_us);
int rl_handle_release(redlock_lock *lock);
int rl_handle_begin(redlock_lock *lock);
int rl_handle_go_on(redlock_lock *lock, redlock_duration patience_us);
void rl_handle_end(redlock_lock *lock, int error);

/*
 * The same for what an operator asks: what the nodes hold, and to delete it. |length| may be
 * REDLOCK_TOKEN_ANY.
 */
int rl_handle_inspect(redlock_lock *lock);
int rl_handle_force_release(redlock_lock *lock, const void *token, size_t length);
int rl_handle_doctor(redlock_lock *lock, unsigned flags);
int rl_handle_bootstrap(redlock_lock *lock);

/* The memory of a lock that is in no operation, about. */
size_t rl_handle_size(const redlock_lock *lock);

/* -- for rl_handle.c, _inspect.c and _attach.c: between entering the client and leaving it -- */

/* Frees a lock that was made just now, and that nobody has seen. */
void rl_handle_drop(redlock_lock *lock);

/* Returns true if the lock is free for another operation; what was lent to the caller is taken back then. */
bool rl_handle_may_begin(redlock_lock *lock);

/*
 * Who waits for the operation that |error| says was begun: a thread in a blocking call, or a loop that
 * asks what has ended. A thread is still in its call when it serves late nodes. A loop extends leases in time
 * by itself, as one more deadline; for a thread the keeper does, which this starts. Returns |error|, or
 * NO_MEMORY, SYSTEM.
 */
int rl_handle_begun(redlock_lock *lock, int error, bool blocking);

/* Wakes the caller's loop for what was begun, and leaves the client. */
int rl_handle_started(redlock_lock *lock, int error);

/*
 * Runs the caller-owned loop until the operation that |started| says was begun has ended, and leaves the
 * client. |validity_us| is written when it ended well; it may be NULL.
 */
int rl_handle_finish(redlock_lock *lock, int started, redlock_duration *validity_us);

#endif
