/*
 * Numbers in bytes. They are the same on processors of either byte order, so that a seed of the
 * simulator has the same trace on each.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WORD_H
#define RL_WORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the number in |length| bytes, at most 8, whose first byte is the lowest one. */
static inline uint64_t rl_word_read(const void *bytes, size_t length) {
  uint64_t word = 0;
  memcpy(&word, bytes, length);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

#endif
