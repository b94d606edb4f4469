/*
 * Threads that wait in blocking calls on one client: leader and followers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_WAIT_H
#define RL_CLIENT_WAIT_H

#include "client/rl_client_state.h"

/* ---- all below: the caller has entered the client ---- */

/*
 * Begins a blocking call, on |lock| or, with NULL, on the client; to be ended by rl_wait_end(). NULL when
 * out of memory, or when RL_LOCK_WAITED_MAX threads are in such calls.
 */
rl_waiter *rl_wait_begin(redlock_client *client, redlock_lock *lock);

/* |self| is called after each turn from now on. */
void rl_wait_watch(redlock_client *client, rl_waiter *self);

/* The waiter of the thread that is in a blocking call on |lock|, or NULL. */
rl_waiter *rl_wait_of(const redlock_lock *lock);
void rl_wait_end(redlock_client *client, rl_waiter *self);

/*
 * Waits for something to come: as the leader, for one turn; as a follower until it is called. For no longer
 * than until |until_us|. Others may enter meanwhile. |*interrupted|, if it is not NULL, tells whether
 * a signal was taken. Returns REDLOCK_OK, REDLOCK_E_CANCELLED after redlock_client_wakeup(), or
 * REDLOCK_E_SYSTEM.
 */
int rl_wait_step(redlock_client *client, rl_waiter *self, redlock_time until_us, bool *interrupted);

/*
 * Leads for one turn: waits for the nodes, and processes what has come, unless another has taken the lead
 * meanwhile. Nobody else leads.
 */
int rl_wait_lead(redlock_client *client, rl_waiter *self, redlock_time until_us, bool *interrupted);

/* The caller of rl_wait_step() is about to leave the client, and may come back late. */
void rl_wait_pause(redlock_client *client, rl_waiter *self);

/* Sends what is there to be sent, or leaves it to the threads that are coming. */
void rl_wait_flush(redlock_client *client);

/* Tells the threads that wait what has changed. |unlock|: and leaves the mutex. */
void rl_wait_wake_threads(redlock_client *client, bool unlock);

#endif
