/*
 * A world of a client that has a guard, as the tests of the guard use it.
 *
 * SPDX-License-Identifier: MIT
 *
 * Its |world| and |lock| are those of lease_world.h.
 */
#ifndef GUARDED_WORLD_H
#define GUARDED_WORLD_H

#include "fake_guard.h"
#include "lease/rl_guard_effects.h"
#include "lease_world.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"

static const redlock_options ONCE = {.retry_count = REDLOCK_RETRIES_NONE};

#define MAX_TTL (20 * SECONDS)
#define QUARANTINE (24 * SECONDS + 2 * MS) /* a tenth, 2 ms and 2 s more */

#define TRUSTED (100 * MS) /* a replication history is trusted for this time */

/* Gives the node a lineage record of this client that was created |age| ago. */
static inline void put_record(unsigned node, redlock_duration age, const char *why) {
  char record[FAKE_RECORD_MAX + 1];
  fake_store *store = &world->nodes[node].store;
  (void)snprintf(record, sizeof record, "%s %llu %s %s", store->run_id,
                 (unsigned long long)(world->now_us + store->ahead_us - age), why,
                 world->core.guards->fingerprint);
  (void)snprintf(store->record, sizeof store->record, "%s", record);
  store->unsealed = false;
}

/* Returns a lock that tries once. */
static inline rl_lock *new_lock(const char *key) {
  return fake_lock(world, key, &ONCE);
}

/* Opens a world whose nodes are new. */
static inline void open_world_of_new_nodes(unsigned count) {
  world = fake_world_new_guarded(count, MAX_TTL);
  lock = new_lock(KEY);
}

/* Opens a world whose nodes have records, so that they vote. */
static inline void open_world_with_records(unsigned count) {
  open_world_of_new_nodes(count);
  rl_guard_effects_prepare(&world->core);
  for (unsigned i = 0; i < count; i++) {
    put_record(i, QUARANTINE, "ready");
  }
}

static inline rl_guard *guard_of(unsigned node) {
  return world->core.nodes[node]->link.guard;
}

static inline void assert_votes(const rl_lock *self, const char *votes) {
  char seen[FAKE_NODES_MAX + 1] = "";
  for (unsigned i = 0; i < self->core->node_count; i++) {
    seen[i] = redlock_vote_name(self->votes[i].vote)[0];
  }
  assert_string_equal(seen, votes);
}

/* Fails unless an acquire ends with |result|, by these votes. */
static inline void assert_acquire(rl_lock *self, int result, const char *votes) {
  assert_error(fake_acquire(world, self), result);
  assert_votes(self, votes);
}

/* Acquires and releases the lock. */
static inline void acquire_and_release(rl_lock *self) {
  assert_error(fake_acquire(world, self), REDLOCK_OK);
  assert_error(fake_release(world, self), REDLOCK_OK);
}

static inline void assert_reason(const rl_lock *self, unsigned node, const char *part) {
  assert_contains(rl_round_reason(self, node), part);
}

/* Opens a world with records, whose |lock| was acquired and released once. */
static inline void open_world_after_a_lease(unsigned count) {
  open_world_with_records(count);
  acquire_and_release(lock);
}

#endif
