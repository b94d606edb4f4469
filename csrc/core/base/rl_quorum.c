/*
 * Counting votes and deciding by them.
 *
 * SPDX-License-Identifier: MIT
 *
 * Specification, step 3: the lock is acquired if and only if the client was able to acquire it in
 * the majority of the instances, at least N/2+1. The majority is one of all N nodes, whichever of
 * them answer; with even N half the nodes are none. What is decided must not depend on the order of
 * the votes. So a decision is taken with the vote after which no other one is possible:
 *   1. The N/2+1st grant decides for the lock; with the option |quorum| the quorum-th.
 *   2. Otherwise there is none, for one of two reasons, of which the graver one comes first:
 *      acquire: so many nodes failed that the others are too few, so that nobody could have it;
 *      or, with fewer failures, it is taken.
 *      extend: so many nodes say "not yours" that the others are too few, so that it is lost;
 *      or, with fewer, it is not known.
 * To wait for the reason costs a minority of bad nodes nothing: when all good nodes have answered, it
 * is certain.
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

/*
 * |graver| votes give the graver reason why there are too few grants, once there are more of them than
 * can be done without.
 */
static rl_decision rl_quorum_decide(const rl_quorum *quorum, unsigned needed, unsigned graver,
                                    rl_decision reason, rl_decision otherwise) {
  unsigned pending = rl_quorum_pending(quorum);
  unsigned spare = quorum->nodes - needed;
  assert(quorum->unsent == 0);
  if (quorum->granted >= needed) {
    return RL_DECISION_MAJORITY;
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
 * A release asks two questions: was the lock ours until now, and is it certain that it is free?
 *   1. A majority deleted our token: it was ours, and is free.
 *   2. A majority says that it had no such token: it was lost before we gave it back.
 *   3. When neither can be reached any more, the second question decides: a majority on which our
 *      token certainly is not (deleted, not there, or never sent) is a released lock. The answer
 *      must not depend on the order of the votes, so this waits until 1 and 2 are impossible.
 */
rl_decision rl_quorum_decide_release(const rl_quorum *quorum) {
  unsigned majority = rl_quorum_majority(quorum->nodes);
  unsigned pending = rl_quorum_pending(quorum);
  unsigned certain = 0u + quorum->granted + quorum->denied + quorum->unsent;
  if (quorum->granted >= majority) {
    return RL_DECISION_MAJORITY;
  }
  if (quorum->denied >= majority) {
    return RL_DECISION_DENIED;
  }
  if (quorum->granted + pending >= majority || quorum->denied + pending >= majority) {
    return RL_DECISION_NONE;
  }
  if (certain >= majority) {
    return RL_DECISION_MAJORITY;
  }
  return certain + pending >= majority ? RL_DECISION_NONE : RL_DECISION_UNAVAILABLE;
}
