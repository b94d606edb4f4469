/*
 * Random numbers that are the same everywhere: splitmix64 to seed, xoshiro256** to draw.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sim_random {
  uint64_t state[4];
} sim_random;

static inline uint64_t sim_splitmix(uint64_t *state) {
  uint64_t mixed = (*state += 0x9e3779b97f4a7c15u);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

static inline void sim_random_seed(sim_random *random, uint64_t *seed) {
  for (unsigned i = 0; i < 4; i++) {
    random->state[i] = sim_splitmix(seed);
  }
}

static inline uint64_t sim_random_next(sim_random *random) {
  uint64_t *s = random->state;
  uint64_t scrambled = s[1] * 5;
  uint64_t shifted = s[1] << 17;
  scrambled = ((scrambled << 7) | (scrambled >> 57)) * 9;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = (s[3] << 45) | (s[3] >> 19);
  return scrambled;
}

/*
 * Returns a number in [0, below), or 0 when |below| is 0. The bias of the remainder is negligible.
 */
static inline uint64_t sim_below(sim_random *random, uint64_t below) {
  uint64_t drawn = sim_random_next(random);
  return below == 0 ? 0 : (drawn >> 11) % below;
}

/* Uniform in [from, to]. */
static inline uint64_t sim_between(sim_random *random, uint64_t from, uint64_t to) {
  return to <= from ? from : from + sim_below(random, to - from + 1);
}

/* True |per_10000| times in ten thousand. */
static inline bool sim_chance(sim_random *random, unsigned per_10000) {
  return per_10000 != 0 && sim_below(random, 10000) < per_10000;
}

#endif
