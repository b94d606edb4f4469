/*
 * Counting votes and deciding by them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_QUORUM_H
#define RL_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rl_quorum {
  unsigned nodes : 6;   /* how many there are: N, never only those that answer */
  unsigned granted : 6; /* exact success replies */
  unsigned denied : 6;  /* the key is somebody else's, or is not ours */
  unsigned failed : 6;  /* no vote: an error, a broken connection, no reply in time */
  unsigned unsent : 6;  /* release only: nodes to which no SET can have gone */
} rl_quorum;

typedef enum rl_decision {
  RL_DECISION_NONE = 0,   /* more votes are needed */
  RL_DECISION_MAJORITY,   /* as many granted as are needed: a majority, or more */
  RL_DECISION_DENIED,     /* not so many are left, because it is somebody else's, or not ours */
  RL_DECISION_UNAVAILABLE /* not so many are left, because too many nodes failed */
} rl_decision;

/* N/2 + 1: any two majorities have a node in common. */
unsigned rl_quorum_majority(unsigned nodes);

/*
 * What an operation is to end with: the same in whatever order the votes come. |needed|: how many nodes must
 * grant, from a majority to all of them; a release always needs a majority.
 */
rl_decision rl_quorum_decide_acquire(const rl_quorum *quorum, unsigned needed);
rl_decision rl_quorum_decide_extend(const rl_quorum *quorum, unsigned needed);
rl_decision rl_quorum_decide_release(const rl_quorum *quorum);

/* How many nodes a set of nodes has. */
unsigned rl_quorum_count(uint32_t nodes);

/* Returns true if so many of |nodes| deny a lease that less than |needed| are left for it. */
bool rl_quorum_denied(unsigned nodes, unsigned denied, unsigned needed);

/*
 * How many of the |holding| nodes that have a lease's key may lose it before so many of |nodes| are without it that
 * another client, which needs |needed| of them, could be granted it. -1: it could be already.
 */
int rl_quorum_margin(unsigned nodes, unsigned holding, unsigned needed);

#endif
