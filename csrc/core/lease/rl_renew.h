/*
 * Automatic extension: a lease that keeps itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RENEW_H
#define RL_RENEW_H

#include <stdbool.h>

#include "lease/rl_loss.h"
#include "lock/rl_result.h"

/* After an extend that failed, the next one comes no sooner than this. */
#define RL_RENEW_RETRY_MIN_US (5 * REDLOCK_MILLISECONDS)

/* Automatic extends are no closer than this, unless the ttl wants it: thousands of leases share the nodes. */
#define RL_RENEW_EVERY_MIN_US (10 * REDLOCK_MILLISECONDS)

/*
 * Makes room for what |options| ask for, if they do and the lock has none. The room is the lock's until
 * it is freed. False when out of memory.
 */
bool rl_renew_reserve(rl_lock *lock, const rl_options *options);
void rl_renew_free(rl_lock *lock);

/* R1, R2: an operation, the user's or an automatic one, has ended: when to look at the lock again. */
void rl_renew_ended(rl_lock *lock, redlock_time now_us);

/* R1, R5: the lock's timer is due while nothing is in flight. */
void rl_renew_timer(rl_lock *lock, redlock_time now_us);

/* A lease has come from another lock of its owner, or another one counts on it: when to look at it. */
void rl_renew_schedule(rl_lock *lock, redlock_time now_us);

/* R6: a node may have lost the keys that it had (rl_margin_suspect()): for all leases. */
void rl_renew_suspect_all(struct rl_core *core, redlock_time now_us);

/* R4: an extend that the user has not asked for is about to be sent, while the lease lasts and is not capped. */
void rl_renew_cap(rl_lock *lock, redlock_time now_us);

/* When the lease of |carrier| ends is when that of |lock| does. */
void rl_renew_copy_end(rl_lock *lock, const rl_lock *carrier);

/* R3: ends the automatic extend in flight, if there is one. The lease stays as it is. */
void rl_renew_stop(rl_lock *lock, redlock_time now_us);

#endif
