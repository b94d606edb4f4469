/*
 * SHA-1, by which a node names a script (FIPS 180-4). It protects nothing here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_SHA1_H
#define RL_SHA1_H

#include <stddef.h>

#define RL_SHA1_LENGTH 40 /* hexadecimal digits */

/* Of |length| bytes; |digits| ends with a NUL. */
void rl_sha1(char digits[RL_SHA1_LENGTH + 1], const void *bytes, size_t length);

#endif
