/*
 * The texts of the scripts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/rl_script.h"

#include "base/rl_sha1.h"
#include "rl_test.h"

TEST(each_script_is_named_by_the_sha1_of_its_text) {
  char hex[41];
  for (unsigned i = RL_SCRIPT_NONE + 1; i < RL_SCRIPT_COUNT; i++) {
    const char *text = rl_script_text((rl_script)i);
    rl_sha1(hex, text, strlen(text));
    assert_string_equal(hex, rl_script_sha1((rl_script)i));
  }
}
