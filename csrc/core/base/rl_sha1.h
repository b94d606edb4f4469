/*
 * SHA-1 (FIPS 180-4), which names the scripts on a node. No security depends on it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_SHA1_H
#define RL_SHA1_H

#include <stddef.h>

#define RL_SHA1_LENGTH 40 /* hexadecimal digits */

/* Writes the hash of |length| bytes and a NUL to |digits|. */
void rl_sha1(char digits[RL_SHA1_LENGTH + 1], const void *bytes, size_t length);

#endif
