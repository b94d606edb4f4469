/*
 * The life of a lock, and the beginning and the end of the operations on it.
 *
 * SPDX-License-Identifier: MIT
 *
 * An operation ends by rl_lock_end() when votes or time decide it, and by rl_lock_cancel() when the
 * caller does. A lease ends by rl_lease_end_lost() when nodes deny it, and by rl_lock_expire() when
 * its time is up before the caller learns of it. rl_lock_close() ends both with the client,
 * rl_lock_free() with the lock. All of them release what may remain on nodes. rl_lock_reset() ends
 * both in a forked child, and sends nothing.
 */
#ifndef RL_LIFECYCLE_H
#define RL_LIFECYCLE_H

#include "lock/rl_lock.h"
#include "lock/rl_result.h"

/*
 * Returns a lock on one resource, or NULL when out of memory. If |options| equal the core's, the
 * lock uses those. Then they must not change.
 */
rl_lock *rl_lock_new(struct rl_core *core, const void *resource, size_t length,
                     const rl_options *options);

/* Does the same for 1 to REDLOCK_RESOURCES_MAX different resources. */
rl_lock *rl_lock_new_many(struct rl_core *core, const redlock_resource *resources, size_t count,
                          const rl_options *options);

/* Frees the lock, and releases its token on each node that may hold it. Allocates nothing. */
void rl_lock_free(rl_lock *lock, redlock_time now_us);

/*
 * Begin an operation. The next rl_core_send() sends its commands. With |notify| the lock enters the
 * queue of ended operations at the end. Errors: as in redlock.h.
 */
int rl_lock_acquire(rl_lock *lock, redlock_time now_us, const redlock_options *options,
                    bool notify);

/* Begins an operation that needs a lease that lasts (RL_HOLDS). |ttl_us| is that of an extend. */
int rl_lock_on_lease(rl_lock *lock, redlock_time now_us, rl_operation operation,
                     redlock_duration ttl_us, bool notify);

static inline int rl_lock_extend(rl_lock *lock, redlock_time now_us, redlock_duration ttl_us,
                                 bool notify) {
  return rl_lock_on_lease(lock, now_us, RL_OPERATION_EXTEND, ttl_us, notify);
}

/* First ends an extend in flight; the caller of the extend gets no result. */
int rl_lock_release(rl_lock *lock, redlock_time now_us, bool notify);

/*
 * Begins a fire-and-forget release, which no in-flight limit delays. If an acquire or an extend
 * begins before its end, the release goes on without the lock. Another release takes it up, and
 * gets its result.
 */
int rl_lock_release_send(rl_lock *lock, redlock_time now_us);

/*
 * Notes that no caller waits for the operation in flight. The next operation ends it, but a release
 * takes up a release.
 */
void rl_lock_abandon(rl_lock *lock);

/* Returns true if an extend of the user is in flight, which a release would end. */
bool rl_lock_is_extending(const rl_lock *lock);

/* Makes rl_core_next_ended() return the lock when its operation in flight has ended. */
void rl_lock_report_end(rl_lock *lock);

/*
 * Refuses an operation because of a wrong argument: |wrong| is a static sentence. Returns
 * REDLOCK_E_INVALID, which becomes the lock's result, or REDLOCK_E_BUSY.
 */
int rl_lock_refuse_argument(rl_lock *lock, rl_operation operation, const char *wrong);

/* Ends the operation in flight with |error|, and releases the keys that it may have set. */
void rl_lock_cancel(rl_lock *lock, redlock_time now_us, int error);

/*
 * Does the same for an operation that has just begun. If an acquire has ended already, it is
 * undone.
 */
void rl_lock_undo(rl_lock *lock, redlock_time now_us, int error);

/*
 * Releases a lease that expired before its caller learned of it. The result is REDLOCK_E_EXPIRED.
 */
void rl_lock_expire(rl_lock *lock, redlock_time now_us);

/*
 * Returns the result of the last operation for its caller at |now_us|; REDLOCK_PENDING while the
 * operation is in flight. All results pass here. REDLOCK_OK of an acquire or an extend means that
 * the lease lasts at |now_us|: "no validity, no lock". If the lease is gone, the result becomes
 * REDLOCK_E_EXPIRED, LOST, NOT_HELD or CLOSED.
 */
int rl_lock_outcome(rl_lock *lock, redlock_time now_us);

/* Ends the operation in flight with REDLOCK_E_CLOSED, and releases the lease. */
void rl_lock_close(rl_lock *lock, redlock_time now_us);

/* Handles the timer of the lock, which is due. */
void rl_lock_timer(rl_lock *lock, redlock_time now_us);

/* Drops lease and operation without releasing anything: a forked child. */
void rl_lock_reset(rl_lock *lock);

/* Makes |error| the result of an operation that could not begin. Returns |error|. */
int rl_lock_refuse(rl_lock *lock, rl_operation operation, int error);

/*
 * For operator/rl_ask.c. The first returns REDLOCK_OK if the operation may begin; otherwise it
 * makes the error the result of the lock. The second begins the operation with |attempt|, which no
 * node will hold.
 */
int rl_lock_check_ask(rl_lock *lock, redlock_time now_us, rl_operation operation);
int rl_lock_begin_asking(rl_lock *lock, rl_operation operation, redlock_time now_us,
                         rl_attempt *attempt, bool notify);

/* For rl_upper: acts on the end of an operation with |result|. */
void rl_lifecycle_ended(rl_lock *lock, redlock_time now_us, int result);

#endif
