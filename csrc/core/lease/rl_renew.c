/*
 * Automatic extension: the core extends a lease with auto_extend by itself.
 *
 * SPDX-License-Identifier: MIT
 *
 * An automatic extend follows EXT-1 to EXT-6 like an extend of the user. In particular, it never
 * creates a key anew for a lost lease, and does not count after the deadline. These rules add its
 * beginning and its end:
 *   REN-1. The next extend is due |extend_every| after the start of the last confirmed round:
 *            - by default ttl / 3, so that it can fail and be repeated before the deadline
 *            - at most 2/3 of the validity, for the same reason
 *            - at least min(10 ms, ttl / 3): a wrong option must not flood the nodes
 *            - minus a random part: up to 1/8, or up to 3/4 after an operation of the user. So
 *              leases that began together are not extended together.
 *   REN-2. After a failed extend, the next is due when a quarter of the rest has passed, but not
 *          within 5 ms: the nearer the deadline, the more often. A timer also runs at the deadline
 *          itself.
 *   REN-3. An operation of the user goes first. It ends the automatic extend in flight, which by
 *          EXT-6 has changed nothing. The answers belong to a round that has ended, and do not
 *          count. The result of the user's last operation is kept meanwhile (rl_result.h).
 *   REN-4. No automatic extend counts later than |max_hold| after the start of the lease. The last
 *          one asks for the rest of that time, and no other follows. The same holds for the extend
 *          of a nested acquire (OWN-3), which the user did not ask for either.
 *   REN-5. A lease that ends without a release is lost, and reported once (rl_loss.h). No extend
 *          follows: a client that wants the lock again must acquire it.
 *   REN-6. If stepped clocks leave fewer certain keys than a quorum (MAR-5), the holder is warned.
 *          The next extend is then due ttl / 12 after the last one, because each reply may show
 *          another step. The lease lasts: a node whose clock was stepped has no vote (GRD-6).
 *
 * Copies of REN-1 and REN-2: check_renewal_due() in csrc/test/sim/check_renewal.c; option.every()
 * in lua/redlock/fake_option.lua, leap() and lease.schedule() in lua/redlock/fake_lease.lua.
 */
#include "lease/rl_renew.h"

#include <assert.h>
#include <stdlib.h>

#include "base/rl_random.h"
#include "base/rl_validity.h"
#include "lease/rl_margin.h"
#include "lock/rl_lock.h"
#include "lock/rl_outbox.h"
#include "lock/rl_ring.h"

/* Returns true if a lock that shares the lease reports its loss. */
static bool rl_renew_loss_is_reported(const rl_lock *lock) {
  const rl_lock *at = lock;
  while (!rl_renewal_reports(at) && rl_ring_next(at) != lock) {
    at = rl_ring_next(at);
  }
  return rl_renewal_reports(at);
}

bool rl_renew_reserve(rl_lock *lock, const rl_options *options) {
  if (!rl_renewal_is_asked(options) || lock->renewal != NULL) {
    return true;
  }
  lock->renewal = calloc(1, sizeof(rl_renewal) + lock->core->node_count * sizeof(rl_vote));
  lock->renewal_apart = true;
  return lock->renewal != NULL;
}

void rl_renew_free(rl_lock *lock) {
  if (lock->renewal == NULL) {
    return;
  }
  rl_loss_clear(lock);
  rl_result_drop(lock);
  free(lock->renewal->reasons);
  if (lock->renewal_apart) {
    free(lock->renewal);
  }
  lock->renewal = NULL;
}

/* -------------------------------------------------------------------------------------- when */

void rl_renew_copy_end(rl_lock *lock, const rl_lock *lease_owner) {
  lock->keys_end_us = lease_owner->keys_end_us;
  if (lock->renewal != NULL && lease_owner->renewal != NULL) {
    lock->renewal->max_hold_ends_us = lease_owner->renewal->max_hold_ends_us;
  }
}

/* REN-1. Returns when the next extend is due. */
static redlock_time rl_renew_due(rl_lock *lock) {
  redlock_duration valid_us =
      rl_validity_deadline(0, lock->lease_ttl_us, lock->current->drift_factor);
  redlock_duration every_us = lock->lease_ttl_us / 3;
  if (lock->current->extend_every_us != 0) {
    redlock_duration least_us = rl_time_min(every_us, RL_RENEW_EVERY_MIN_US);
    every_us = rl_time_max(lock->current->extend_every_us, least_us);
  }
  every_us = rl_time_min(every_us, valid_us - valid_us / 3);
  redlock_duration chance_us = lock->automatic ? every_us / 8 : every_us - every_us / 4;
  every_us -= rl_random_next(&lock->random) % (chance_us + 1);
  return rl_time_sub(lock->deadline_us, valid_us - every_us);
}

/* REN-1, REN-2. Sets the timer. Nothing is in flight, and the lease lasts. */
static void rl_renew_set_timer(rl_lock *lock, redlock_time now_us) {
  redlock_time next_us = lock->deadline_us;
  if (rl_renewal_is_on(lock) && !rl_renewal_is_capped(lock)) {
    redlock_time due_us = rl_renew_due(lock);
    redlock_duration left_us = rl_lock_remaining(lock, now_us);
    redlock_duration pause_us = rl_time_max(left_us / 4, RL_RENEW_RETRY_MIN_US);
    if (lock->result != REDLOCK_OK && due_us <= now_us) {
      due_us = rl_time_add(now_us, pause_us); /* REN-2 */
    }
    next_us = rl_time_min(next_us, due_us);
  }
  rl_timers_set(&lock->core->timers, &lock->timer, next_us);
}

void rl_renew_schedule(rl_lock *lock, redlock_time now_us) {
  if (!rl_renew_loss_is_reported(lock)) {
    return;
  }
  if (rl_lock_remaining(lock, now_us) == 0) {
    rl_loss_report_expired(lock);
  } else {
    rl_renew_set_timer(lock, now_us);
  }
}

/* REN-6. Warns the holder if too few certain keys are left. Returns true if it did. */
static bool rl_renew_warn(rl_lock *lock, redlock_time now_us) {
  if (lock->lease == NULL || rl_lock_remaining(lock, now_us) == 0 ||
      !rl_renew_loss_is_reported(lock) || !rl_margin_is_suspect(lock)) {
    return false;
  }
  rl_loss_report(lock, REDLOCK_E_CLOCK, now_us);
  return true;
}

/* REN-6. Returns when the next extend may begin. */
static redlock_time rl_renew_soon(const rl_lock *lock, redlock_time now_us) {
  redlock_duration pause_us = rl_time_max(lock->lease_ttl_us / 12, RL_RENEW_EVERY_MIN_US);
  return rl_time_max(now_us, rl_time_add(lock->round_start_us, pause_us));
}

void rl_renew_warn_all(rl_core *core, redlock_time now_us) {
  RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
    if (rl_renew_warn(lock, now_us) && rl_renewal_is_on(lock) && !rl_renewal_is_capped(lock) &&
        !rl_lock_is_in_flight(lock)) {
      redlock_time next_us = rl_time_min(rl_renew_due(lock), rl_renew_soon(lock, now_us));
      next_us = rl_time_min(next_us, lock->deadline_us);
      rl_timers_set(&lock->core->timers, &lock->timer, rl_time_max(next_us, now_us));
    }
  }
}

void rl_renew_ended(rl_lock *lock, redlock_time now_us) {
  if (lock->lease == NULL || !rl_renew_loss_is_reported(lock)) {
    return;
  }
  if (lock->operation == RL_OPERATION_ACQUIRE && lock->renewal != NULL) {
    redlock_duration hold_us = lock->current->max_hold_us;
    lock->renewal->max_hold_ends_us =
        hold_us == 0 ? REDLOCK_NEVER : rl_time_add(lock->round_start_us, hold_us);
  }
  if (lock->result == REDLOCK_OK) {
    /* The warning ends, unless nodes confirmed before their clocks were stepped. */
    if (!rl_renew_warn(lock, now_us)) {
      rl_loss_clear_all(lock);
    }
  } else if (lock->automatic && lock->result == REDLOCK_E_UNAVAILABLE) {
    rl_loss_report(lock, REDLOCK_E_UNAVAILABLE, now_us);
  }
  rl_renew_schedule(lock, now_us);
}

/* --------------------------------------------------------------------------------- extending */

void rl_renew_timer(rl_lock *lock, redlock_time now_us) {
  assert(lock->lease != NULL && !rl_lock_is_in_flight(lock));
  if (rl_lock_remaining(lock, now_us) == 0) {
    rl_loss_report_expired(lock);
    return;
  }
  rl_result_keep_apart(lock);
  lock->automatic = true;
  lock->ttl_us = lock->lease_ttl_us;
  rl_lock_begin_send(lock, RL_OPERATION_EXTEND, now_us, REDLOCK_NEVER, false);
}

void rl_renew_cap(rl_lock *lock, redlock_time now_us) {
  if (!rl_renewal_is_on(lock)) {
    return;
  }
  redlock_duration left_us = rl_time_sub(lock->renewal->max_hold_ends_us, now_us);
  if (left_us < lock->ttl_us) {
    lock->ttl_us = rl_time_ms_down(left_us) * REDLOCK_MILLISECONDS;
  }
  assert(lock->ttl_us > 0); /* The lease lasts at least a millisecond longer. */
}

void rl_renew_stop(rl_lock *lock, redlock_time now_us) {
  if (lock->automatic && rl_lock_is_in_flight(lock)) {
    rl_lock_end(lock, now_us, REDLOCK_E_CANCELLED);
  }
}
