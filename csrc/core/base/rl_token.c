/*
 * Tokens: the value of a lock's key, by which a node identifies the holder.
 *
 * SPDX-License-Identifier: MIT
 *
 * Every attempt has its own token: a release of attempt 1 that arrives late would otherwise delete
 * the key of attempt 2. Tokens are hexadecimal because people and other Redlock clients read them.
 */
#include "base/rl_token.h"

#include <assert.h>

static_assert(REDLOCK_TOKEN_LENGTH == 2 * RL_TOKEN_ENTROPY, "two digits for each byte");

void rl_token_write(char token[REDLOCK_TOKEN_LENGTH + 1],
                    const unsigned char entropy[RL_TOKEN_ENTROPY]) {
  static const char digits[] = "0123456789abcdef";
  for (unsigned i = 0; i < RL_TOKEN_ENTROPY; i++) {
    token[2 * i] = digits[entropy[i] >> 4];
    token[2 * i + 1] = digits[entropy[i] & 15];
  }
  token[REDLOCK_TOKEN_LENGTH] = '\0';
}
