/*
 * Votes: kinds, names, and how they count. The rows are in rl_vote.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_vote.h"

const char *redlock_vote_name(int vote) {
  switch (vote) {
#define RL_VOTE_NAME(value, name, count)                                                           \
  case value:                                                                                      \
    return #name;
    RL_VOTES(RL_VOTE_NAME)
  default:
    return "unknown";
  }
}

rl_count rl_vote_counts_as(int vote) {
#define RL_VOTE_COUNT(value, name, count) [value] = RL_COUNT_##count,
  static const rl_count counts[] = {RL_VOTES(RL_VOTE_COUNT)};
  bool known = vote >= 0 && (size_t)vote < sizeof counts / sizeof *counts;
  return known ? counts[vote] : RL_COUNT_FAILED;
}
