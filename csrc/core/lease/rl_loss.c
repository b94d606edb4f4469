/*
 * Losses: leases that ended without a release, or may end so, with the reason.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_loss.h"

#include "lock/rl_events.h"
#include "lock/rl_lock.h"
#include "lock/rl_ring.h"

static void rl_loss_enqueue(rl_lock *lock) {
  rl_losses *losses = lock->core->losses;
  rl_loss *loss = &lock->renewal->loss;
  losses->count++;
  if (!rl_list_is_in(&loss->queue)) {
    loss->lock = lock;
    rl_list_append(&losses->queue, &loss->queue);
  }
}

bool rl_loss_only_warns(int reason) {
  return reason == REDLOCK_E_UNAVAILABLE || reason == REDLOCK_E_CLOCK;
}

int rl_loss_reason(const rl_lock *lock) {
  return rl_renewal_is_capped(lock) ? REDLOCK_E_MAX_HOLD : REDLOCK_E_EXPIRED;
}

/* Counts the loss or warning, and notes its event. */
static void rl_loss_note(rl_lock *lock, redlock_time at_us, int reason) {
  redlock_event event = rl_loss_only_warns(reason) ? REDLOCK_EVENT_WARNED : REDLOCK_EVENT_LOST;
  rl_stats_lost(&lock->core->stats, reason);
  rl_events_note_loss(lock->core->events, at_us, event, lock->resource, reason);
}

void rl_loss_count(rl_lock *lock, redlock_time now_us, int reason) {
  if (!lock->loss_counted) {
    lock->loss_counted = true;
    rl_loss_note(lock, now_us, reason);
  }
}

void rl_loss_report_expired(rl_lock *lock) {
  rl_loss_count(lock, lock->core->now_us, rl_loss_reason(lock));
  rl_loss_report(lock, rl_loss_reason(lock), lock->deadline_us);
}

/* One warning is enough: two would replace each other again and again. */
static void rl_loss_report_one(rl_lock *lock, int reason, redlock_time since_us) {
  if (!rl_renewal_reports(lock)) {
    return;
  }
  int reported = lock->loss;
  if (reported == reason || (rl_loss_only_warns(reported) && rl_loss_only_warns(reason))) {
    return;
  }
  if (rl_loss_only_warns(reason)) {
    rl_loss_note(lock, since_us, reason);
  }
  lock->loss = reason;
  lock->renewal->loss.since_us = since_us;
  rl_loss_enqueue(lock);
}

void rl_loss_report(rl_lock *lock, int reason, redlock_time since_us) {
  rl_lock *at = lock;
  do {
    rl_loss_report_one(at, reason, since_us);
    at = rl_ring_next(at);
  } while (at != lock);
}

void rl_loss_clear(rl_lock *lock) {
  if (lock->renewal != NULL) {
    lock->loss = REDLOCK_OK;
    rl_list_remove(&lock->renewal->loss.queue);
  }
}

void rl_loss_clear_all(rl_lock *lock) {
  rl_lock *at = lock;
  do {
    rl_loss_clear(at);
    at = rl_ring_next(at);
  } while (at != lock);
}

int rl_loss_of(const rl_lock *lock, redlock_time now_us, redlock_time *since_us) {
  const rl_lock *lease_owner = rl_ring_owner(lock);
  const rl_lock *reporter = lock->renewal != NULL ? lock : lease_owner;
  bool lasts = rl_lock_remaining(lease_owner, now_us) > 0;
  if (reporter->loss != REDLOCK_OK && (lasts || !rl_loss_only_warns(reporter->loss))) {
    *since_us = reporter->renewal->loss.since_us;
    return reporter->loss;
  }
  *since_us = lock->lost ? lock->keys_end_us : lease_owner->deadline_us;
  if (lock->lost || lease_owner->deadline_us == 0) {
    return lock->lost ? REDLOCK_E_LOST : REDLOCK_OK;
  }
  return lasts ? REDLOCK_OK : rl_loss_reason(lease_owner);
}

/*
 * Reports leases that have expired: a program that only asks for losses takes no turns. An
 * operation in flight waits for the next turn, which reads replies first.
 */
static void rl_loss_report_due(rl_core *core, redlock_time now_us) {
  rl_timers_entry *timer;
  while ((timer = rl_timers_take(&core->timers, now_us)) != NULL) {
    rl_lock *lock = rl_lock_of_timer(timer);
    if (rl_lock_is_in_flight(lock) || rl_lock_remaining(lock, now_us) > 0) {
      rl_timers_set(&core->timers, &lock->timer, lock->timer.due_us);
      return;
    }
    rl_loss_report_expired(lock);
  }
}

rl_lock *rl_loss_next(rl_core *core, redlock_time now_us) {
  rl_list *queue = &core->losses->queue;
  if (rl_list_is_empty(queue)) {
    rl_loss_report_due(core, now_us);
  }
  rl_loss *loss = RL_LIST_FIRST(queue, rl_loss, queue);
  rl_lock *lock = loss == NULL ? NULL : loss->lock;
  if (lock != NULL) {
    /* Reports what rl_loss_of() returns: otherwise the timer would report it once more. */
    rl_lock *lease_owner = (rl_lock *)rl_ring_owner(lock);
    if (lease_owner->lease != NULL && rl_lock_remaining(lease_owner, now_us) == 0) {
      rl_loss_report_expired(lease_owner);
    }
    rl_list_remove(&loss->queue);
  }
  return lock;
}
