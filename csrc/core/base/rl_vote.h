/*
 * Votes: kinds, names, and how they count.
 *
 * SPDX-License-Identifier: MIT
 *
 * rl_verdict.c decides which vote a reply is. CONTRIBUTING.md has the recipe (A kind of vote).
 */
#ifndef RL_VOTE_H
#define RL_VOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_reason.h"
#include "redlock.h"

/* X(vote, name, count). */
#define RL_VOTES(X)                                                                                \
  X(REDLOCK_VOTE_UNKNOWN, unknown, FAILED)                                                         \
  X(REDLOCK_VOTE_GRANTED, granted, GRANTED)                                                        \
  X(REDLOCK_VOTE_TAKEN, taken, DENIED)                                                             \
  X(REDLOCK_VOTE_ERROR, error, FAILED)                                                             \
  X(REDLOCK_VOTE_QUARANTINED, quarantined, FAILED)

/* How a vote counts. The values are bits of a set. */
typedef enum rl_count {
  RL_COUNT_GRANTED = 1, /* for the lock */
  RL_COUNT_DENIED = 2,  /* the key has another token, or none */
  RL_COUNT_FAILED = 4   /* no vote, for a reason (rl_reason.h) */
} rl_count;

#define RL_VOTE_NO_LATENCY UINT32_MAX

/* A node's vote. Every lock has one per node, so it is small. */
typedef struct rl_vote {
  uint32_t latency_us; /* at most 71 minutes; RL_VOTE_NO_LATENCY: the node did not answer */
  uint8_t vote;        /* a redlock_vote */
  bool settled;        /* counted, or certain */
  uint8_t key;         /* TAKEN: number of the key that is taken, from 1; 0 if unknown */
} rl_vote;

rl_count rl_vote_counts_as(int vote);

#endif
