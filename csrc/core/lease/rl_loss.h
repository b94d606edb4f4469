/*
 * Losses: leases that ended without a release, or may end so, with the reason.
 *
 * SPDX-License-Identifier: MIT
 *
 * A reason is a code:
 *   EXPIRED      the deadline has passed
 *   LOST         so many nodes deny the lease that too few are left for an extend (EXT-5)
 *   MAX_HOLD     the deadline has passed, because max_hold has ended the automatic extends
 *   UNAVAILABLE  a warning: the lease lasts, but automatic extends fail
 *   CLOCK        a warning: clocks of nodes were stepped, and the other nodes with the key are
 *                fewer than a quorum (REN-6)
 * The next confirmed extend ends a warning, or another reason follows.
 *
 * A lock with a loss to report is in a queue, once, until it is taken off. A release, a cancelled
 * operation, a freed lock and a closed client are no loss.
 */
#ifndef RL_LOSS_H
#define RL_LOSS_H

#include "lock/rl_result.h"

typedef struct rl_losses {
  rl_list queue;  /* of rl_loss */
  uint32_t count; /* of all losses and warnings so far, each reason once */
} rl_losses;

/*
 * The lease is lost since |since_us|, or a warning holds since then. Queues each lock that shares
 * the lease and reports losses, once for each reason.
 */
void rl_loss_report(rl_lock *lock, int reason, redlock_time since_us);

/* REN-5. The deadline has passed, and the lease was not released. */
void rl_loss_report_expired(rl_lock *lock);

/* Counts the loss of the lease, unless it is counted. Leases without a report count, too. */
void rl_loss_count(rl_lock *lock, redlock_time now_us, int reason);

/* Returns the reason of a lease whose deadline has passed. */
int rl_loss_reason(const rl_lock *lock);

/* Returns true if the lease lasts in spite of |reason|. */
bool rl_loss_only_warns(int reason);

/* Drops the loss of the lock: nothing is lost any more, or no caller wants to know. */
void rl_loss_clear(rl_lock *lock);

/* Drops the losses of all locks that share the lease. */
void rl_loss_clear_all(rl_lock *lock);

/*
 * Returns why the last lease of the lock is lost at |now_us|, and since when; REDLOCK_OK if it is
 * not lost.
 */
int rl_loss_of(const rl_lock *lock, redlock_time now_us, redlock_time *since_us);

/* Takes a lock off the queue at |now_us|; NULL if the queue is empty. */
rl_lock *rl_loss_next(rl_core *core, redlock_time now_us);

#endif
