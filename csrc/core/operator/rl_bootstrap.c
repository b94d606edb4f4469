/*
 * Bootstrap: an operator says that no node has forgotten anything.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new node has no record, and looks like one that was restarted without its keys. Whoever knows that no client holds a
 * lock need not wait for its quarantine.
 *   B1. Only with a guard, and not by a lock that is held.
 *   B2. Every node is told to make its record anew, as if that had been done so long ago that it may vote.
 *   B3. All nodes are waited for, until the round's deadline. It has been done when a majority may vote.
 */
#include "operator/rl_bootstrap.h"

#include "lease/rl_guarding.h"
#include "lifecycle/rl_lifecycle.h"
#include "lock/rl_lock.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"

int rl_lock_bootstrap(rl_lock *lock, redlock_time now_us, bool notify) {
  static const unsigned char no_entropy[RL_TOKEN_ENTROPY];           /* Its token is never sent. */
  int error = rl_lock_may_ask(lock, now_us, RL_OPERATION_BOOTSTRAP); /* B1 */
  if (error == REDLOCK_OK && lock->core->guards == NULL) {
    error = rl_lock_refuse_argument(lock, RL_OPERATION_BOOTSTRAP,
                                    "the client has no guard: its setting guard turns one on");
  }
  if (error != REDLOCK_OK) {
    return error;
  }
  rl_attempt *attempt = rl_attempt_new(&lock->core->attempts, lock->resource, lock, no_entropy);
  return attempt == NULL ? rl_lock_ask_nothing(lock, RL_OPERATION_BOOTSTRAP)
                         : rl_lock_ask(lock, RL_OPERATION_BOOTSTRAP, now_us, attempt, notify);
}

/* B2. Sends it. Returns NULL, or why it was not sent. */
static const char *rl_bootstrap_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  if (!rl_link_has_room(&node->link, RL_OUTSTANDING_BOOTSTRAP)) {
    return "too many commands are waiting for the node";
  }
  return rl_link_queue_bootstrap(&node->link, now_us, lock->attempt, lock->round) ? NULL
                                                                                  : "out of memory";
}

redlock_vote rl_bootstrap_read(rl_core *core, redlock_time now_us, rl_node *node,
                               const rl_outstanding *owed, char reason[RL_REASON_MAX + 1]) {
  const rl_guard *guard = node->link.guard;
  rl_guarding_answered(core, node, now_us, owed, false);
  /* The clocks of the others may not be known yet: that is the next acquire's. */
  bool ready = guard->standing == RL_GUARD_KNOWN && !guard->distant && guard->votes_at_us <= now_us;
  reason[0] = '\0';
  if (!ready) {
    (void)rl_guard_reason(guard, now_us, reason, RL_REASON_MAX + 1);
  }
  return ready ? REDLOCK_VOTE_GRANTED : rl_guard_vote(guard);
}

/* B3 */
static void rl_bootstrap_decide(rl_lock *lock, redlock_time now_us) {
  const rl_quorum *quorum = &lock->quorum;
  if (quorum->granted + quorum->denied + quorum->failed < quorum->nodes) {
    return;
  }
  bool majority = quorum->granted >= rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE);
  rl_lock_asked(lock, now_us, majority ? REDLOCK_OK : REDLOCK_E_UNAVAILABLE);
}

const rl_steps rl_bootstrap_steps = {
    .send = rl_bootstrap_send,
    .decide = rl_bootstrap_decide,
};
