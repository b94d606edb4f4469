/*
 * What an operator asks of a lock: what the nodes hold, and to delete it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "api/rl_handle.h"
#include "client/rl_client.h"
#include "lock/rl_round.h"
#include "operator/rl_inspect.h"

/* ------------------------------------------------------------------------------- what they hold */

static int rl_handle_begin_inspect(redlock_lock *lock, bool blocking) {
  if (!rl_handle_may_begin(lock)) {
    return REDLOCK_E_BUSY;
  }
  return rl_handle_begun(lock, rl_lock_inspect(rl_lock_of(lock), redlock_now(), true), blocking);
}

int rl_handle_inspect(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_begin_inspect(lock, true);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int redlock_lock_inspect(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_finish(lock, rl_handle_begin_inspect(lock, true), NULL);
}

int redlock_lock_inspect_start(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_started(lock, rl_handle_begin_inspect(lock, false));
}

static void rl_handle_read_key(redlock_lock *lock, unsigned index, redlock_key_info *known) {
  const rl_inspected *inspected = rl_inspect_of(rl_lock_of(lock), index);
  bool asked = inspected != NULL && rl_lock_of(lock)->operation == RL_OPERATION_INSPECT;
  known->name = rl_client_of(lock)->core.nodes[index]->address.name;
  if (inspected != NULL) {
    known->state = (redlock_key_state)inspected->state;
    known->token = inspected->state == REDLOCK_KEY_HELD ? inspected->token : NULL;
    known->token_length = inspected->token_length;
    known->ttl_us = inspected->ttl_us;
  }
  (void)snprintf(known->text, sizeof known->text, "%s",
                 asked ? rl_round_reason(rl_lock_of(lock), index) : "");
}

int redlock_lock_key_sized(redlock_lock *lock, size_t index, redlock_key_info *info, size_t size) {
  redlock_key_info known = {0};
  if (lock == NULL || info == NULL || index >= rl_client_of(lock)->core.node_count) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  rl_handle_read_key(lock, (unsigned)index, &known);
  rl_client_leave(rl_client_of(lock));
  known.error = known.text[0] != '\0' ? info->text : NULL;
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
  rl_client_leave(rl_client_of(lock));
  if (holder != NULL) {
    known.token = holder->token;
    known.token_length = holder->token_length;
    known.nodes = nodes;
  }
  rl_option_fill(info, size, &known, sizeof known);
  return holder != NULL ? REDLOCK_OK : REDLOCK_E_NOT_HELD;
}

/* ------------------------------------------------------------------------------------- by force */

/* What is wrong with a token, as a static sentence, or NULL. */
static const char *rl_handle_wrong_token(const void *token, size_t length) {
  if (length == REDLOCK_TOKEN_ANY) {
    return NULL;
  }
  return token == NULL                ? "there is no token; REDLOCK_TOKEN_ANY is any"
         : length > REDLOCK_TOKEN_MAX ? "a token has at most 256 bytes"
                                      : NULL;
}

static int rl_handle_begin_force(redlock_lock *lock, const void *token, size_t length,
                                 bool blocking) {
  const char *wrong = rl_handle_wrong_token(token, length);
  if (!rl_handle_may_begin(lock)) {
    return REDLOCK_E_BUSY;
  }
  if (wrong != NULL) {
    return rl_lock_refuse_argument(rl_lock_of(lock), RL_OPERATION_FORCE_RELEASE, wrong);
  }
  return rl_handle_begun(
      lock, rl_lock_force_release(rl_lock_of(lock), redlock_now(), token, length, true), blocking);
}

int rl_handle_force_release(redlock_lock *lock, const void *token, size_t length) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_begin_force(lock, token, length, true);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int redlock_lock_force_release(redlock_lock *lock, const void *token, size_t length) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_finish(lock, rl_handle_begin_force(lock, token, length, true), NULL);
}

int redlock_lock_force_release_start(redlock_lock *lock, const void *token, size_t length) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_started(lock, rl_handle_begin_force(lock, token, length, false));
}
