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
 * OWN-1 to OWN-4. An acquire begins, with the options |asked|, and |custom| if it brings a token.
 * |*error| and |*refused| receive a refusal.
 */
rl_reentry_answer rl_reentry_acquire(rl_lock *lock, redlock_time now_us, const rl_options *asked,
                                     bool custom, int *error, const char **refused);

/* OWN-2. An acquire of a lock with an owner is in flight; or it has ended. */
void rl_reentry_acquire_begins(rl_lock *lock);
void rl_reentry_acquire_ended(rl_lock *lock);

/*
 * OWN-2. Returns a lock that waits for what its owner has just acquired by |lock|, or NULL. It must
 * share the lease.
 */
rl_lock *rl_reentry_next_waiter(const rl_lock *lock);

/* OWN-2. An attempt begins. Returns true if the lock now shares a lease of its owner. */
bool rl_reentry_try_share(rl_lock *lock, redlock_time now_us);

/* OWN-5. A release begins. Returns true if the lease goes on. */
bool rl_reentry_release(rl_lock *lock, redlock_time now_us);

/* OWN-7. The same of a lost lease: returns true if the lock must be released once more. */
bool rl_reentry_release_lost(const rl_lock *lock);

/*
 * OWN-6. An extend begins. Returns REDLOCK_OK if the lock is the lease owner, or there is no lease;
 * BUSY.
 */
int rl_reentry_take_lease(rl_lock *lock, redlock_time now_us);

/* OWN-1. The lock has been granted a lease. */
void rl_reentry_granted(rl_lock *lock);

/* OWN-3. An operation of the lock has ended. Returns true if a nested acquire has failed. */
bool rl_reentry_end_nesting(rl_lock *lock, redlock_time now_us, int result);

/* The lock does not share the lease, whatever the result of the extend in flight. */
void rl_reentry_stop_nesting(rl_lock *lock);

/* OWN-7. The lease of the lock is lost. */
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
