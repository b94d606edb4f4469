/*
 * Ballots: what each of them is, and what it proves. Which reply is which ballot, rl_lock_acquire_test.c,
 * rl_lock_extend_test.c and rl_release_test.c try.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_ballot.h"

#include "rl_test.h"

static void each_ballot_is_a_vote_and_proves_what_its_line_says(void **state) {
  static const struct {
    rl_ballot ballot;
    redlock_vote vote;
    bool ran, set_nothing;
  } rows[] = {
      {RL_BALLOT_GRANTED, REDLOCK_VOTE_GRANTED, true, false},
      {RL_BALLOT_DENIED, REDLOCK_VOTE_TAKEN, true, true},
      {RL_BALLOT_REFUSED, REDLOCK_VOTE_ERROR, false, true},
      {RL_BALLOT_ERROR, REDLOCK_VOTE_ERROR, false, false},
      {RL_BALLOT_NO_SCRIPT, REDLOCK_VOTE_ERROR, false, true},
      {RL_BALLOT_BROKEN, REDLOCK_VOTE_ERROR, false, false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(rl_ballot_vote(rows[i].ballot), rows[i].vote);
    assert_int_equal(rl_ballot_ran(rows[i].ballot), rows[i].ran);
    assert_int_equal(rl_ballot_set_nothing(rows[i].ballot), rows[i].set_nothing);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_ballot_is_a_vote_and_proves_what_its_line_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
