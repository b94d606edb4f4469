/*
 * Every operation has its words.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_operation.h"
#include "rl_test.h"

TEST(every_operation_has_its_gerund) {
  static const char *const gerunds[] = {"idle",
                                        "acquiring",
                                        "extending",
                                        "releasing",
                                        "inspecting",
                                        "releasing by force",
                                        "asking for the doctor",
                                        "making the nodes ready"};
  assert_int_equal(COUNT_OF(gerunds), RL_OPERATION_COUNT);
  for (unsigned i = 0; i < COUNT_OF(gerunds); i++) {
    assert_string_equal(rl_operation_words_of[i].gerund, gerunds[i]);
  }
}

/* An operation has RL_ASKS if it is one of the last ones, which have a place for answers. */
TEST(questions_are_the_last_operations) {
  for (unsigned i = 0; i < RL_OPERATION_COUNT; i++) {
    assert_int_equal(rl_operation_has(i, RL_ASKS), i >= RL_OPERATION_FIRST_ASKED);
  }
}
