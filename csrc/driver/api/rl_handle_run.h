/*
 * Runs the operations of locks: blocking, in the steps of a blocking call, or for the program's
 * loop.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_HANDLE_RUN_H
#define RL_HANDLE_RUN_H

#include "base/rl_operation.h"
#include "lock/rl_steps.h"
#include "redlock.h"

/* An operation with its arguments, each of which belongs to one operation. */
typedef struct rl_request {
  rl_operation operation;
  const redlock_options *options; /* acquire; or NULL */
  size_t options_size;
  redlock_duration ttl_us; /* extend */
  rl_question question;    /* an operation that asks (operator/rl_ask.h) */
} rl_request;

/*
 * Begins |request| in the core, for drivers whose clients belong to one thread. The caller has
 * checked the arguments; |request->options| are of this version.
 */
int rl_request_begin(rl_lock *lock, redlock_time now_us, const rl_request *request);

/* Blocks until the operation has ended. |validity_us| is written after success; it may be NULL. */
int rl_handle_run(redlock_lock *lock, const rl_request *request, redlock_duration *validity_us);

/* Begins the operation for the program's loop. */
int rl_handle_start(redlock_lock *lock, const rl_request *request);

/*
 * For a loop that ends with the operation that it has started: starts the watchdog if the lease
 * needs it. Returns REDLOCK_OK, or SYSTEM, which has then ended the operation.
 */
int rl_handle_ensure_watchdog(redlock_lock *lock);

/*
 * A blocking call in steps, for a caller that has something else to do while it waits:
 *   1. rl_handle_prepare() returns what the blocking call would return at once. Unless that is
 *      REDLOCK_OK, there are no further steps.
 *   2. rl_handle_begin() returns REDLOCK_OK, or an error for step 4.
 *   3. rl_handle_go_on(), while the operation is pending: returns after each turn, after each
 *      signal of this thread, when Lua code must supply credentials, and after |patience_us|.
 *      Returns REDLOCK_OK, or an error for step 4.
 *   4. rl_handle_end() cancels the operation if |error| is not REDLOCK_OK.
 * rl_handle_outcome() is the result. Other threads may use the client between the steps.
 */
int rl_handle_prepare(redlock_lock *lock, const rl_request *request);
int rl_handle_begin(redlock_lock *lock);
int rl_handle_go_on(redlock_lock *lock, redlock_duration patience_us);
void rl_handle_end(redlock_lock *lock, int error);

/*
 * Returns the result of the last operation, by one reading of the clock; REDLOCK_PENDING before its
 * end. Every result of every driver comes from here. After an acquire or an extend, less than
 * |least_us| of the lease counts as none (rl_lock_outcome()): at least 1; a caller that counts in
 * milliseconds passes one of them. |*validity_us| is what is left, 0 if nothing is held;
 * |validity_us| may be NULL.
 */
int rl_handle_outcome(redlock_lock *lock, redlock_duration least_us, redlock_duration *validity_us);

/* Returns true if an operation is in flight. Never in a forked child. */
int rl_handle_pending(const redlock_lock *lock);

/* The caller of the operation in flight is gone: the next operation may take its place. */
void rl_handle_abandon(redlock_lock *lock);

/* Reads replies for a fire-and-forget release, without waiting. */
void rl_handle_poll(redlock_lock *lock);

/* Notes |error| and the lock's message for redlock_client_message(). Returns |error|. */
int rl_handle_note(redlock_lock *lock, int error);

/*
 * Returns for how long to wait for slow nodes after the operation has ended (rl_grace.c); 0 = no
 * longer.
 */
redlock_duration rl_handle_grace(redlock_lock *lock);

/* ---- below: the caller has entered the client ---- */

/*
 * Returns true if the lock may begin an operation. Invalidates what the program has borrowed from
 * the lock.
 */
bool rl_handle_may_begin(redlock_lock *lock);

/*
 * A call that is no operation returns |error|. The message of an earlier failure must not stand for
 * it: replaces that result by |error|, with |reason|, a static sentence, or NULL. Any other result
 * stays, because its message is "". Returns |error|.
 */
int rl_handle_refuse(redlock_lock *lock, int error, const char *reason);

#endif
