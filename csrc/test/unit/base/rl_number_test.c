/*
 * Numbers in bytes and in digits.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_number.h"
#include "rl_test.h"

TEST(decimal_number_ends_at_first_other_byte) {
  static const struct {
    const char *bytes;
    size_t length, digits;
    uint64_t number;
  } cases[] = {{"", 0, 0, 0},
               {"x", 1, 0, 0},
               {"-1", 2, 0, 0},
               {"007", 3, 3, 7},
               {"42:label", 8, 2, 42},
               {"1234", 2, 2, 12},
               {"90/", 3, 2, 90},
               {"18446744073709551614", 20, 20, UINT64_MAX - 1},
               {"18446744073709551615", 20, 20, UINT64_MAX}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    uint64_t number = 1;
    assert_int_equal(rl_number_in_digits(cases[i].bytes, cases[i].length, &number),
                     cases[i].digits);
    assert_true(number == cases[i].number);
  }
}

TEST(larger_number_is_the_largest) {
  static const char *const digits[] = {"18446744073709551616", "99999999999999999999",
                                       "184467440737095516150", "1000000000000000000000000000001"};
  for (unsigned i = 0; i < COUNT_OF(digits); i++) {
    uint64_t number;
    assert_int_equal(rl_number_in_digits(digits[i], strlen(digits[i]), &number), strlen(digits[i]));
    assert_true(number == UINT64_MAX);
  }
}
