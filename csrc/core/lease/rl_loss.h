/*
 * Losses: which leases have ended without their holder's doing, and why.
 *
 * SPDX-License-Identifier: MIT
 *
 * A reason is a code:
 *   EXPIRED      the deadline has passed
 *   LOST         so many nodes say "not yours" that no majority is left
 *   MAX_HOLD     the deadline has passed, for max_hold has ended the automatic extends
 *   UNAVAILABLE  not yet: the lease lasts, but automatic extends fail. It is over with the next one
 *                that is confirmed, else it ends in one of the others.
 *   CLOCK        not yet: so many nodes were stepped that those that certainly still have the key are no
 *                quorum any more (R6 of rl_renew.c). It is over as the one before is, and ends as it does.
 * Locks whose loss is to be told stand in a queue, once for each reason, until they are taken off it.
 * A release, a cancelled operation, a lock that is freed and a client that is closed are no loss.
 */
#ifndef RL_LOSS_H
#define RL_LOSS_H

#include <stdbool.h>

#include "lock/rl_result.h"

struct rl_core;
struct rl_lock;

typedef struct rl_losses {
  rl_list queue;
  uint32_t count; /* of all that there have been, each reason for itself */
} rl_losses;

/*
 * The lease of the lock is lost since |since_us|: for each lock that counts on it, if its loss is to be told. Each
 * reason counts once.
 */
void rl_loss_report(struct rl_lock *lock, int reason, redlock_time since_us);

/* Returns why a lease whose deadline has passed has ended. */
int rl_loss_reason(const struct rl_lock *lock);

/* R5 of rl_renew.c: the deadline has passed, and the lease was not released. */
void rl_loss_report_expired(struct rl_lock *lock);

/* Returns true if it is said of a lease that lasts. */
bool rl_loss_only_warns(int reason);

/* Nothing is lost any more, or nobody is to be told. */
void rl_loss_clear(struct rl_lock *lock);

/* The same of all locks that count on the lease. */
void rl_loss_clear_all(struct rl_lock *lock);

/* Why the last lease of the lock is lost at |now_us|, and since when; REDLOCK_OK when it is not. */
int rl_loss_of(const struct rl_lock *lock, redlock_time now_us, redlock_time *since_us);

/* Takes a lock off the queue at |now_us|; NULL when it is empty. */
struct rl_lock *rl_loss_next(struct rl_core *core, redlock_time now_us);

#endif
