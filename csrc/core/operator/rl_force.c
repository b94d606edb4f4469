/*
 * Releasing by force: an operator deletes somebody else's key.
 *
 * SPDX-License-Identifier: MIT
 *
 * Whoever holds the lock is not told, and goes on until its deadline. That is the operator's risk, and
 * redlock.h says so.
 *   O1. Not a lock that is held by this very object, which is released.
 *   O2. Compare-and-delete of a token that was seen, on all nodes. Only when told "whatever it holds"
 *       the key goes without a comparison. Each command is sent once: what comes late, or again, could
 *       meet a key of the next holder, which a token survives and "whatever it holds" does not.
 *   O3. All nodes are waited for, until the round's deadline. It has been done when a majority has no
 *       such key any more and at least one had it.
 */
#include "operator/rl_force.h"

#include "lease/rl_release.h"
#include "lifecycle/rl_lifecycle.h"
#include "lock/rl_lock.h"
#include "lock/rl_round.h"

int rl_lock_force_release(rl_lock *lock, redlock_time now_us, const void *token,
                          size_t token_length, bool notify) {
  bool any = token_length == REDLOCK_TOKEN_ANY;
  int error = rl_lock_may_ask(lock, now_us, RL_OPERATION_FORCE_RELEASE); /* O1 */
  if (error != REDLOCK_OK) {
    return error;
  }
  rl_attempt *attempt = rl_attempt_new_custom(&lock->core->attempts, lock->resource, lock, token,
                                              any ? 0 : token_length);
  if (attempt == NULL) {
    return rl_lock_ask_nothing(lock, RL_OPERATION_FORCE_RELEASE);
  }
  attempt->any = any;
  return rl_lock_ask(lock, RL_OPERATION_FORCE_RELEASE, now_us, attempt, notify);
}

/* O2. Sends the command. Returns NULL, or why it was not sent. */
static const char *rl_force_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  if (!rl_link_has_room(&node->link, RL_OUTSTANDING_FORCE)) {
    return "too many commands are waiting for the node";
  }
  return rl_link_queue_force(&node->link, now_us, lock->attempt, lock->round, lock->attempt->any)
             ? NULL
             : "out of memory";
}

/* O3 */
static void rl_force_decide(rl_lock *lock, redlock_time now_us) {
  const rl_quorum *quorum = &lock->quorum;
  unsigned rid = quorum->granted + quorum->denied;
  if (rid + quorum->failed < quorum->nodes) {
    return;
  }
  bool majority = rid >= rl_quorum_majority(quorum->nodes);
  rl_lock_asked(lock, now_us,
                !majority             ? REDLOCK_E_UNAVAILABLE
                : quorum->granted > 0 ? REDLOCK_OK
                                      : REDLOCK_E_NOT_HELD);
}

const rl_steps rl_force_steps = {
    .send = rl_force_send,
    .decide = rl_force_decide,
};
