/*
 * The ring: the locks of one owner that count on one lease (rl_reentry.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RING_H
#define RL_RING_H

#include "base/rl_hash.h"
#include "lock/rl_lock.h"

/* What a lock has besides when it has an owner. */
typedef struct rl_reentry {
  rl_lock *lock;
  rl_list ring;                     /* the locks of one lease; alone it is its own */
  rl_hash_entry entry;              /* among carriers, while it carries */
  rl_resource *lease_resource;      /* what it has the lease of, or had until it was lost; a
                                          reference, or NULL */
  redlock_duration node_timeout_us; /* while it is joining: the acquire's own */
  uint32_t depth;                   /* acquires of this very lock that are to be released first */
  bool nesting;                     /* it counts if the extend in flight ends well */
  uint8_t owner_length;
  unsigned char owner[REDLOCK_OWNER_MAX];
} rl_reentry;

/* What a lock has of that, or NULL. */
static inline rl_reentry *rl_reentry_of(const rl_lock *lock) {
  return lock->extension == NULL ? NULL : lock->extension->reentry;
}

/* The lock that has the lease which |lock| counts on: itself, if it counts on no other's. */
const rl_lock *rl_ring_owner(const rl_lock *lock);

/* What is left of the lease that the lock holds, its own or the one it counts on. */
redlock_duration rl_ring_remaining(const rl_lock *lock, redlock_time now_us);

/* Returns true if it has an owner. */
bool rl_ring_is_owned(const rl_lock *lock);

/* The next lock of the ring; |lock| itself when it is alone. */
rl_lock *rl_ring_next(const rl_lock *lock);

/* Returns true if releasing the lock would not end the lease: others count on it, or it was acquired again. */
bool rl_ring_is_shared(const rl_lock *lock);

/* Returns true if this very lock was acquired more than once. */
bool rl_ring_was_again(const rl_lock *lock);

/* What the nodes have for their answers in a round of the lock's: a nested acquire (O3) brings its own. */
redlock_duration rl_ring_node_timeout(const rl_lock *lock);

/* Returns true if it would have counted if the extend, which has found the lease lost, had ended well. */
bool rl_ring_is_nesting(const rl_lock *lock);

#endif
