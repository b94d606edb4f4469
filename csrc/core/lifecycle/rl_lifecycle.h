/*
 * The life of a lock, and the beginning and the end of the operations on it.
 *
 * SPDX-License-Identifier: MIT
 *
 * What ends, and by which function:
 *   an operation: rl_lock_end() when votes or time decide it, rl_lock_cancel() when the caller does
 *   a lease: rl_lease_lose() when nodes deny it, rl_lock_expire() when time was up before it was told
 *   both: rl_lock_close() with the client, rl_lock_free() with the lock
 * All of these release what may be left on nodes. rl_lock_reset() ends both in a forked child, and
 * sends nothing.
 */
#ifndef RL_LIFECYCLE_H
#define RL_LIFECYCLE_H

#include "lock/rl_lock.h"
#include "lock/rl_result.h"

/* NULL when out of memory. |options| that are the core's are shared, and must not change any more. */
rl_lock *rl_lock_new(struct rl_core *core, const void *resource, size_t length,
                     const rl_options *options);

/* The same for one to REDLOCK_RESOURCES_MAX resources, none of them twice. */
rl_lock *rl_lock_new_many(struct rl_core *core, const redlock_resource *resources, size_t count,
                          const rl_options *options);

/*
 * Frees the lock; its token is released on every node that may hold it. Allocates nothing.
 */
void rl_lock_free(rl_lock *lock, redlock_time now_us);

/*
 * Begin an operation. The commands go out with the next rl_core_send(). |notify| puts the lock in
 * the queue of ended operations when it has ended. Errors as redlock.h says.
 */
int rl_lock_acquire(rl_lock *lock, redlock_time now_us, const redlock_options *options,
                    bool notify);

int rl_lock_extend(rl_lock *lock, redlock_time now_us, redlock_duration ttl_us, bool notify);

/* Ends an extend in flight, whose end is not reported. */
int rl_lock_release(rl_lock *lock, redlock_time now_us, bool notify);

/*
 * A release that nobody waits for. It is launched at once, whatever the nodes owe. An acquire or an
 * extend that comes before it has ended takes its place, and it goes on without the lock; another
 * release takes it up, and is told what it ends with.
 */
int rl_lock_release_send(rl_lock *lock, redlock_time now_us);

/*
 * The caller of the operation in flight is gone. The operation goes on, and gives way to the next one; another
 * release takes a release up.
 */
void rl_lock_abandon(rl_lock *lock);

/* Returns true if an extend of the user's is in flight, which a release would end. */
bool rl_lock_is_extending(const rl_lock *lock);

/* The end of what is in flight is to be told by rl_core_next_ended(). */
void rl_lock_report_end(rl_lock *lock);

/*
 * An operation that cannot begin, because an argument is wrong: |wrong| is a static sentence. Returns
 * REDLOCK_E_INVALID, which is the lock's result from now on, or REDLOCK_E_BUSY.
 */
int rl_lock_refuse_argument(rl_lock *lock, rl_operation operation, const char *wrong);

/* Ends the operation in flight with |error|; what it may have set is released. */
void rl_lock_cancel(rl_lock *lock, redlock_time now_us, int error);

/* The same for one that has only just begun, and may have ended at once: an acquire does not count then. */
void rl_lock_undo(rl_lock *lock, redlock_time now_us, int error);

/*
 * The lease was granted or extended, but ran out before the caller could be told: it is released, and
 * the result is REDLOCK_E_EXPIRED.
 */
void rl_lock_expire(rl_lock *lock, redlock_time now_us);

/*
 * "No validity, no lock": what a caller may be told at |now_us| that the last operation has ended
 * with. Every result leaves through here. REDLOCK_OK of an acquire or an extend means that the lease
 * lasts at |now_us|; if it does not any more, it expires now, and the result is REDLOCK_E_EXPIRED, or
 * REDLOCK_E_CLOSED when the client was closed. REDLOCK_PENDING while the operation is in flight.
 */
int rl_lock_outcome(rl_lock *lock, redlock_time now_us);

/* The client is closed: ends the operation in flight with REDLOCK_E_CLOSED, releases the lease. */
void rl_lock_close(rl_lock *lock, redlock_time now_us);

/* The lock's timer is due. */
void rl_lock_timer(rl_lock *lock, redlock_time now_us);

/* Forgets lease and operation without releasing anything (a forked child). */
void rl_lock_reset(rl_lock *lock);

/* The operation could not begin, because of |error|, which is returned. */
int rl_lock_refuse(rl_lock *lock, rl_operation operation, int error);

/*
 * For operator/rl_ask.c. Returns REDLOCK_OK if the operation may begin; begins it with |attempt|, which
 * no node will hold.
 */
int rl_lock_may_ask(rl_lock *lock, redlock_time now_us, rl_operation operation);
int rl_lock_begin_asking(rl_lock *lock, rl_operation operation, redlock_time now_us,
                         rl_attempt *attempt, bool notify);

/* What follows when an operation has ended: rl_upper. */
void rl_lifecycle_ended(rl_lock *lock, redlock_time now_us, int result);

#endif
