/*
 * The knowledge of a client of the slots of its semaphores (SEM-1 of rl_semaphore.c).
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/rl_hash.h"

bool rl_slots_reserve(rl_core *core) {
  if (core->slots == NULL) {
    core->slots = calloc(1, sizeof *core->slots);
  }
  return core->slots != NULL;
}

void rl_slots_forget(rl_core *core) {
  free(core->slots);
  core->slots = NULL;
}

static uint64_t rl_slots_hash(const rl_resource *resource) {
  return rl_hash_bytes(0, resource->key, rl_resource_base_length(resource));
}

static unsigned rl_slots_at(uint64_t hash) {
  return (unsigned)(hash >> 7) % RL_SLOTS_KNOWN;
}

static bool rl_slots_knows(const rl_core *core, uint64_t hash) {
  return core->slots != NULL && core->slots->at[rl_slots_at(hash)].hash == (uint32_t)(hash >> 32);
}

/* Forgets another semaphore that shares the place. */
static void rl_slots_learn(rl_core *core, uint64_t hash) {
  unsigned at = rl_slots_at(hash);
  if (core->slots != NULL && !rl_slots_knows(core, hash)) {
    memset(&core->slots->at[at], 0, sizeof core->slots->at[at]);
    core->slots->at[at].hash = (uint32_t)(hash >> 32);
  }
}

void rl_slots_released(rl_core *core, const rl_attempt *lease) {
  unsigned slot = rl_resource_slot(lease->resource);
  if (slot != 0 && core->slots != NULL) {
    uint64_t hash = rl_slots_hash(lease->resource);
    rl_slots_learn(core, hash);
    core->slots->at[rl_slots_at(hash)].slot = (uint16_t)slot;
  }
}

unsigned rl_slots_take(const rl_lock *lock) {
  uint64_t hash = rl_slots_hash(lock->resource);
  unsigned slot = 0;
  if (rl_slots_knows(lock->core, hash)) {
    slot = lock->core->slots->at[rl_slots_at(hash)].slot;
    lock->core->slots->at[rl_slots_at(hash)].slot = 0;
  }
  return slot <= (unsigned)lock->current->permits ? slot : 0;
}

bool rl_slots_mostly_taken(const rl_lock *lock, redlock_time now_us) {
  uint64_t hash = rl_slots_hash(lock->resource);
  const rl_core *core = lock->core;
  return rl_slots_knows(core, hash) && core->slots->at[rl_slots_at(hash)].slot == 0 &&
         core->slots->at[rl_slots_at(hash)].mostly_taken_until_us > now_us;
}

void rl_slots_note_taken(const rl_lock *lock, redlock_time until_us) {
  uint64_t hash = rl_slots_hash(lock->resource);
  rl_slots_learn(lock->core, hash);
  if (lock->core->slots != NULL) {
    lock->core->slots->at[rl_slots_at(hash)].mostly_taken_until_us = until_us;
  }
}
