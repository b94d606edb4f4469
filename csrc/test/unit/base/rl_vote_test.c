/*
 * Every kind of vote has its name, and counts as what the table says.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_vote.h"
#include "rl_test.h"

TEST(every_vote_has_its_name) {
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_UNKNOWN), "unknown");
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_GRANTED), "granted");
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_TAKEN), "taken");
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_ERROR), "error");
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_QUARANTINED), "quarantined");
  assert_string_equal(redlock_vote_name(5), "unknown");
  assert_string_equal(redlock_vote_name(-1), "unknown");
}

TEST(only_a_grant_counts_for_the_lock) {
  assert_int_equal(rl_vote_counts_as(REDLOCK_VOTE_GRANTED), RL_COUNT_GRANTED);
  assert_int_equal(rl_vote_counts_as(REDLOCK_VOTE_TAKEN), RL_COUNT_DENIED);
  assert_int_equal(rl_vote_counts_as(REDLOCK_VOTE_ERROR), RL_COUNT_FAILED);
  assert_int_equal(rl_vote_counts_as(REDLOCK_VOTE_UNKNOWN), RL_COUNT_FAILED);
  assert_int_equal(rl_vote_counts_as(REDLOCK_VOTE_QUARANTINED), RL_COUNT_FAILED);
  assert_int_equal(rl_vote_counts_as(5), RL_COUNT_FAILED);
  assert_int_equal(rl_vote_counts_as(-1), RL_COUNT_FAILED);
}
