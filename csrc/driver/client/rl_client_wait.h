/*
 * Threads that wait in blocking calls on one client: leader and followers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_WAIT_H
#define RL_CLIENT_WAIT_H

#include "client/rl_client_state.h"

/* ---- below: the caller has entered the client ---- */

/*
 * Begins a blocking call on |lock|, or with NULL on the client; rl_wait_end() ends it. Returns NULL
 * if out of memory, or if RL_LOCK_WAITED_MAX threads are in such calls.
 */
rl_waiter *rl_wait_begin(redlock_client *client, redlock_lock *lock);
void rl_wait_end(redlock_client *client, rl_waiter *self);

/* Wakes |self| after each turn from now on. */
void rl_wait_watch(redlock_client *client, rl_waiter *self);

/* Returns the waiter of the thread in a blocking call on |lock|, or NULL. */
rl_waiter *rl_wait_of(const redlock_lock *lock);

/*
 * Waits, without the mutex: the leader for one turn, a follower until it is woken, both until
 * |until_us| at most. Sets |*interrupted| to true if a signal arrived; |interrupted| may be NULL.
 * Returns REDLOCK_OK, CANCELLED after redlock_client_wakeup(), or SYSTEM.
 */
int rl_wait_step(redlock_client *client, rl_waiter *self, redlock_time until_us, bool *interrupted);

/*
 * Leads for one turn, unless another thread takes the lead meanwhile. There must be no other
 * leader.
 */
int rl_wait_lead(redlock_client *client, rl_waiter *self, redlock_time until_us, bool *interrupted);

/* Gives up the lead: the caller of rl_wait_step() leaves the client, perhaps for long. */
void rl_wait_yield_lead(redlock_client *client, rl_waiter *self);

/* Sends unsent bytes and operations, or leaves them to arriving threads. */
void rl_wait_flush(redlock_client *client);

/* Wakes the threads that the caller's changes concern. With |unlock|, also unlocks the mutex. */
void rl_wait_wake_threads(redlock_client *client, bool unlock);

#endif
