/*
 * Re-entrance: an owner that acquires what it holds already counts, and waits for nobody.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_REENTRY_H
#define RL_REENTRY_H

#include "lock/rl_ring.h"

/* Where carriers are looked for: by owner and resource, those of several resources by the owner alone. */
typedef struct rl_reentries {
  rl_hash carriers;
  size_t owned; /* locks that have an owner, or had one */
} rl_reentries;

/*
 * Says whose the lock is from its next acquire on; nobody's if |length| is 0, which is at most
 * REDLOCK_OWNER_MAX. Returns REDLOCK_OK; HELD, if another owner holds it; NO_MEMORY.
 */
int rl_reentry_set_owner(rl_lock *lock, redlock_time now_us, const void *owner, size_t length);

typedef enum rl_reentry_answer {
  RL_REENTRY_ALONE,   /* its owner holds nothing of it: it goes on like any other */
  RL_REENTRY_SHARED,  /* O2 */
  RL_REENTRY_EXTENDS, /* O3: the lease is the lock's now, which is to extend it */
  RL_REENTRY_REFUSED  /* O4 */
} rl_reentry_answer;

/*
 * O1 to O4: an acquire begins, with |asked|, and |given| a token. What it is refused with goes to |*error|
 * and |*refused|.
 */
rl_reentry_answer rl_reentry_acquire(rl_lock *lock, redlock_time now_us, const rl_options *asked,
                                     bool given, int *error, const char **refused);

/* O2: an attempt begins. Whether the lock counts on a lease that its owner has got meanwhile. */
bool rl_reentry_try_share(rl_lock *lock, redlock_time now_us);

/* O5: a release begins. Whether it was one of several, and the lease goes on. */
bool rl_reentry_release(rl_lock *lock, redlock_time now_us);

/* O7: the same of a lease that is lost: whether the lock has yet to be released once more. */
bool rl_reentry_release_lost(const rl_lock *lock);

/* O6: an extend begins. REDLOCK_OK when the lock has the lease now, or there is none that lasts; BUSY. */
int rl_reentry_take(rl_lock *lock, redlock_time now_us);

/* The lock has been granted a lease. */
void rl_reentry_granted(rl_lock *lock);

/* O3: an operation of the lock has ended. Whether it was an acquire that is not to count after all. */
bool rl_reentry_failed(rl_lock *lock, int result);

/* What the lock holds goes, whatever the extend in flight ends with. */
void rl_reentry_stop_nesting(rl_lock *lock);

/* O7: the lock's lease is lost. */
void rl_reentry_lost(const rl_lock *lock, redlock_time now_us);

/* O5: the lock holds nothing any more; a lease that others count on goes to one of them. */
void rl_reentry_leave(rl_lock *lock, redlock_time now_us);

/* The same, and the lease goes to nobody (a forked child; a lease that is detached). */
void rl_reentry_forget(rl_lock *lock);

/* The lock has left, and goes. */
void rl_reentry_free(rl_lock *lock);
void rl_reentries_free(struct rl_core *core);

#endif
