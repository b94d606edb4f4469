/*
 * The doctor, as callers see it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "api/rl_handle.h"
#include "client/rl_client.h"
#include "operator/rl_doctor.h"
#include "operator/rl_finding.h"

static int rl_handle_begin_doctor(redlock_lock *lock, unsigned flags, bool blocking) {
  if (!rl_handle_may_begin(lock)) {
    return REDLOCK_E_BUSY;
  }
  if ((flags & ~REDLOCK_DOCTOR_KEYS) != 0) {
    return rl_lock_refuse_argument(rl_lock_of(lock), RL_OPERATION_DOCTOR,
                                   "the flags are 0 or REDLOCK_DOCTOR_KEYS");
  }
  return rl_handle_begun(lock, rl_lock_doctor(rl_lock_of(lock), redlock_now(), flags, true),
                         blocking);
}

int rl_handle_doctor(redlock_lock *lock, unsigned flags) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_begin_doctor(lock, flags, true);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int redlock_lock_doctor(redlock_lock *lock, unsigned flags) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_finish(lock, rl_handle_begin_doctor(lock, flags, true), NULL);
}

int redlock_lock_doctor_start(redlock_lock *lock, unsigned flags) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_started(lock, rl_handle_begin_doctor(lock, flags, false));
}

int redlock_lock_finding_sized(redlock_lock *lock, size_t index, redlock_finding_info *info,
                               size_t size) {
  redlock_finding_info known = {0};
  rl_finding finding;
  if (lock == NULL || info == NULL || index > UINT32_MAX) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  const rl_doctor *doctor = rl_doctor_of(rl_lock_of(lock));
  bool found = doctor != NULL && rl_finding_at(doctor, (unsigned)index, &finding);
  if (found) {
    known.severity = finding.severity;
    known.name = finding.name;
    known.node = finding.node == RL_FINDING_NO_NODE ? NULL : doctor->nodes[finding.node].name;
    (void)snprintf(known.text, sizeof known.text, "%s", finding.message);
    known.message = info->text;
  }
  rl_client_leave(rl_client_of(lock));
  rl_option_fill(info, size, &known, sizeof known);
  return found ? REDLOCK_OK : REDLOCK_E_INVALID;
}
