/*
 * Two nodes that are one server, behind proxies or different addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_twin.h"

#include <stdio.h>

#include "rl_round.h"

/* Returns true if the node said "taken", of a SET that no other connection can have repeated. */
static bool rl_twin_is_due(const rl_lock *lock, const rl_node *node) {
  const rl_vote *entry = &lock->votes[node->index];
  const rl_attempt *attempt = lock->attempt;
  return entry->settled && entry->vote == REDLOCK_VOTE_TAKEN && !node->link.tested &&
         (attempt->refused & ~attempt->late & rl_node_bit(node)) != 0 &&
         rl_link_has_room(&node->link, RL_OWED_RELEASE);
}

bool rl_twin_test(rl_lock *lock, redlock_time now_us) {
  rl_core *core = lock->core;
  rl_attempt *attempt = lock->attempt;
  if (!core->finds_twins || attempt->given || attempt->set == 0 ||
      now_us >= lock->round_deadline_us || rl_lock_attach(lock) != NULL) {
    return false;
  }
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *node = core->nodes[i];
    if (rl_twin_is_due(lock, node) &&
        rl_link_queue_release(&node->link, now_us, attempt, lock->round, false, true)) {
      node->link.tested = true;
      attempt->tested |= rl_node_bit(node);
      attempt->tests |= rl_node_bit(node);
    }
  }
  return attempt->tested != 0;
}

/* TWIN-2 */
static void rl_twin_found(const rl_core *core, rl_node *node, const rl_attempt *attempt) {
  unsigned twin = 0;
  while (twin < core->node_count && (twin == node->index || (attempt->set >> twin & 1) == 0)) {
    twin++;
  }
  if (twin < core->node_count) {
    node->twin = (uint8_t)(twin + 1);
    (void)snprintf(node->error, sizeof node->error,
                   "it is the same server as %.100s; each node is to be a server of its own",
                   core->nodes[twin]->address.name);
  }
}

/* TWIN-3 */
static void rl_twin_conclude(const rl_core *core, rl_lock *lock, const rl_attempt *attempt) {
  for (unsigned i = 0; i < core->node_count; i++) {
    if ((attempt->tests >> i & 1) != 0) {
      core->nodes[i]->link.tested = core->nodes[i]->twin != 0; /* Else the next attempt tells. */
      rl_round_withdraw(
          lock, i,
          core->nodes[i]->twin != 0
              ? core->nodes[i]->error
              : "it denied the lock, as did a node that is the same server as another");
    }
  }
}

void rl_twin_tested(rl_core *core, rl_node *node, rl_attempt *attempt, bool deleted) {
  rl_lock *lock = attempt->lock;
  bool tested = (attempt->tested & rl_node_bit(node)) != 0;
  attempt->tested &= ~rl_node_bit(node);
  if (tested && deleted) {
    rl_twin_found(core, node, attempt);
    attempt->twins = true;
  }
  if (tested && attempt->tested == 0 && attempt->twins && lock != NULL &&
      lock->phase == RL_PHASE_ROUND && lock->attempt == attempt) {
    rl_twin_conclude(core, lock, attempt);
  }
}

void rl_twin_forget(rl_core *core, const rl_node *node) {
  for (unsigned i = 0; i < core->node_count; i++) {
    rl_node *other = core->nodes[i];
    if (other->twin == node->index + 1 && other != node) {
      other->twin = 0;
      other->error[0] = '\0';
    }
  }
}
