/*
 * Counting votes and deciding by them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_QUORUM_H
#define RL_QUORUM_H

typedef struct rl_quorum {
  unsigned nodes;   /* how many there are: N, never only those that answer */
  unsigned granted; /* exact success replies */
  unsigned taken;   /* the key is somebody else's, or is not ours */
  unsigned failed;  /* no vote: an error, a broken connection, no reply in time */
  unsigned unsent;  /* release only: nodes to which no SET can have gone */
} rl_quorum;

typedef enum rl_decision {
  RL_DECISION_NONE = 0, /* more votes are needed */
  RL_DECISION_MAJORITY, /* a majority granted */
  RL_DECISION_TAKEN,    /* so many said taken that no majority is left */
  RL_DECISION_SPLIT, /* no majority is left: some said taken, and some failed, but not too many */
  RL_DECISION_UNAVAILABLE /* no majority is left, because too many failed */
} rl_decision;

/* N/2 + 1: any two majorities have a node in common. */
unsigned rl_quorum_majority(unsigned nodes);

/* For acquire and extend. */
rl_decision rl_quorum_decide(const rl_quorum *quorum);

/* For release. */
rl_decision rl_quorum_decide_release(const rl_quorum *quorum);

#endif
