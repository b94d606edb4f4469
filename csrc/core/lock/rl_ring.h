/*
 * The ring: locks of one owner that share one lease. rl_reentry.c changes it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RING_H
#define RL_RING_H

#include "base/rl_hash.h"
#include "lock/rl_lock.h"

/* State of a lock with an owner. */
typedef struct rl_reentry {
  rl_lock *lock;
  rl_list ring;                /* locks that share the lease; alone: only itself */
  rl_hash_entry entry;         /* by resource and owner, while the lock has lease_resource */
  rl_hash_entry acquires;      /* by owner, while |acquiring| */
  rl_resource *lease_resource; /* resource of its lease, also after a loss; a reference, or NULL */
  redlock_duration node_timeout_us; /* of a nested acquire, while |nesting| */
  redlock_duration hold_us;         /* of a nested acquire, likewise (rl_hold.h) */
  uint32_t depth;                   /* further acquires of this lock, released before the lease */
  bool acquiring;                   /* an acquire that asks the nodes is in flight */
  bool nesting;                     /* a nested acquire succeeds if the extend in flight succeeds */
  uint8_t owner_length;
  unsigned char owner[REDLOCK_OWNER_MAX];
} rl_reentry;

/* Returns the state of a lock that has or had an owner, or NULL. */
static inline rl_reentry *rl_reentry_of(const rl_lock *lock) {
  return lock->extension == NULL ? NULL : lock->extension->reentry;
}

/* Returns the lock in the ring that has the lease: |lock| itself if no other lock has it. */
const rl_lock *rl_ring_owner(const rl_lock *lock);

/* Returns the remaining time of the lease that the lock has or shares. */
redlock_duration rl_ring_remaining(const rl_lock *lock, redlock_time now_us);

/* Returns true if the lock has an owner. */
bool rl_ring_is_owned(const rl_lock *lock);

/* Returns the next lock of the ring; |lock| itself when it is alone. */
rl_lock *rl_ring_next(const rl_lock *lock);

/*
 * Returns true if a release would not end the lease: other locks share it, or the lock was acquired
 * again.
 */
bool rl_ring_is_shared(const rl_lock *lock);

/* Returns true if the lock was acquired more than once. */
bool rl_ring_is_reacquired(const rl_lock *lock);

/* Returns the node_timeout of a round: a nested acquire brings its own. */
redlock_duration rl_ring_node_timeout(const rl_lock *lock);

/* Returns true if the extend in flight is that of a nested acquire. */
bool rl_ring_is_nesting(const rl_lock *lock);

#endif
