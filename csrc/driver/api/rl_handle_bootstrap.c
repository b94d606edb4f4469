/*
 * Bootstrap, as programs see it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_handle_run.h"

int redlock_lock_bootstrap(redlock_lock *lock) {
  return rl_handle_run(lock, &(rl_request){.operation = RL_OPERATION_BOOTSTRAP}, NULL);
}

int redlock_lock_bootstrap_start(redlock_lock *lock) {
  return rl_handle_start(lock, &(rl_request){.operation = RL_OPERATION_BOOTSTRAP});
}

int redlock_client_bootstrap(redlock_client *client) {
  redlock_lock *lock;
  static const char name[] = "redlock-bootstrap"; /* No node sees it. */
  int error = redlock_lock_new(&lock, client, name, sizeof name - 1, NULL);
  if (error != REDLOCK_OK) {
    return error;
  }
  error = rl_handle_note(lock, redlock_lock_bootstrap(lock));
  redlock_lock_free(lock);
  return error;
}
