/*
 * Bootstrap: an operator vouches that no node has lost a lock.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new node has no lineage record, and looks like a node that was restarted without its keys. An
 * operator knows that no client holds a lock, and spares the nodes their quarantine.
 *   BOOT-1. The client must have a guard.
 *   BOOT-2. Each node replaces its record by one that is so old that the node may vote.
 *   BOOT-3. The bootstrap succeeds if as many nodes may vote as an acquire needs.
 */
#include "lease/rl_guard_effects.h"
#include "node/rl_guard.h"
#include "operator/rl_ask.h"

/* BOOT-1 */
static const char *rl_bootstrap_wrong(const rl_lock *lock, const rl_question *question) {
  (void)question;
  return lock->core->guards != NULL ? NULL : "the client has no guard: turn on its setting guard";
}

/* BOOT-2 */
static const char *rl_bootstrap_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  rl_outstanding command = rl_ask_command(lock, now_us, 0);
  return rl_link_ask_bootstrap(&node->link, &command) ? NULL : "out of memory";
}

/* Lets the guard read the record, even if the lock is freed. */
static bool rl_bootstrap_note(rl_core *core, redlock_time now_us, rl_answer *answer) {
  const rl_guard *guard = answer->node->link.guard;
  rl_guard_effects_answered(core, answer->node, now_us, answer->command, false);
  /* The clocks of other nodes may be unknown yet: the next acquire compares them. */
  bool ready = guard->state == RL_GUARD_KNOWN && !guard->distant && guard->votes_at_us <= now_us;
  answer->verdict = (rl_verdict){
      .vote = ready ? REDLOCK_VOTE_GRANTED : rl_guard_missing_vote(guard), .ran = true};
  answer->reason = NULL;
  if (!ready && rl_guard_reason(guard, now_us, answer->text, sizeof answer->text)[0] != '\0') {
    answer->reason = answer->text;
  }
  return true;
}

/* BOOT-3 */
static void rl_bootstrap_decide(rl_lock *lock, redlock_time now_us) {
  if (rl_ask_is_answered(lock)) {
    bool ready = lock->quorum.granted >= rl_core_quorum(lock->core, RL_OPERATION_ACQUIRE);
    rl_ask_end(lock, now_us, ready ? REDLOCK_OK : REDLOCK_E_UNAVAILABLE);
  }
}

const rl_steps rl_bootstrap_steps = {
    .wrong = rl_bootstrap_wrong,
    .send = rl_bootstrap_send,
    .note = rl_bootstrap_note,
    .decide = rl_bootstrap_decide,
};
