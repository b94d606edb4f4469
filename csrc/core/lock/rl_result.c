/*
 * The result of the last operation of the caller on a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_result.h"

#include <assert.h>
#include <string.h>

#include "lock/rl_lock.h"

const rl_vote *rl_result_votes(const rl_lock *lock) {
  return lock->automatic ? lock->renewal->votes : lock->votes;
}

rl_reason *const *rl_result_reasons(const rl_lock *lock) {
  return lock->automatic ? lock->renewal->reasons : lock->reasons;
}

void rl_result_keep_apart(rl_lock *lock) {
  size_t size = lock->core->node_count * sizeof lock->votes[0];
  if (lock->automatic) {
    return;
  }
  lock->renewal->result = rl_result_of(lock);
  memcpy(lock->renewal->votes, lock->votes, size);
  rl_reason **none = lock->renewal->reasons;
  lock->renewal->reasons = lock->reasons;
  lock->reasons = none;
}

void rl_result_drop(rl_lock *lock) {
  if (lock->automatic) {
    rl_reasons_clear(lock->renewal->reasons, lock->core->node_count);
  }
  lock->automatic = false;
}

void rl_result_replace(rl_lock *lock, int result) {
  if (lock->automatic) {
    lock->renewal->result.result = (int8_t)result;
  } else {
    rl_lock_set_result(lock, result);
  }
}

void rl_result_refuse(rl_lock *lock, rl_operation operation, int result, const char *refused) {
  rl_result_replace(lock, result);
  if (lock->automatic) {
    lock->renewal->result.operation = (uint8_t)operation;
    lock->renewal->result.refused = refused;
  } else {
    lock->operation = operation;
    assert(!rl_lock_is_in_flight(lock));
    lock->has_refused = refused != NULL;
    if (refused != NULL) {
      lock->refused = refused;
    }
  }
}

void rl_result_note_deniers(rl_lock *lock) {
  if (lock->automatic) {
    lock->renewal->result.deniers = lock->deniers;
  }
}

int rl_lock_result(const rl_lock *lock) {
  return rl_lock_is_busy(lock) ? REDLOCK_PENDING : rl_result_of(lock).result;
}

bool rl_renewal_is_capped(const rl_lock *lock) {
  /* Nodes count whole milliseconds. */
  redlock_time keys_end_us = rl_time_add(lock->keys_end_us, REDLOCK_MILLISECONDS);
  return rl_renewal_is_on(lock) && keys_end_us > lock->renewal->max_hold_ends_us;
}
