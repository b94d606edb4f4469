/*
 * The outbox: locks in phase SEND. Here operations begin, pause and end.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OUTBOX_H
#define RL_OUTBOX_H

#include "lock/rl_lock.h"

void rl_outbox_init(rl_core *core);
void rl_outbox_free(rl_core *core);

/*
 * Makes room for |locks| locks, so that the other calls cannot fail. Returns false when out of
 * memory.
 */
bool rl_outbox_reserve(rl_core *core, size_t locks);

/* Puts the lock into the outbox, in phase SEND; or takes it out. */
void rl_outbox_enter(rl_lock *lock, redlock_time now_us);
void rl_outbox_leave(rl_lock *lock);

/* Lets the pacer check again if the nodes have room: a reply has come, or a connection changed. */
void rl_outbox_reopen(rl_core *core);

/*
 * Begins an operation of a lock without one in flight. With |notify| the lock enters the queue of
 * ended operations at the end.
 */
void rl_lock_begin_send(rl_lock *lock, rl_operation operation, redlock_time now_us,
                        redlock_time budget_ends_us, bool notify);

/* Ends the operation in flight with |result|. */
void rl_lock_end(rl_lock *lock, redlock_time now_us, int result);

/* Pauses the acquire in flight until its next attempt, because the last one ended with |result|. */
void rl_lock_pause(rl_lock *lock, int result, redlock_time until_us);

/* Ends phase SUCCEEDED: late votes of the last operation no longer count. */
void rl_lock_ignore_late_votes(rl_lock *lock);

#endif
