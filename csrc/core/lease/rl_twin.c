/*
 * Two nodes that are one server, behind proxies or different addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_twin.h"

#include <stdio.h>

#include "lease/rl_backfill.h"
#include "lock/rl_round.h"
#include "node/rl_link_queue.h"

/* Returns true if the node got no SET of the token, or has refused each of them. */
static bool rl_twin_lacks(const rl_attempt *attempt, const rl_node *node) {
  uint32_t lacking = rl_attempt_refused(attempt) | ~attempt->sent;
  return !attempt->custom && (lacking & rl_node_bit(node)) != 0;
}

static bool rl_twin_is_due(const rl_lock *lock, const rl_node *node) {
  const rl_vote *entry = &lock->votes[node->index];
  return entry->settled && entry->vote == REDLOCK_VOTE_TAKEN &&
         (lock->attempt->confirmed & ~node->link.compared & ~rl_node_bit(node)) != 0 &&
         (lock->attempt->tested & rl_node_bit(node)) == 0 && rl_twin_lacks(lock->attempt, node) &&
         rl_link_has_room(&node->link, RL_OUTSTANDING_RELEASE);
}

bool rl_twin_test(rl_lock *lock, redlock_time now_us) {
  rl_attempt *attempt = lock->attempt;
  if (attempt->confirmed == 0 || now_us >= lock->round_deadline_us ||
      rl_lock_attach(lock) != NULL) {
    return false;
  }
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    rl_node *node = lock->core->nodes[i];
    if (rl_twin_is_due(lock, node) &&
        rl_link_queue_release(&node->link, now_us, attempt, lock->round, false, true)) {
      node->link.compared |= attempt->confirmed;
      attempt->test_outstanding |= rl_node_bit(node);
      attempt->tested |= rl_node_bit(node);
    }
  }
  return attempt->test_outstanding != 0;
}

bool rl_twin_test_is_over(const rl_node *node, const rl_attempt *attempt) {
  return attempt->releasing && (attempt->test_outstanding & rl_node_bit(node)) != 0;
}

/* Names the twin if there is only one candidate. */
static void rl_twin_found(const rl_core *core, rl_node *node, uint32_t twins) {
  const char *name = "another node";
  for (unsigned i = 0; i < core->node_count; i++) {
    name = twins == (uint32_t)1 << i ? core->nodes[i]->address.name : name;
  }
  node->twins = twins;
  (void)snprintf(node->error, sizeof node->error,
                 "it is the same server as %.100s; each node must be a server of its own", name);
}

/* Returns the node that has lost its vote already because it may be the same server, or NULL. */
static const rl_node *rl_twin_explaining(const rl_core *core, const rl_node *node) {
  for (unsigned i = 0; i < core->node_count; i++) {
    if ((core->nodes[i]->twins & rl_node_bit(node)) != 0) {
      return core->nodes[i];
    }
  }
  return NULL;
}

/* Returns true if the round of the extend has counted the vote of |node|, a twin, already. */
static bool rl_twin_has_voted(const rl_outstanding *command, const rl_node *node) {
  const rl_lock *lock = command->attempt->lock;
  return rl_outstanding_has(command, RL_HOLDS) && lock != NULL && lock->round == command->round &&
         lock->votes[node->index].settled && lock->votes[node->index].vote == REDLOCK_VOTE_GRANTED;
}

const char *rl_twin_answered(rl_core *core, rl_node *node, const rl_outstanding *command,
                             rl_verdict *verdict) {
  rl_attempt *attempt = command->attempt;
  if (verdict->vote != REDLOCK_VOTE_GRANTED ||
      !rl_outstanding_has(command, RL_HOLDS | RL_RELEASES)) {
    return NULL;
  }
  bool holds = rl_outstanding_has(command, RL_HOLDS);
  /* A release that keeps the key (rl_hold.h) counts keys, as an extend does. */
  bool counts = holds || rl_attempt_keep_ms(attempt, command->sent_us) > 0;
  uint32_t twins = attempt->confirmed & ~rl_node_bit(node);
  bool known =
      counts && node->twins != 0; /* It may have refused this lease under its other name. */
  if (!known && (!rl_twin_lacks(attempt, node) || twins == 0)) {
    return NULL;
  }
  const rl_node *other = known ? NULL : rl_twin_explaining(core, node);
  if (other != NULL) {
    bool twice = rl_twin_has_voted(command, other);
    verdict->vote = twice ? REDLOCK_VOTE_ERROR : verdict->vote;
    return twice ? other->error : NULL;
  }
  if (!known) {
    rl_twin_found(core, node, twins);
  }
  attempt->twins = attempt->twins || !holds;
  if (!counts) {
    return NULL;
  }
  verdict->vote = REDLOCK_VOTE_ERROR;
  return node->error;
}

static void rl_twin_conclude(const rl_core *core, rl_lock *lock, const rl_attempt *attempt) {
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    if ((attempt->tested >> i & 1) != 0) {
      if (node->twins == 0) {
        node->link.compared = 0; /* The next attempt tests. */
      }
      rl_round_withdraw_denial(
          lock, i,
          node->twins != 0 ? node->error
                           : "it denied the lock, like a node that is the same server as another");
    }
  }
}

void rl_twin_tested(rl_core *core, const rl_node *node, const rl_outstanding *command) {
  rl_attempt *attempt = command->attempt;
  rl_lock *lock = attempt->lock;
  bool tested = rl_outstanding_has(command, RL_RELEASES) &&
                (attempt->test_outstanding & rl_node_bit(node)) != 0;
  attempt->test_outstanding &= tested ? ~rl_node_bit(node) : ~0u;
  if (tested && attempt->test_outstanding == 0 && attempt->twins && lock != NULL &&
      lock->phase == RL_PHASE_ROUND && lock->attempt == attempt) {
    rl_twin_conclude(core, lock, attempt);
  }
}

void rl_twin_forget(rl_core *core, const rl_node *node) {
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *other = core->nodes[i];
    if ((other->twins & rl_node_bit(node)) != 0) {
      other->twins = 0;
      other->link.compared = 0;
      other->error[0] = '\0';
      other->lacks_keys = true;
      rl_backfill_note_well(core, other);
    }
  }
}
