/*
 * Tokens: the value of a lock's key, by which a node identifies the holder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TOKEN_H
#define RL_TOKEN_H

#include "redlock.h"

#define RL_TOKEN_ENTROPY 20 /* bytes, as the specification recommends */

/* Writes REDLOCK_TOKEN_LENGTH lower-case hexadecimal digits and a NUL. */
void rl_token_write(char token[REDLOCK_TOKEN_LENGTH + 1],
                    const unsigned char entropy[RL_TOKEN_ENTROPY]);

#endif
