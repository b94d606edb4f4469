/*
 * A lock: its options, its lease, and the operation on it.
 *
 * SPDX-License-Identifier: MIT
 *
 * rl_outbox.c and rl_lifecycle.c begin and end operations.
 */
#include "lock/rl_lock.h"

#include <assert.h>
#include <stdlib.h>

const rl_options *rl_lock_options(const rl_lock *lock) {
  const void *behind = lock->votes + lock->core->node_count;
  return lock->has_options ? behind : &lock->core->options;
}

bool rl_lock_set_options(rl_lock *lock, const rl_options *options) {
  const rl_options *own = rl_lock_options(lock);
  rl_options *brought = lock->current != own ? (rl_options *)(uintptr_t)lock->current : NULL;
  if (rl_options_equal(options, own)) {
    free(brought);
    lock->current = own;
  } else {
    brought = brought != NULL ? brought : malloc(sizeof *brought);
    if (brought == NULL) {
      return false;
    }
    *brought = *options;
    lock->current = brought;
  }
  lock->ttl_us = options->ttl_us;
  return true;
}

bool rl_lock_reserve_extension(rl_lock *lock) {
  if (lock->extension == NULL) {
    lock->extension = calloc(1, sizeof *lock->extension);
  }
  return lock->extension != NULL;
}

#define RL_LOCK_TO(phase) (1u << RL_PHASE_##phase)

/* The phases that may follow each phase, as bits. */
static const uint8_t rl_lock_next_phases[] = {
    [RL_PHASE_IDLE] = RL_LOCK_TO(SEND) | RL_LOCK_TO(IDLE),
    [RL_PHASE_SUCCEEDED] = RL_LOCK_TO(SEND) | RL_LOCK_TO(IDLE),
    [RL_PHASE_SEND] = RL_LOCK_TO(ROUND) | RL_LOCK_TO(DELAY) | RL_LOCK_TO(QUEUED) |
                      RL_LOCK_TO(SUCCEEDED) | RL_LOCK_TO(IDLE),
    [RL_PHASE_ROUND] = RL_LOCK_TO(SEND) | RL_LOCK_TO(QUEUED) | RL_LOCK_TO(DELAY) |
                       RL_LOCK_TO(SUCCEEDED) | RL_LOCK_TO(IDLE),
    [RL_PHASE_DELAY] = RL_LOCK_TO(SEND) | RL_LOCK_TO(SUCCEEDED) | RL_LOCK_TO(IDLE),
    [RL_PHASE_QUEUED] =
        RL_LOCK_TO(SEND) | RL_LOCK_TO(DELAY) | RL_LOCK_TO(SUCCEEDED) | RL_LOCK_TO(IDLE),
};

void rl_lock_set_phase(rl_lock *lock, rl_phase phase) {
  assert((rl_lock_next_phases[lock->phase] >> phase & 1) != 0);
  lock->phase = phase;
  lock->has_waited = lock->has_waited || phase == RL_PHASE_DELAY || phase == RL_PHASE_QUEUED;
}

void rl_lock_set_lease(rl_lock *lock, rl_attempt *lease, redlock_time deadline_us) {
  rl_core *core = lock->core;
  core->lease_count -= lock->lease != NULL;
  core->lease_count += lease != NULL;
  core->leases_end_us = core->lease_count == 0 ? 0 : rl_time_max(core->leases_end_us, deadline_us);
  if (lease == NULL && !rl_lock_is_in_flight(lock)) {
    rl_timers_clear(&core->timers, &lock->timer);
  }
  lock->loss_counted = lock->loss_counted && lock->lease == lease;
  lock->lease = lease;
  lock->deadline_us = deadline_us;
}

void rl_lock_note_end(rl_lock *lock, redlock_time now_us) {
  redlock_duration took_us = rl_time_sub(now_us, lock->round_start_us);
  lock->round_took_us = took_us < UINT32_MAX ? (uint32_t)took_us : UINT32_MAX;
}

redlock_duration rl_lock_remaining(const rl_lock *lock, redlock_time now_us) {
  return lock->lease == NULL ? 0 : rl_time_sub(lock->deadline_us, now_us);
}
