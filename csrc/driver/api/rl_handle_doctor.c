/*
 * The doctor, as programs see it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "operator/rl_doctor.h"
#include "operator/rl_finding.h"

int redlock_lock_doctor(redlock_lock *lock, unsigned flags) {
  return rl_handle_run(
      lock, &(rl_request){.operation = RL_OPERATION_DOCTOR, .question.flags = flags}, NULL);
}

int redlock_lock_doctor_start(redlock_lock *lock, unsigned flags) {
  return rl_handle_start(lock,
                         &(rl_request){.operation = RL_OPERATION_DOCTOR, .question.flags = flags});
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
