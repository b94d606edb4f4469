/*
 * The state of waiters, with the hash of a resource and random numbers for pauses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait/rl_wait_state.h"

uint64_t rl_wait_state_random(rl_core *core) {
  core->waitlists->random += 0x9e3779b97f4a7c15u; /* splitmix64 */
  /* core->random differs in a forked child. */
  uint64_t mixed = core->waitlists->random ^ core->random;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  return mixed ^ mixed >> 31;
}

uint64_t rl_wait_state_hash(const rl_core *core, const rl_resource *resource) {
  return rl_hash_bytes(core->waitlists->seed, resource->key, rl_resource_base_length(resource));
}
