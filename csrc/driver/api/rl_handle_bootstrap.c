/*
 * Bootstrap, as callers see it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "api/rl_handle.h"
#include "client/rl_client.h"
#include "operator/rl_bootstrap.h"

static int rl_handle_begin_bootstrap(redlock_lock *lock, bool blocking) {
  if (!rl_handle_may_begin(lock)) {
    return REDLOCK_E_BUSY;
  }
  return rl_handle_begun(lock, rl_lock_bootstrap(rl_lock_of(lock), redlock_now(), true), blocking);
}

int rl_handle_bootstrap(redlock_lock *lock) {
  rl_client_enter(rl_client_of(lock));
  int error = rl_handle_begin_bootstrap(lock, true);
  rl_client_leave(rl_client_of(lock));
  return error;
}

int redlock_lock_bootstrap(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_finish(lock, rl_handle_begin_bootstrap(lock, true), NULL);
}

int redlock_lock_bootstrap_start(redlock_lock *lock) {
  if (lock == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(rl_client_of(lock));
  return rl_handle_started(lock, rl_handle_begin_bootstrap(lock, false));
}

int redlock_client_bootstrap(redlock_client *client) {
  redlock_lock *lock;
  static const char name[] = "redlock-bootstrap"; /* It is sent nowhere. */
  int error = redlock_lock_new(&lock, client, name, sizeof name - 1, NULL);
  if (error != REDLOCK_OK) {
    return error;
  }
  error = redlock_lock_bootstrap(lock);
  rl_client_enter(client);
  if (error != REDLOCK_OK) {
    (void)rl_lock_message(rl_lock_of(lock), client->unready, sizeof client->unready);
  }
  (void)rl_client_note(client, error, error != REDLOCK_OK ? client->unready : NULL);
  rl_client_leave(client);
  redlock_lock_free(lock);
  return error;
}
