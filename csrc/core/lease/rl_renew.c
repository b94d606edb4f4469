/*
 * Automatic extension: a lease that keeps itself.
 *
 * SPDX-License-Identifier: MIT
 *
 * With |auto_extend| the core begins the extends by itself. They are extends like the user's: steps E1
 * to E6 of rl_extend.c hold for them as they are. In particular none re-creates a token, and none
 * counts after the deadline. What is added is when they begin and when they end:
 *   R1. The next extend is due |extend_every| after the start of the last round that was confirmed; a
 *       third of the ttl, if that is not said, so that it can fail and be tried again before the
 *       deadline. It is two thirds of the validity at most, for the same reason; and 10 ms at least, if a third of
 *       the ttl is not less: nobody is to flood the nodes by mistake. An eighth of it is
 *       left to chance, and three quarters after an operation of the user's: leases that were taken at
 *       once are not extended at once.
 *   R2. After an extend that failed, the next is due when a quarter of what was left has passed: the
 *       nearer the deadline, the more often; but not within 5 ms. The deadline itself is always
 *       looked at.
 *   R3. Whatever the user begins goes before: it ends the automatic extend in flight, which by E6 has
 *       changed nothing. What that has sent is answered in a round that is over, and does not count.
 *       What the user sees of his last operation is kept apart (rl_result.h).
 *   R4. |max_hold| after the start of the lease no automatic extend counts any more. The last one
 *       asks for what is left until then, and no more follow. So it is with extends for nested acquires (O3 of
 *       rl_reentry.c), for which the user has not asked either.
 *   R5. A lease that has ended otherwise than by a release is lost, and is told so once (rl_loss.h). No
 *       extend follows: whoever wants the lock again has to acquire it.
 *   R6. Where so many nodes may have lost the key early, for their clocks were stepped, that those which certainly
 *       have it are no quorum any more (M5 of rl_margin.c), the holder is told, and the next extend is due soon: a
 *       twelfth of the ttl after the last, for a clock may be stepped with each reply.
 *       The lease lasts: a node that was stepped votes for nobody meanwhile (G6 of rl_guard.c).
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

/* Returns true if that of a lock which counts on the lock's lease is, or its own. */
static bool rl_renew_watches(const rl_lock *lock) {
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

void rl_renew_copy_end(rl_lock *lock, const rl_lock *carrier) {
  lock->keys_end_us = carrier->keys_end_us;
  if (lock->renewal != NULL && carrier->renewal != NULL) {
    lock->renewal->hold_until_us = carrier->renewal->hold_until_us;
  }
}

/* R1. When the next extend is due, counted from the deadline that the last one has led to. */
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

/* R1, R2. Sets the timer; nothing is in flight, and the lease lasts. */
static void rl_renew_plan(rl_lock *lock, redlock_time now_us) {
  redlock_time next_us = lock->deadline_us;
  if (rl_renewal_is_on(lock) && !rl_renewal_is_capped(lock)) {
    redlock_time due_us = rl_renew_due(lock);
    redlock_duration left_us = rl_lock_remaining(lock, now_us);
    redlock_duration pause_us = rl_time_max(left_us / 4, RL_RENEW_RETRY_MIN_US);
    if (lock->result != REDLOCK_OK && due_us <= now_us) {
      due_us = rl_time_add(now_us, pause_us); /* R2 */
    }
    next_us = rl_time_min(next_us, due_us);
  }
  rl_timers_set(&lock->core->timers, &lock->timer, next_us);
}

void rl_renew_schedule(rl_lock *lock, redlock_time now_us) {
  if (!rl_renew_watches(lock)) {
    return;
  }
  if (rl_lock_remaining(lock, now_us) == 0) {
    rl_loss_report_expired(lock);
  } else {
    rl_renew_plan(lock, now_us);
  }
}

/* R6. Whether the holder was told. */
static bool rl_renew_suspect(rl_lock *lock, redlock_time now_us) {
  if (lock->lease == NULL || rl_lock_remaining(lock, now_us) == 0 || !rl_renew_watches(lock) ||
      !rl_margin_is_suspect(lock)) {
    return false;
  }
  rl_loss_report(lock, REDLOCK_E_CLOCK, now_us);
  return true;
}

/* R6. When the next extend may begin. */
static redlock_time rl_renew_soon(const rl_lock *lock, redlock_time now_us) {
  redlock_duration pause_us = rl_time_max(lock->lease_ttl_us / 12, RL_RENEW_EVERY_MIN_US);
  return rl_time_max(now_us, rl_time_add(lock->round_start_us, pause_us));
}

/* R6. Only here: an extend that leaves the doubt as it is is followed by the next when that is due. */
void rl_renew_suspect_all(rl_core *core, redlock_time now_us) {
  RL_LIST_EACH(&core->locks, lock, rl_lock, locks) {
    if (rl_renew_suspect(lock, now_us) && rl_renewal_is_on(lock) && !rl_renewal_is_capped(lock) &&
        !rl_lock_is_in_flight(lock)) {
      redlock_time next_us = rl_time_min(rl_renew_due(lock), rl_renew_soon(lock, now_us));
      next_us = rl_time_min(next_us, lock->deadline_us);
      rl_timers_set(&lock->core->timers, &lock->timer, rl_time_max(next_us, now_us));
    }
  }
}

void rl_renew_ended(rl_lock *lock, redlock_time now_us) {
  if (lock->lease == NULL || !rl_renew_watches(lock)) {
    return;
  }
  if (lock->operation == RL_OPERATION_ACQUIRE && lock->renewal != NULL) {
    redlock_duration hold_us = lock->current->max_hold_us;
    lock->renewal->hold_until_us =
        hold_us == 0 ? REDLOCK_NEVER : rl_time_add(lock->round_start_us, hold_us);
  }
  if (lock->result == REDLOCK_OK) {
    /* The nodes are there again. Some may have confirmed it before they were stepped. */
    if (!rl_renew_suspect(lock, now_us)) {
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
  rl_result_keep(lock);
  lock->automatic = true;
  lock->ttl_us = lock->lease_ttl_us;
  rl_lock_begin_send(lock, RL_OPERATION_EXTEND, now_us, REDLOCK_NEVER, false);
}

void rl_renew_cap(rl_lock *lock, redlock_time now_us) {
  if (!rl_renewal_is_on(lock)) {
    return;
  }
  redlock_duration left_us = rl_time_sub(lock->renewal->hold_until_us, now_us);
  if (left_us < lock->ttl_us) {
    lock->ttl_us = rl_time_ms_down(left_us) * REDLOCK_MILLISECONDS;
  }
  assert(lock->ttl_us > 0); /* The lease lasts, and ends a millisecond before. */
}

void rl_renew_stop(rl_lock *lock, redlock_time now_us) {
  if (lock->automatic && rl_lock_is_in_flight(lock)) {
    rl_lock_end(lock, now_us, REDLOCK_E_CANCELLED);
  }
}
