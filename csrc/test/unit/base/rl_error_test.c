/*
 * Errors by name and by sentence.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_error.h"
#include "rl_test.h"

static const int errors[] = {
    REDLOCK_OK,          REDLOCK_PENDING,     REDLOCK_E_TAKEN,       REDLOCK_E_UNAVAILABLE,
    REDLOCK_E_EXPIRED,   REDLOCK_E_LOST,      REDLOCK_E_HELD,        REDLOCK_E_NOT_HELD,
    REDLOCK_E_CLOSED,    REDLOCK_E_CANCELLED, REDLOCK_E_MAX_HOLD,    REDLOCK_E_CLOCK,
    REDLOCK_E_INVALID,   REDLOCK_E_BUSY,      REDLOCK_E_UNSUPPORTED, REDLOCK_E_LIMIT,
    REDLOCK_E_NO_MEMORY, REDLOCK_E_SYSTEM};

static const char *const names[] = {
    "ok",      "pending",  "taken",       "unavailable", "expired",   "lost",
    "held",    "not_held", "closed",      "cancelled",   "max_hold",  "clock",
    "invalid", "busy",     "unsupported", "limit",       "no_memory", "system"};

TEST(every_error_has_its_name_and_a_sentence_of_its_own) {
  for (unsigned i = 0; i < COUNT_OF(errors); i++) {
    assert_string_equal(redlock_error_name(errors[i]), names[i]);
    assert_true(strlen(redlock_strerror(errors[i])) > 5);
    for (unsigned k = 0; k < i; k++) {
      assert_string_not_equal(redlock_strerror(errors[i]), redlock_strerror(errors[k]));
    }
  }
}

TEST(unknown_number_is_no_error) {
  static const int others[] = {2, -11, -19, -26, INT32_MAX, INT32_MIN};
  for (unsigned i = 0; i < COUNT_OF(others); i++) {
    assert_string_equal(redlock_error_name(others[i]), "unknown");
    assert_string_equal(redlock_strerror(others[i]), "unknown error");
  }
}

/* A new error does not change what is done about the others, whatever its number. */
TEST(every_error_has_a_kind) {
  for (unsigned i = 0; i < COUNT_OF(errors); i++) {
    rl_error_kind expected = errors[i] >= REDLOCK_OK        ? RL_ERROR_NO
                             : errors[i] >= REDLOCK_E_CLOCK ? RL_ERROR_FAILURE
                             : errors[i] >= REDLOCK_E_LIMIT ? RL_ERROR_CALLER
                                                            : RL_ERROR_MACHINE;
    assert_int_equal(rl_error_kind_of(errors[i]), expected);
  }
  assert_int_equal(rl_error_kind_of(-11), RL_ERROR_STRANGE);
}

TEST(version_is_that_of_the_header) {
  assert_string_equal(redlock_version(), REDLOCK_VERSION);
}
