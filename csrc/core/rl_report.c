/*
 * The report: what the user sees of his last operation on a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_report.h"

#include <string.h>

#include "rl_core.h"
#include "rl_renew.h"

rl_report rl_report_of(const rl_lock *lock) {
  if (lock->automatic) {
    return lock->renewal->report;
  }
  rl_report report = {
      lock->refused, lock->current.ttl_us, lock->round_start_us, lock->round_took_us,
      lock->denied,  lock->result,         lock->quorum,         (uint8_t)lock->operation};
  return report;
}

const rl_vote *rl_report_votes(const rl_lock *lock) {
  return lock->automatic ? lock->renewal->votes : lock->votes;
}

void rl_report_keep(rl_lock *lock) {
  size_t size = lock->core->node_count * sizeof lock->votes[0];
  if (lock->automatic) {
    return;
  }
  lock->renewal->report = rl_report_of(lock);
  memcpy(lock->renewal->votes, lock->votes, size);
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    lock->votes[i].reason = NULL; /* It has moved. */
  }
}

void rl_report_drop(rl_lock *lock) {
  for (unsigned i = 0; lock->automatic && i < lock->core->node_count; i++) {
    rl_reason_unref(lock->renewal->votes[i].reason);
    lock->renewal->votes[i].reason = NULL;
  }
  lock->automatic = false;
}

void rl_report_end(rl_lock *lock, int result) {
  *(lock->automatic ? &lock->renewal->report.result : &lock->result) = result;
}

void rl_report_refuse(rl_lock *lock, rl_operation operation, int result, const char *refused) {
  rl_report_end(lock, result);
  if (lock->automatic) {
    lock->renewal->report.operation = (uint8_t)operation;
    lock->renewal->report.refused = refused;
  } else {
    lock->operation = operation;
    lock->refused = refused;
  }
}

void rl_report_denied(rl_lock *lock) {
  if (lock->automatic) {
    lock->renewal->report.denied = lock->denied;
  }
}
