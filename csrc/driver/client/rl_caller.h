/*
 * A caller: a thread in a blocking call on a client, and what it does for the other callers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CALLER_H
#define RL_CALLER_H

#include "client/rl_client_state.h"

/* ---- below: the caller has entered the client ---- */

/*
 * Begins a blocking call on |lock|, or with NULL on the client; rl_caller_end() ends the call.
 * Returns NULL if out of memory, or if RL_LOCK_CALLERS_MAX threads are in such calls.
 */
rl_caller *rl_caller_begin(redlock_client *client, redlock_lock *lock);
void rl_caller_end(redlock_client *client, rl_caller *self);

/* From now on |self| is woken after each turn. */
void rl_caller_check_each_turn(redlock_client *client, rl_caller *self);

/* Returns the caller that waits for |lock|, or NULL. */
rl_caller *rl_caller_of(const redlock_lock *lock);

/*
 * Waits, without the mutex: the poller for one turn, another caller until it is woken, both until
 * |until_us| at most. Sets |*interrupted| to true if a signal arrived; |interrupted| may be NULL.
 * Returns REDLOCK_OK, CANCELLED after redlock_client_wakeup(), or SYSTEM.
 */
int rl_caller_wait(redlock_client *client, rl_caller *self, redlock_time until_us,
                   bool *interrupted);

/*
 * Polls for all callers, and takes a turn, unless a caller has relieved the watchdog meanwhile.
 * There must be no other poller.
 */
int rl_caller_poll(redlock_client *client, rl_caller *self, redlock_time until_us,
                   bool *interrupted);

/* Lets another caller poll: |self| leaves the client, perhaps for long. */
void rl_caller_yield_poll(redlock_client *client, rl_caller *self);

/* Sends unsent bytes and operations, or leaves them to arriving callers. */
void rl_caller_send(redlock_client *client);

/* Wakes the callers that changes under the mutex concern. With |unlock|, also unlocks the mutex. */
void rl_caller_wake_threads(redlock_client *client, bool unlock);

#endif
