/*
 * Votes, states and operations have a name each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_name.h"
#include "rl_test.h"

static void every_vote_has_its_name(void **state) {
  (void)state;
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_UNKNOWN), "unknown");
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_GRANTED), "granted");
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_TAKEN), "taken");
  assert_string_equal(redlock_vote_name(REDLOCK_VOTE_ERROR), "error");
  assert_string_equal(redlock_vote_name(4), "unknown");
  assert_string_equal(redlock_vote_name(-1), "unknown");
}

static void every_state_has_its_name(void **state) {
  (void)state;
  assert_string_equal(redlock_node_state_name(REDLOCK_NODE_DOWN), "down");
  assert_string_equal(redlock_node_state_name(REDLOCK_NODE_CONNECTING), "connecting");
  assert_string_equal(redlock_node_state_name(REDLOCK_NODE_UP), "up");
  assert_string_equal(redlock_node_state_name(3), "unknown");
}

static void every_operation_is_found_by_its_name(void **state) {
  (void)state;
  static const rl_operation all[] = {RL_OPERATION_ACQUIRE, RL_OPERATION_EXTEND,
                                     RL_OPERATION_RELEASE};
  static const char *const gerunds[] = {"acquiring", "extending", "releasing"};
  for (unsigned i = 0; i < COUNT_OF(all); i++) {
    assert_int_equal(rl_operation_of_name(rl_operation_name(all[i])), all[i]);
    assert_string_equal(rl_operation_gerund(all[i]), gerunds[i]);
  }
  assert_int_equal(rl_operation_of_name("steal"), RL_OPERATION_NONE);
  assert_string_equal(rl_operation_name((rl_operation)9), "unknown");
  assert_string_equal(rl_operation_gerund((rl_operation)9), "unknown");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_vote_has_its_name),
      cmocka_unit_test(every_state_has_its_name),
      cmocka_unit_test(every_operation_is_found_by_its_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
