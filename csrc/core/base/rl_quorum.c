/*
 * Counts votes and decides by them.
 *
 * SPDX-License-Identifier: MIT
 *
 * Specification, step 3: the lock is acquired if and only if the client was able to acquire it in
 * the majority of the instances, at least N/2+1. N counts all nodes, also those that do not answer.
 * With an even N, half of the nodes are no majority. The decision must not depend on the order of
 * the votes. So it is made at the first vote after which no other decision is possible:
 *   1. The N/2+1st grant decides for the lock. With the option |quorum| the quorum-th grant does.
 *   2. Otherwise the lock is not granted:
 *      acquire: UNAVAILABLE if the failed nodes leave no quorum for any client, otherwise TAKEN.
 *      extend: LOST if too many nodes deny the lease, otherwise UNAVAILABLE.
 * If only a minority failed, the answers of the other nodes decide. No decision waits for a failed
 * node.
 *
 * Copies: csrc/test/sim/check_votes.c, lua/redlock/fake_round.lua; the majority in cli_quorum()
 * (csrc/cli/cli_settings.c).
 */
#include "base/rl_quorum.h"

#include <assert.h>

unsigned rl_quorum_majority(unsigned nodes) {
  return nodes / 2 + 1;
}

unsigned rl_quorum_count(uint32_t nodes) {
  unsigned count = 0;
  for (; nodes != 0; nodes &= nodes - 1) {
    count++;
  }
  return count;
}

bool rl_quorum_denied(unsigned nodes, unsigned denied, unsigned needed) {
  return nodes - denied < needed;
}

int rl_quorum_margin(unsigned nodes, unsigned holding, unsigned needed) {
  return holding + needed <= nodes ? -1 : (int)(holding + needed - nodes - 1);
}

static unsigned rl_quorum_pending(const rl_quorum *quorum) {
  unsigned settled = 0u + quorum->granted + quorum->denied + quorum->failed + quorum->unsent;
  assert(settled <= quorum->nodes);
  return quorum->nodes - settled;
}

/* |graver| counts the votes for the graver reason, which holds if they exceed the spare nodes. */
static rl_decision rl_quorum_decide(const rl_quorum *quorum, unsigned needed, unsigned graver,
                                    rl_decision reason, rl_decision otherwise) {
  unsigned pending = rl_quorum_pending(quorum);
  unsigned spare = quorum->nodes - needed;
  assert(quorum->unsent == 0);
  if (quorum->granted >= needed) {
    return RL_DECISION_GRANTED;
  }
  if (graver > spare) {
    return reason;
  }
  if (quorum->granted + pending >= needed || graver + pending > spare) {
    return RL_DECISION_NONE;
  }
  return otherwise;
}

rl_decision rl_quorum_decide_acquire(const rl_quorum *quorum, unsigned needed) {
  return rl_quorum_decide(quorum, needed, quorum->failed, RL_DECISION_UNAVAILABLE,
                          RL_DECISION_DENIED);
}

rl_decision rl_quorum_decide_extend(const rl_quorum *quorum, unsigned needed) {
  return rl_quorum_decide(quorum, needed, quorum->denied, RL_DECISION_DENIED,
                          RL_DECISION_UNAVAILABLE);
}

/*
 * A release answers two questions: did this client hold the lock until now, and is the lock free?
 *   1. A majority deleted the token: the client held the lock, and it is free.
 *   2. A majority did not have the token: the lease was lost before the release.
 *   3. If neither majority is possible, the second question decides: the lock is released if a
 *      majority certainly does not have the token (deleted, absent, or never sent). The decision
 *      must not depend on the order of the votes, so this rule waits until 1 and 2 are impossible.
 */
rl_decision rl_quorum_decide_release(const rl_quorum *quorum) {
  unsigned majority = rl_quorum_majority(quorum->nodes);
  unsigned pending = rl_quorum_pending(quorum);
  unsigned certain = 0u + quorum->granted + quorum->denied + quorum->unsent;
  if (quorum->granted >= majority) {
    return RL_DECISION_GRANTED;
  }
  if (quorum->denied >= majority) {
    return RL_DECISION_DENIED;
  }
  if (quorum->granted + pending >= majority || quorum->denied + pending >= majority) {
    return RL_DECISION_NONE;
  }
  if (certain >= majority) {
    return RL_DECISION_GRANTED;
  }
  return certain + pending >= majority ? RL_DECISION_NONE : RL_DECISION_UNAVAILABLE;
}
