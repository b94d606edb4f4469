/*
 * The state of waiters: hashes and random numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait/rl_waits.h"

#include <string.h>

uint64_t rl_waits_random(rl_core *core) {
  core->waitlists->random += 0x9e3779b97f4a7c15u; /* splitmix64 */
  uint64_t mixed =
      core->waitlists->random ^ core->random; /* A forked child has stirred in other bytes. */
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  return mixed ^ mixed >> 31;
}

uint64_t rl_waits_hash(const rl_core *core, const rl_resource *resource) {
  uint64_t hash = core->waitlists->seed ^ resource->key_length;
  uint32_t left = resource->key_length;
  for (const char *at = resource->key; left > 0;) {
    uint64_t word = 0;
    uint32_t taken = left < sizeof word ? left : (uint32_t)sizeof word;
    memcpy(&word, at, taken);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
    hash += core->waitlists->seed;
    at += taken;
    left -= taken;
  }
  return hash ^ hash >> 29;
}
