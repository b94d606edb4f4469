/*
 * Random numbers for delays, from a state that the driver's entropy has seeded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RANDOM_H
#define RL_RANDOM_H

#include <stdint.h>

/* Returns the next number of an xorshift generator. A state of 0 stays 0. */
static inline uint64_t rl_random_next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

#endif
