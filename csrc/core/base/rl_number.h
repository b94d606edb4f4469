/*
 * Numbers in bytes and in digits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_NUMBER_H
#define RL_NUMBER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Returns the number in |length| bytes, at most 8, whose first byte is the lowest one. It is the
 * same on processors of either byte order, so that a seed of the simulator has the same trace.
 */
static inline uint64_t rl_number_in_bytes(const void *bytes, size_t length) {
  uint64_t word = 0;
  memcpy(&word, bytes, length);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

/*
 * Reads the decimal number at the beginning of |length| bytes, at most UINT64_MAX. Returns how many
 * digits it has; 0 if there is none, and then the number is 0.
 */
static inline size_t rl_number_in_digits(const char *bytes, size_t length, uint64_t *number) {
  size_t count = 0;
  *number = 0;
  for (; count < length && bytes[count] >= '0' && bytes[count] <= '9'; count++) {
    uint64_t digit = (uint64_t)(bytes[count] - '0');
    *number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
  }
  return count;
}

#endif
