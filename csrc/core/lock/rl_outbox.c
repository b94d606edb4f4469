/*
 * The outbox: locks in phase SEND, and how operations begin, pause and end.
 *
 * SPDX-License-Identifier: MIT
 *
 * rl_pacer.c decides when and in which order the commands are sent. Functions of a lock
 * (rl_lock_...) that move it into or out of a phase are here, too.
 */
#include "lock/rl_outbox.h"

#include <assert.h>

#include "lock/rl_events.h"
#include "lock/rl_ring.h"
#include "lock/rl_round.h"
#include "lock/rl_steps.h"

void rl_outbox_init(rl_core *core) {
  rl_list_init(&core->pacer.acquires);
  core->pacer.in_flight_limit = RL_PACER_IN_FLIGHT;
  core->pacer.command_us = RL_PACER_COMMAND_US;
}

void rl_outbox_free(rl_core *core) {
  rl_timers_free(&core->pacer.renewals);
}

bool rl_outbox_reserve(rl_core *core, size_t locks) {
  return rl_timers_reserve(&core->pacer.renewals, locks);
}

void rl_outbox_enter(rl_lock *lock, redlock_time now_us) {
  rl_pacer *pacer = &lock->core->pacer;
  rl_lock_set_phase(lock, RL_PHASE_SEND);
  rl_outbox_reopen(lock->core);
  if (lock->operation == RL_OPERATION_ACQUIRE) {
    pacer->acquire_count++;
    rl_list_append(&pacer->acquires, &lock->queue);
    rl_timers_set(&lock->core->timers, &lock->timer,
                  rl_time_min(lock->budget_ends_us, rl_time_add(now_us, lock->ttl_us)));
    return;
  }
  redlock_time due_us = lock->abandoned ? now_us : rl_time_add(now_us, lock->ttl_us / 3);
  if (rl_operation_has(lock->operation, RL_HOLDS)) {
    due_us = rl_time_min(lock->deadline_us, lock->budget_ends_us);
  }
  rl_timers_set(&pacer->renewals, &lock->timer, due_us); /* PACE-2 */
}

void rl_outbox_leave(rl_lock *lock) {
  rl_pacer *pacer = &lock->core->pacer;
  assert(lock->phase == RL_PHASE_SEND);
  if (lock->operation == RL_OPERATION_ACQUIRE) {
    pacer->acquire_count--;
    rl_list_remove(&lock->queue);
    rl_timers_clear(&lock->core->timers, &lock->timer);
  } else {
    rl_timers_clear(&pacer->renewals, &lock->timer);
  }
}

void rl_outbox_reopen(rl_core *core) {
  core->pacer.closed_until_us = 0;
}

void rl_lock_begin_send(rl_lock *lock, rl_operation operation, redlock_time now_us,
                        redlock_time budget_ends_us, bool notify) {
  assert(!rl_lock_is_in_flight(lock));
  lock->operation = operation;
  lock->reports_end = notify;
  rl_lock_set_result(lock, REDLOCK_PENDING);
  lock->has_refused = false;
  lock->limited = false;
  lock->has_waited = false;
  lock->begun_us = now_us;
  lock->budget_ends_us = budget_ends_us;
  lock->round_start_us = now_us;
  lock->core->active = true;
  lock->core->busy_count++;
  rl_round_clear(lock); /* The operation may end before its first round. */
  rl_outbox_enter(lock, now_us);
}

/* Counts the operation, which has ended, and reports a long wait. */
static void rl_lock_count_end(rl_lock *lock, redlock_time now_us, int result) {
  rl_core *core = lock->core;
  bool acquires = lock->operation == RL_OPERATION_ACQUIRE;
  redlock_duration took_us = rl_time_sub(now_us, lock->begun_us);
  rl_stats_ended(&core->stats,
                 lock->automatic            ? RL_STATS_AUTO_EXTEND
                 : rl_ring_is_nesting(lock) ? RL_STATS_ACQUIRE
                                            : rl_stats_kind_of(lock->operation),
                 result);
  if (acquires && result == REDLOCK_OK) {
    rl_histogram_note(&core->stats.acquire_time, took_us);
  }
  if (acquires && lock->has_waited) {
    rl_histogram_note(&core->stats.wait_time, took_us);
    if (took_us >= RL_EVENTS_LONG_WAIT_US) {
      rl_events_note_wait(core->events, now_us, lock->resource, result, took_us);
    }
  }
}

void rl_lock_end(rl_lock *lock, redlock_time now_us, int result) {
  assert(rl_lock_is_in_flight(lock));
  if (lock->phase == RL_PHASE_SEND) {
    rl_outbox_leave(lock);
  }
  rl_timers_clear(&lock->core->timers, &lock->timer);
  rl_lock_count_end(lock, now_us, result);
  if (lock->waitlist != NULL) {
    lock->core->upper->leave_waitlist(lock, now_us, result);
  }
  lock->core->busy_count--;
  rl_lock_set_phase(lock, result == REDLOCK_OK ? RL_PHASE_SUCCEEDED : RL_PHASE_IDLE);
  rl_lock_set_result(lock, result);
  if (result != REDLOCK_OK || lock->operation != RL_OPERATION_ACQUIRE) {
    rl_round_await_none(lock); /* Backfills of a granted acquire still wait for nodes. */
  }
  rl_lock_note_end(lock, now_us);
  lock->core->upper->ended(lock, now_us, result);
}

void rl_lock_pause(rl_lock *lock, int result, redlock_time until_us) {
  rl_lock_set_phase(lock, RL_PHASE_DELAY);
  rl_lock_set_result(lock, result);
  rl_round_await_none(lock);
  rl_timers_set(&lock->core->timers, &lock->timer, until_us);
}

void rl_lock_ignore_late_votes(rl_lock *lock) {
  assert(!rl_lock_is_in_flight(lock));
  rl_lock_set_phase(lock, RL_PHASE_IDLE);
  rl_round_await_none(lock);
}
