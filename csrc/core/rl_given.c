/*
 * A token that the caller gives for the next acquire of a lock, in place of a fresh one.
 *
 * SPDX-License-Identifier: MIT
 *
 * Everything else rests on tokens that are never used twice: a release of the first use that comes late
 * deletes the key of the second. So a given token is good for one attempt; what would be the next one
 * has nothing to go on with.
 */
#include "rl_given.h"

#include <stdlib.h>

#include "rl_core.h"

int rl_given_set(rl_lock *lock, const void *token, size_t token_length) {
  rl_core *core = lock->core;
  rl_given *given = malloc(sizeof *given);
  rl_attempt *attempt = given == NULL ? NULL
                                      : rl_attempt_new_given(&core->attempts, lock->resource, lock,
                                                             token, token_length);
  if (attempt == NULL) {
    free(given);
    return REDLOCK_E_NO_MEMORY;
  }
  rl_given_forget(lock);
  attempt->given = true;
  given->lock = lock;
  given->attempt = attempt;
  given->next = core->given;
  core->given = given;
  return REDLOCK_OK;
}

rl_attempt *rl_given_take(const rl_lock *lock) {
  rl_given **link = &lock->core->given;
  while (*link != NULL && (*link)->lock != lock) {
    link = &(*link)->next;
  }
  rl_given *given = *link;
  if (given == NULL) {
    return NULL;
  }
  rl_attempt *attempt = given->attempt;
  *link = given->next;
  free(given);
  return attempt;
}

void rl_given_forget(const rl_lock *lock) {
  rl_attempt_unref(&lock->core->attempts, rl_given_take(lock));
}
