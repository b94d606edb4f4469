/*
 * The ring: locks of one owner that share one lease. rl_reentry.c changes it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_ring.h"

rl_lock *rl_ring_next(const rl_lock *lock) {
  const rl_reentry *reentry = rl_reentry_of(lock);
  return reentry == NULL ? (rl_lock *)lock : RL_OWNER(reentry->ring.next, rl_reentry, ring)->lock;
}

const rl_lock *rl_ring_owner(const rl_lock *lock) {
  const rl_lock *at = lock;
  while (rl_reentry_of(at) != NULL && rl_reentry_of(at)->lease_resource == NULL &&
         rl_ring_next(at) != lock) {
    at = rl_ring_next(at);
  }
  return rl_reentry_of(at) != NULL && rl_reentry_of(at)->lease_resource != NULL ? at : lock;
}

redlock_duration rl_ring_remaining(const rl_lock *lock, redlock_time now_us) {
  return rl_lock_remaining(rl_ring_owner(lock), now_us);
}

bool rl_ring_is_shared(const rl_lock *lock) {
  return rl_ring_next(lock) != lock || rl_ring_is_reacquired(lock);
}

bool rl_ring_is_reacquired(const rl_lock *lock) {
  return rl_reentry_of(lock) != NULL && rl_reentry_of(lock)->depth > 0;
}

bool rl_ring_is_owned(const rl_lock *lock) {
  return rl_reentry_of(lock) != NULL && rl_reentry_of(lock)->owner_length > 0;
}

bool rl_ring_is_nesting(const rl_lock *lock) {
  return rl_reentry_of(lock) != NULL && rl_reentry_of(lock)->nesting;
}

redlock_duration rl_ring_node_timeout(const rl_lock *lock) {
  return rl_ring_is_nesting(lock) ? rl_reentry_of(lock)->node_timeout_us
                                  : rl_options_node_timeout(lock->current, lock->ttl_us);
}
