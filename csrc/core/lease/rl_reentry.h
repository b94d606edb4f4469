/*
 * Re-entrance: an owner acquires again what it holds, without waiting.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_REENTRY_H
#define RL_REENTRY_H

#include "base/rl_hash.h"
#include "lock/rl_ring.h"

typedef struct rl_reentries {
  rl_hash lease_owners; /* by owner and resource; with several resources, by the owner alone */
  rl_hash acquiring;    /* locks with an acquire in flight, by owner */
  size_t owned;         /* locks that have or had an owner */
} rl_reentries;

/*
 * Sets the owner from the next acquire on. |length| is 0 for none, and at most REDLOCK_OWNER_MAX.
 * Returns REDLOCK_OK; HELD if another owner holds the lock; NO_MEMORY.
 */
int rl_reentry_set_owner(rl_lock *lock, redlock_time now_us, const void *owner, size_t length);

typedef enum rl_reentry_answer {
  RL_REENTRY_ALONE,   /* the owner holds none of the resources: an ordinary acquire */
  RL_REENTRY_SHARED,  /* OWN-2 */
  RL_REENTRY_EXTENDS, /* OWN-3: the lock is the lease owner, and must extend the lease */
  RL_REENTRY_REFUSED  /* OWN-4 */
} rl_reentry_answer;

/*
 * OWN-1 to OWN-4. An acquire begins, with the options |asked|, and |custom| if it brings a token:
 * lets it share a lease of its owner. |*error| and |*refused| receive a refusal.
 */
rl_reentry_answer rl_reentry_acquire(rl_lock *lock, redlock_time now_us, const rl_options *asked,
                                     bool custom, int *error, const char **refused);

/* OWN-2. Note that an acquire of a lock with an owner is in flight; or that it has ended. */
void rl_reentry_acquire_begins(rl_lock *lock);
void rl_reentry_acquire_ended(rl_lock *lock);

/*
 * OWN-2. Returns a lock that waits for resources which its owner now holds by |lock|, or NULL. That
 *        lock must share the lease.
 */
rl_lock *rl_reentry_next_waiter(const rl_lock *lock);

/* OWN-2. Lets a lock that acquires share a lease of its owner. Returns true if it now does. */
bool rl_reentry_try_share(rl_lock *lock, redlock_time now_us);

/*
 * OWN-5. Ends one acquire of the lock without a command, if the lease goes on, and returns true.
 *        Otherwise does nothing, and returns false.
 */
bool rl_reentry_release(rl_lock *lock, redlock_time now_us);

/* OWN-7. Counts a release of a lost lease. Returns true if the lock must be released once more. */
bool rl_reentry_release_lost(const rl_lock *lock);

/*
 * OWN-6. Makes the lock the lease owner, because it extends. Returns REDLOCK_OK, also if there is
 *        no lease; or BUSY.
 */
int rl_reentry_take_lease(rl_lock *lock, redlock_time now_us);

/* OWN-1. Makes the lock, which was granted a lease, the lease owner. */
void rl_reentry_granted(rl_lock *lock);

/*
 * OWN-3. Ends a nested acquire with its extend. Returns true if it failed and must leave the ring.
 */
bool rl_reentry_end_nesting(rl_lock *lock, redlock_time now_us, int result);

/* Lets the extend in flight be no nested acquire: the lock is freed. */
void rl_reentry_stop_nesting(rl_lock *lock);

/* OWN-7. Notes for all locks of the ring that the lease is lost. */
void rl_reentry_share_loss(const rl_lock *lock, redlock_time now_us);

/*
 * OWN-5. The lock leaves the ring. If other locks share its lease, one of them becomes the lease
 * owner.
 */
void rl_reentry_leave(rl_lock *lock, redlock_time now_us);

/*
 * The lock leaves the ring, and no other lock gets its lease: a forked child, or a detached lease.
 */
void rl_reentry_forget(rl_lock *lock);

/* Frees the state of a lock that has left its ring. */
void rl_reentry_free(rl_lock *lock);
void rl_reentries_free(rl_core *core);

#endif
