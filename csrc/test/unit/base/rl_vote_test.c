/*
 * Every kind of vote has its name, and counts as what the table says.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_vote.h"
#include "rl_test.h"

#define VOTE_NAME(vote, name, count) [vote] = #name,

static const char *const names[] = {RL_VOTES(VOTE_NAME)};

TEST(every_vote_has_its_name) {
  for (int vote = 0; vote < (int)COUNT_OF(names); vote++) {
    assert_string_equal(redlock_vote_name(vote), names[vote]);
  }
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_QUARANTINED), "quarantined");
  assert_string_equal(redlock_vote_name(COUNT_OF(names)), "unknown");
  assert_string_equal(redlock_vote_name(-1), "unknown");
}

TEST(only_a_grant_counts_for_the_lock) {
  for (int vote = -1; vote <= (int)COUNT_OF(names); vote++) {
    rl_count expected = vote == REDLOCK_VOTE_GRANTED ? RL_COUNT_GRANTED
                        : vote == REDLOCK_VOTE_TAKEN ? RL_COUNT_DENIED
                                                     : RL_COUNT_FAILED;
    assert_int_equal(rl_vote_counts_as(vote), expected);
  }
}
