/*
 * Every operation has its words, and is found by its name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_operation.h"
#include "rl_test.h"

TEST(every_operation_is_found_by_its_name) {
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
    assert_int_equal(rl_operation_of_name(rl_operation_name(all[i])), all[i]);
    assert_string_equal(rl_operation_gerund(all[i]), gerunds[i]);
  }
  assert_int_equal(rl_operation_of_name("none"), RL_OPERATION_NONE);
  assert_string_equal(rl_operation_name(RL_OPERATION_NONE), "none");
  assert_string_equal(rl_operation_gerund(RL_OPERATION_NONE), "idle");
  assert_int_equal(rl_operation_of_name("steal"), RL_OPERATION_NONE);
  assert_string_equal(rl_operation_name((rl_operation)99), "unknown");
  assert_string_equal(rl_operation_gerund((rl_operation)99), "unknown");
}
