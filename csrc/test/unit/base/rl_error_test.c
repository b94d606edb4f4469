/*
 * Errors by name and by sentence.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_error.h"
#include "rl_test.h"

#define ERROR_VALUE(error, name, kind, sentence) error,
#define ERROR_NAME(error, name, kind, sentence) #name,

static const int errors[] = {RL_ERRORS(ERROR_VALUE)};
static const char *const names[] = {RL_ERRORS(ERROR_NAME)};

static bool is_error(int number) {
  unsigned i = 0;
  while (i < COUNT_OF(errors) && errors[i] != number) {
    i++;
  }
  return i < COUNT_OF(errors);
}

TEST(every_error_has_its_name_and_a_sentence_of_its_own) {
  for (unsigned i = 0; i < COUNT_OF(errors); i++) {
    assert_string_equal(redlock_error_name(errors[i]), names[i]);
    assert_true(strlen(redlock_strerror(errors[i])) > 5);
    for (unsigned k = 0; k < i; k++) {
      assert_string_not_equal(redlock_strerror(errors[i]), redlock_strerror(errors[k]));
    }
  }
  assert_string_equal(redlock_error_name(REDLOCK_E_NOT_HELD), "not_held");
}

TEST(unknown_number_is_no_error) {
  for (int number = -40; number <= 4; number++) {
    if (!is_error(number)) {
      assert_string_equal(redlock_error_name(number), "unknown");
      assert_string_equal(redlock_strerror(number), "unknown error");
      assert_int_equal(rl_error_kind_of(number), RL_ERROR_STRANGE);
    }
  }
  assert_false(is_error(2) || is_error(-19));
  assert_string_equal(redlock_error_name(INT32_MAX), "unknown");
  assert_string_equal(redlock_strerror(INT32_MIN), "unknown error");
}

/* Failures have the numbers from -1 on, mistakes and resources those from -20 on. */
TEST(every_error_has_a_kind) {
  for (unsigned i = 0; i < COUNT_OF(errors); i++) {
    bool machine = errors[i] == REDLOCK_E_NO_MEMORY || errors[i] == REDLOCK_E_SYSTEM;
    rl_error_kind expected = errors[i] >= REDLOCK_OK ? RL_ERROR_NO
                             : errors[i] > -20       ? RL_ERROR_FAILURE
                             : machine               ? RL_ERROR_MACHINE
                                                     : RL_ERROR_CALLER;
    assert_int_equal(rl_error_kind_of(errors[i]), expected);
  }
}

TEST(version_is_that_of_the_header) {
  assert_string_equal(redlock_version(), REDLOCK_VERSION);
}
