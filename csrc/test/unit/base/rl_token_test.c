/*
 * Tokens.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_token.h"
#include "rl_test.h"

TEST(entropy_becomes_lower_case_hexadecimal_digits) {
  static const unsigned char entropy[RL_TOKEN_ENTROPY] = {0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xff,
                                                          0xa5, 0x5a, 0xde, 0xad, 0xbe, 0xef, 0x12,
                                                          0x34, 0x56, 0x78, 0x9a, 0xbc, 0xf0};
  char token[REDLOCK_TOKEN_LENGTH + 1];
  memset(token, 'x', sizeof token);
  rl_token_write(token, entropy);
  assert_string_equal(token, "00010f107f80ffa55adeadbeef123456789abcf0");
}

/* Every byte of the entropy has a place of its own in the token. */
TEST(different_entropy_gives_a_different_token) {
  for (unsigned at = 0; at < RL_TOKEN_ENTROPY; at++) {
    for (unsigned value = 1; value < 256; value++) {
      unsigned char entropy[RL_TOKEN_ENTROPY] = {0};
      char token[REDLOCK_TOKEN_LENGTH + 1];
      char digits[3];
      entropy[at] = (unsigned char)value;
      rl_token_write(token, entropy);
      (void)snprintf(digits, sizeof digits, "%02x", value);
      for (unsigned i = 0; i < REDLOCK_TOKEN_LENGTH; i++) {
        assert_int_equal(token[i], i / 2 == at ? digits[i % 2] : '0');
      }
    }
  }
}
