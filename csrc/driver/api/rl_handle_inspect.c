/*
 * Inspect and force release, as programs see them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "lock/rl_round.h"
#include "operator/rl_inspect.h"

int redlock_lock_inspect(redlock_lock *lock) {
  return rl_handle_run(lock, &(rl_request){.operation = RL_OPERATION_INSPECT}, NULL);
}

int redlock_lock_inspect_start(redlock_lock *lock) {
  return rl_handle_start(lock, &(rl_request){.operation = RL_OPERATION_INSPECT});
}

static void rl_handle_read_key(redlock_lock *lock, unsigned index, redlock_key_info *known,
                               const char *text) {
  const rl_inspected *inspected = rl_inspect_of(rl_lock_of(lock), index);
  bool asked = inspected != NULL && rl_lock_of(lock)->operation == RL_OPERATION_INSPECT;
  known->name = rl_client_of(lock)->core.nodes[index]->address.name;
  if (inspected != NULL) {
    known->state = (redlock_key_state)inspected->state;
    known->token = inspected->state == REDLOCK_KEY_HELD ? inspected->token : NULL;
    known->token_length = inspected->token_length;
    known->label = known->token == NULL ? NULL
                                        : rl_label_of(inspected->token, inspected->token_length,
                                                      &known->label_length);
    known->ttl_us = inspected->ttl_us;
    known->fence = inspected->fence;
  }
  known->error = rl_client_copy_text(known->text,
                                     asked ? rl_round_reason(rl_lock_of(lock), index) : NULL, text);
}

int redlock_lock_key_sized(redlock_lock *lock, size_t index, redlock_key_info *info, size_t size) {
  redlock_key_info known = {0};
  if (lock == NULL || info == NULL || index >= rl_client_of(lock)->core.node_count) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  rl_handle_read_key(lock, (unsigned)index, &known, info->text);
  rl_client_leave(rl_client_of(lock));
  rl_option_fill(info, size, &known, sizeof known);
  return REDLOCK_OK;
}

int redlock_lock_holder_sized(redlock_lock *lock, redlock_holder_info *info, size_t size) {
  redlock_holder_info known = {0};
  unsigned nodes = 0;
  if (lock == NULL || info == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  const rl_inspected *holder = rl_inspect_holder(rl_lock_of(lock), &known.ttl_us, &nodes);
  known.fence = holder != NULL ? rl_inspect_holder_fence(rl_lock_of(lock), holder) : 0;
  rl_client_leave(rl_client_of(lock));
  if (holder != NULL) {
    known.token = holder->token;
    known.token_length = holder->token_length;
    known.nodes = nodes;
    known.label = rl_label_of(holder->token, holder->token_length, &known.label_length);
  }
  rl_option_fill(info, size, &known, sizeof known);
  return holder != NULL ? REDLOCK_OK : REDLOCK_E_NOT_HELD;
}

static rl_request rl_handle_force(const void *token, size_t length) {
  return (rl_request){.operation = RL_OPERATION_FORCE_RELEASE,
                      .question.token = token,
                      .question.token_length = length};
}

int redlock_lock_force_release(redlock_lock *lock, const void *token, size_t length) {
  rl_request request = rl_handle_force(token, length);
  return rl_handle_run(lock, &request, NULL);
}

int redlock_lock_force_release_start(redlock_lock *lock, const void *token, size_t length) {
  rl_request request = rl_handle_force(token, length);
  return rl_handle_start(lock, &request);
}
