/*
 * Acquiring a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ACQUIRE_H
#define RL_ACQUIRE_H

#include <stdbool.h>

#include "rl_lock.h"
#include "rl_node.h"

/* Whether so many nodes answer within the time of an attempt that they could grant |lock|. */
bool rl_acquire_hears(const rl_lock *lock, redlock_time now_us);

/*
 * What the nodes that are needed take to answer, at least: by the fastest reply of each. One that has not
 * answered on this connection might do so at once.
 */
redlock_duration rl_acquire_needs(const struct rl_core *core);

/*
 * Returns when the last attempt begins that the budget allows: a majority as fast as it ever was can
 * still answer then, and drivers may wake up a little late.
 */
redlock_time rl_acquire_last(const rl_lock *lock);

/*
 * Returns the pause before the next attempt, which ends when the last one must begin; REDLOCK_NEVER if
 * the last one has been made.
 */
redlock_duration rl_acquire_pause(const rl_lock *lock, uint64_t random, redlock_time from_us);

/*
 * A5. A waiter makes no attempts while the nodes will notify it. Its retry_count becomes a time limit, of
 * as many pauses. Its attempts remain counted.
 */
void rl_acquire_limit(rl_lock *lock, redlock_time now_us);

/* A1. Returns false when the operation has ended instead. */
bool rl_acquire_begin(rl_lock *lock, redlock_time now_us, const unsigned char *entropy);

/* A2, for one node. Returns NULL, or why it was not sent. */
const char *rl_acquire_send(rl_lock *lock, redlock_time now_us, rl_node *node);

/*
 * The node does not know the script that sets several keys: once more, by its text, while the round
 * lasts, or the lease. Returns whether it was sent.
 */
bool rl_acquire_send_text(rl_node *node, redlock_time now_us, const rl_owed *owed);

/* A3 to A5: acts on the votes as soon as they are decisive. */
void rl_acquire_decide(rl_lock *lock, redlock_time now_us);

#endif
