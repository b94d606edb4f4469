/*
 * Counts votes and decides by them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_QUORUM_H
#define RL_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* The votes of a round, counted. rl_core_quorum() returns how many must grant. */
typedef struct rl_quorum {
  unsigned nodes : 6;   /* N: all nodes, also those that do not answer */
  unsigned granted : 6; /* exact success replies */
  unsigned denied : 6;  /* the key has another token, or none */
  unsigned failed : 6;  /* no vote: an error, a broken connection, no reply in time */
  unsigned unsent : 6;  /* release only: nodes to which no SET was sent */
} rl_quorum;

typedef enum rl_decision {
  RL_DECISION_NONE = 0,   /* more votes are needed */
  RL_DECISION_GRANTED,    /* enough nodes granted: a majority, or more */
  RL_DECISION_DENIED,     /* too many nodes denied */
  RL_DECISION_UNAVAILABLE /* too many nodes failed */
} rl_decision;

/* Returns N/2 + 1: any two majorities have a node in common. */
unsigned rl_quorum_majority(unsigned nodes);

/*
 * Return the decision of an operation, in whatever order the votes arrive. |needed| nodes must
 * grant: a majority up to all. A release always needs a majority.
 */
rl_decision rl_quorum_decide_acquire(const rl_quorum *quorum, unsigned needed);
rl_decision rl_quorum_decide_extend(const rl_quorum *quorum, unsigned needed);
rl_decision rl_quorum_decide_release(const rl_quorum *quorum);

/* Returns the number of nodes in a set. */
unsigned rl_quorum_count(uint32_t nodes);

/* Returns true if fewer than |needed| nodes remain that do not deny the lease. */
bool rl_quorum_denied(unsigned nodes, unsigned denied, unsigned needed);

/*
 * Returns how many of the |holding| nodes with the key of a lease may lose it before another
 * client, which needs |needed| of |nodes|, could be granted the lock. -1: it could be granted now.
 */
int rl_quorum_margin(unsigned nodes, unsigned holding, unsigned needed);

#endif
