/*
 * The end of a lease that is lost, or that its lock no longer needs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_lease_end.h"

#include "lease/rl_loss.h"
#include "lease/rl_reentry.h"
#include "lease/rl_release.h"
#include "lease/rl_renew.h"
#include "lock/rl_lock.h"
#include "lock/rl_result.h"
#include "lock/rl_ring.h"

void rl_lease_end_own(rl_lock *lock, redlock_time now_us, bool grow) {
  rl_attempt *lease = lock->lease;
  rl_attempt *unreleased = lock->unreleased;
  if (lease != NULL && rl_lock_remaining(lock, now_us) == 0) {
    rl_loss_count(lock, now_us, rl_loss_reason(lock));
  }
  rl_renew_stop(lock, now_us);
  rl_lock_set_lease(lock, NULL, 0);
  lock->unreleased = NULL;
  rl_release_and_drop(lock, now_us, lease, grow);
  rl_release_and_drop(lock, now_us, unreleased, grow);
}

void rl_lease_end(rl_lock *lock, redlock_time now_us, bool grow) {
  rl_reentry_leave(lock, now_us);
  rl_lease_end_own(lock, now_us, grow);
}

void rl_lease_end_lost(rl_lock *lock, redlock_time now_us) {
  lock->lost = true;
  rl_loss_count(lock, now_us, REDLOCK_E_LOST);
  rl_loss_report(lock, REDLOCK_E_LOST, now_us);
  rl_reentry_share_loss(lock, now_us);
  rl_lease_end_own(lock, now_us, true);
  lock->keys_end_us = now_us;
  rl_result_note_deniers(lock);
  if (rl_ring_is_nesting(lock)) { /* OWN-3: the acquire has failed, and has nothing to release. */
    rl_reentry_leave(lock, now_us);
    rl_loss_clear(lock);
    lock->lost = false;
  }
}
