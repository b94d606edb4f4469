/*
 * A token that the caller supplies for the next acquire of a lock, in place of a fresh one.
 *
 * SPDX-License-Identifier: MIT
 *
 * No token may be used twice: a late release of its first use deletes the key of its second use. So
 * a supplied token serves one attempt, and the acquire makes no other. The lock waits in the queues
 * of the nodes before that attempt (NTF-2 of rl_notify.c).
 */
#include "lease/rl_custom_token.h"

#include "lock/rl_lock.h"

int rl_custom_token_set(rl_lock *lock, const void *token, size_t token_length) {
  rl_attempt_pool *attempts = &lock->core->attempts;
  rl_attempt *attempt =
      rl_lock_reserve_extension(lock)
          ? rl_attempt_new_custom(attempts, lock->resource, lock, token, token_length)
          : NULL;
  if (attempt == NULL) {
    return REDLOCK_E_NO_MEMORY;
  }
  rl_custom_token_forget(lock);
  attempt->custom = true;
  lock->extension->custom_token = attempt;
  return REDLOCK_OK;
}

rl_attempt *rl_custom_token_take(rl_lock *lock) {
  rl_attempt *attempt = lock->extension == NULL ? NULL : lock->extension->custom_token;
  if (attempt != NULL) {
    lock->extension->custom_token = NULL;
  }
  return attempt;
}

void rl_custom_token_forget(rl_lock *lock) {
  rl_attempt_unref(&lock->core->attempts, rl_custom_token_take(lock));
}
