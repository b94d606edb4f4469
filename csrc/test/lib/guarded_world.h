/*
 * A world of nodes and clients that have a guard, as the tests of the guard use it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef GUARDED_WORLD_H
#define GUARDED_WORLD_H

#include "fake_guard.h"
#include "keys.h"
#include "lease/rl_guarding.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"
#include "world_steps.h"

static const redlock_options ONCE = {.retry_count = REDLOCK_RETRIES_NONE};

#define MAX_TTL (20 * SECONDS)
#define QUARANTINE (24 * SECONDS + 2 * MS) /* a tenth, 2 ms and 2 s more */

#define TRUSTED (100 * MS) /* for so long a server's past is */

/* A record as it is made, |age| ago, for these clients. */
static inline void remember(fake_world *world, unsigned node, redlock_duration age,
                            const char *why) {
  fake_store *store = &world->nodes[node].store;
  (void)snprintf(store->record, sizeof store->record, "%s %llu %s %s", store->run_id,
                 (unsigned long long)(world->now_us + store->ahead_us - age), why,
                 world->core.guards->fingerprint);
  store->unsealed = false;
}

/* Returns a world whose nodes are new. */
static inline fake_world *fresh(unsigned count) {
  return fake_world_new_guarded(count, MAX_TTL);
}

/* Returns a world whose nodes have old records. */
static inline fake_world *ready(unsigned count) {
  fake_world *world = fresh(count);
  rl_guarding_prepare(&world->core);
  for (unsigned i = 0; i < count; i++) {
    remember(world, i, QUARANTINE, "ready");
  }
  return world;
}

static inline rl_lock *lock_of(fake_world *world) {
  return fake_lock(world, KEY, &ONCE);
}

static inline rl_guard *guard_of(fake_world *world, unsigned node) {
  return world->core.nodes[node]->link.guard;
}

static inline void assert_votes(const rl_lock *lock, const char *votes) {
  char seen[FAKE_NODES_MAX + 1] = "";
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    seen[i] = redlock_vote_name(lock->votes[i].vote)[0];
  }
  assert_string_equal(seen, votes);
}

/* An acquire ends with |result|, by these votes. */
static inline void assert_hold(fake_world *world, rl_lock *lock, int result, const char *votes) {
  assert_error(fake_hold(world, lock), result);
  assert_votes(lock, votes);
}

/* Acquires and releases the lock. */
static inline void use(fake_world *world, rl_lock *lock) {
  assert_error(fake_hold(world, lock), REDLOCK_OK);
  assert_error(fake_release(world, lock), REDLOCK_OK);
}

static inline void assert_reason(const rl_lock *lock, unsigned node, const char *part) {
  assert_contains(rl_round_reason(lock, node), part);
}

/* A world with a lock that was acquired and released once. */
static inline fake_world *used(unsigned count, rl_lock **lock) {
  fake_world *world = ready(count);
  *lock = lock_of(world);
  use(world, *lock);
  return world;
}

#endif
