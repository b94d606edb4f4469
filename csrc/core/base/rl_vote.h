/*
 * Votes: their kinds, with the name of each and what it counts as.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new kind of vote stands in redlock.h, in the table below, and in the VoteKind of types.lua, which a spec
 * compares with this table. Which reply it is, rl_verdict.c says.
 */
#ifndef RL_VOTE_H
#define RL_VOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_reason.h"
#include "redlock.h"

/* X(vote, its name, what it counts as). */
#define RL_VOTES(X)                                                                                \
  X(REDLOCK_VOTE_UNKNOWN, unknown, FAILED)                                                         \
  X(REDLOCK_VOTE_GRANTED, granted, GRANTED)                                                        \
  X(REDLOCK_VOTE_TAKEN, taken, DENIED)                                                             \
  X(REDLOCK_VOTE_ERROR, error, FAILED)                                                             \
  X(REDLOCK_VOTE_QUARANTINED, quarantined, FAILED)

/* What a vote counts as. These are bits, for sets of them. */
typedef enum rl_count {
  RL_COUNT_GRANTED = 1, /* for the lock */
  RL_COUNT_DENIED = 2,  /* the key is somebody else's, or is not ours */
  RL_COUNT_FAILED = 4   /* no vote; there is a reason */
} rl_count;

#define RL_VOTE_NO_LATENCY UINT32_MAX

/* A node's vote; why it is none, rl_reason.h. There are as many as locks times nodes, so it is small. */
typedef struct rl_vote {
  uint32_t latency_us; /* at most 71 minutes; RL_VOTE_NO_LATENCY when it did not answer */
  uint8_t vote;        /* a redlock_vote */
  bool settled;        /* counted, or known for certain */
  uint8_t key;         /* taken: which of several keys stood in the way, from 1; 0 if not known */
} rl_vote;

rl_count rl_vote_counts_as(int vote);

#endif
