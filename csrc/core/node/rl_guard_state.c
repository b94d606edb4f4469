/*
 * The state of the guard (rl_guard.c).
 *
 * SPDX-License-Identifier: MIT
 */
#include "node/rl_guard_state.h"

#include <stdlib.h>
#include <string.h>

rl_guard *rl_guard_new(rl_guards *guards) {
  rl_guard *guard = calloc(1, sizeof *guard);
  if (guard != NULL) {
    guard->guards = guards;
  }
  return guard;
}

void rl_guard_free(rl_guard *guard) {
  if (guard != NULL) {
    free(guard->body);
    free(guard);
  }
}

const char *rl_guard_history(const rl_guard *guard, redlock_time now_us) {
  const char *history = strchr(guard->run_id, '-');
  if (rl_time_sub(now_us, guard->history_us) < RL_GUARD_TRUST_US) {
    return NULL;
  }
  return history != NULL ? history : guard->run_id;
}

void rl_guard_disconnected(rl_guard *guard) {
  if (guard != NULL) {
    guard->state = RL_GUARD_UNKNOWN;
    guard->asked = false;
    guard->near = false;
    guard->distant = false;
    guard->changes = 0; /* |stepped| stays. */
  }
}
