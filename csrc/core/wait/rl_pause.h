/*
 * Pauses between the attempts of an acquire.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_PAUSE_H
#define RL_PAUSE_H

#include "lock/rl_lock.h"

/*
 * Returns true if enough nodes could grant |lock|, perhaps too late. Such a node did not answer the
 * round with an error, and has not been silent for longer than an attempt may take. A node with
 * many commands to execute is slow, not silent.
 */
bool rl_pause_quorum_is_alive(const rl_lock *lock, redlock_time now_us);

/*
 * Returns the least time in which the quorum can answer: the fastest reply of each connection
 * counts, and 0 for a node that has not answered on this connection.
 */
redlock_duration rl_pause_reply_time(const rl_core *core);

/*
 * Returns when the last attempt begins that the budget allows. If the quorum's nodes are as fast as
 * they ever were, their answers come in time, even if the driver wakes up a little late.
 */
redlock_time rl_pause_last_attempt_at(const rl_lock *lock);

/*
 * Returns the pause before the next attempt, which ends when the last one must begin; REDLOCK_NEVER
 * if the last one has been made.
 */
redlock_duration rl_pause_next(const rl_lock *lock, uint64_t random, redlock_time from_us);

/*
 * WAIT-2. Turns the retry_count of a waiter into a time limit: as many pauses. The waiter makes no
 *         attempts while it is queued, or while the nodes will notify it. Attempts that it makes
 *         still count.
 */
void rl_pause_limit(rl_lock *lock, redlock_time now_us);

#endif
