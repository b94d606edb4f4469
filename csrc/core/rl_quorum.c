/*
 * Counting votes and deciding by them.
 *
 * SPDX-License-Identifier: MIT
 *
 * Specification, step 3: the lock is acquired if and only if the client was able to acquire it in
 * the majority of the instances, at least N/2+1. The majority is one of all N nodes, whichever of
 * them answer. A decision is taken with the vote that makes it certain:
 *   1. the N/2+1st grant decides for the lock;
 *   2. when so many refused that N/2+1 others do not exist, the lock is somebody else's;
 *   3. when grants and votes still to come together cannot reach N/2+1, there is no lock. If so many
 *      failed that the others are no majority, that is the reason; otherwise it is split: with those
 *      that failed it would have been enough but for those that refused.
 * With even N a tie is a refusal (2): half the nodes are no majority.
 */
#include "rl_quorum.h"

#include <assert.h>

unsigned rl_quorum_majority(unsigned nodes) {
  return nodes / 2 + 1;
}

static unsigned rl_quorum_pending(const rl_quorum *quorum) {
  unsigned settled = quorum->granted + quorum->taken + quorum->failed + quorum->unsent;
  assert(settled <= quorum->nodes);
  return quorum->nodes - settled;
}

rl_decision rl_quorum_decide(const rl_quorum *quorum) {
  unsigned majority = rl_quorum_majority(quorum->nodes);
  assert(quorum->unsent == 0);
  if (quorum->granted >= majority) {
    return RL_DECISION_MAJORITY;
  }
  if (quorum->nodes - quorum->taken < majority) {
    return RL_DECISION_TAKEN;
  }
  if (quorum->nodes - quorum->failed < majority) {
    return RL_DECISION_UNAVAILABLE;
  }
  if (quorum->granted + rl_quorum_pending(quorum) < majority) {
    return RL_DECISION_SPLIT;
  }
  return RL_DECISION_NONE;
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
  unsigned certain = quorum->granted + quorum->taken + quorum->unsent;
  if (quorum->granted >= majority) {
    return RL_DECISION_MAJORITY;
  }
  if (quorum->taken >= majority) {
    return RL_DECISION_TAKEN;
  }
  if (quorum->granted + pending >= majority || quorum->taken + pending >= majority) {
    return RL_DECISION_NONE;
  }
  if (certain >= majority) {
    return RL_DECISION_MAJORITY;
  }
  return certain + pending >= majority ? RL_DECISION_NONE : RL_DECISION_UNAVAILABLE;
}
