/*
 * The outbox: locks whose operation was begun, and whose commands are to be sent.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OUTBOX_H
#define RL_OUTBOX_H

#include "lock/rl_lock.h"

void rl_outbox_init(rl_core *core);
void rl_outbox_free(rl_core *core);

/* Makes room for so many locks; the other calls then cannot fail. False when out of memory. */
bool rl_outbox_reserve(rl_core *core, size_t locks);

/* The commands of the lock are to be sent; and they are not any more. */
void rl_outbox_enter(rl_lock *lock, redlock_time now_us);
void rl_outbox_leave(rl_lock *lock);

/* A reply has come, or a connection has changed: the window may be open again. */
void rl_outbox_reopen(rl_core *core);

/* An operation is to be launched. Nothing is in flight, and the lock's timer is not set. */
void rl_lock_begin_send(rl_lock *lock, rl_operation operation, redlock_time now_us,
                        redlock_time budget_us, bool notify);

/* Ends the operation in flight with |result|. */
void rl_lock_end(rl_lock *lock, redlock_time now_us, int result);

/* The acquire in flight pauses before its next attempt, because the last one ended with |result|. */
void rl_lock_pause(rl_lock *lock, int result, redlock_time until_us);

/* No operation is in flight. Late answers to the last one no longer matter. */
void rl_lock_end_grace(rl_lock *lock);

#endif
