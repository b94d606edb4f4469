/*
 * Every operation has its words.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_operation.h"
#include "rl_test.h"

TEST(every_operation_has_its_gerund) {
  static const rl_operation all[] = {
      RL_OPERATION_ACQUIRE,       RL_OPERATION_EXTEND, RL_OPERATION_RELEASE,  RL_OPERATION_INSPECT,
      RL_OPERATION_FORCE_RELEASE, RL_OPERATION_DOCTOR, RL_OPERATION_BOOTSTRAP};
  static const char *const gerunds[] = {"acquiring",
                                        "extending",
                                        "releasing",
                                        "inspecting",
                                        "releasing by force",
                                        "asking for the doctor",
                                        "making the nodes ready"};
  for (unsigned i = 0; i < COUNT_OF(all); i++) {
    assert_string_equal(rl_operation_words_of[all[i]].gerund, gerunds[i]);
  }
  assert_string_equal(rl_operation_words_of[RL_OPERATION_NONE].gerund, "idle");
}
