/*
 * A world with one lock, as most tests of leases need it: the variables |world| and |lock|.
 *
 * SPDX-License-Identifier: MIT
 *
 * A test includes this last, because parameters of other headers have the names of the variables.
 */
#ifndef LEASE_WORLD_H
#define LEASE_WORLD_H

#include "keys.h"
#include "world_steps.h"

static fake_world *world;                          /* the latest of the test */
static rl_lock *lock;                              /* of KEY */
static char lease_token[REDLOCK_TOKEN_LENGTH + 1]; /* of the lease of open_world_with_lease() */

#define LEASE_US (9898 * MS) /* of the default ttl: 10 s, less 1 % and 2 ms */

/* Opens a new world whose |lock| is held on all nodes since FAKE_START_US. */
static inline void open_world_with_lease(unsigned count, const redlock_options *options) {
  world = fake_world_new(count);
  lock = fake_lock(world, KEY, options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  memcpy(lease_token, rl_attempt_token(lock->lease), sizeof lease_token);
}

/*
 * Begins an acquire of a new |lock| in the open world. The nodes have received its commands, and
 * none has answered.
 */
static inline void begin_acquire_of_new_lock(const redlock_options *options) {
  lock = fake_lock(world, KEY, options);
  fake_begin_acquire(world, lock);
}

/* The same for an acquire of one attempt. */
static inline void begin_single_attempt(void) {
  redlock_options options = fake_once();
  begin_acquire_of_new_lock(&options);
}

/* Opens a new world first. */
static inline void open_world_and_begin_acquire(unsigned count, const redlock_options *options) {
  world = fake_world_new(count);
  begin_acquire_of_new_lock(options);
}

static inline void open_world_and_begin_single_attempt(unsigned count) {
  world = fake_world_new(count);
  begin_single_attempt();
}

/* Begin an operation of |lock|. The nodes have received its commands, and none has answered. */
static inline void begin_extend(redlock_duration ttl_us) {
  fake_begin_extend(world, lock, ttl_us);
}

static inline void begin_release(void) {
  fake_begin_release(world, lock);
}

/* Run an operation, which all nodes answer. Return its result, or why it did not start. */
static inline int acquire(rl_lock *self, const redlock_options *options) {
  return fake_acquire_with(world, self, options);
}

static inline int extend(rl_lock *self, redlock_duration ttl_us) {
  return fake_extend(world, self, ttl_us);
}

static inline int release(rl_lock *self) {
  return fake_release(world, self);
}

/* Lets nodes 0 and 1 answer, the majority of three. */
static inline void let_nodes_0_and_1_answer(void) {
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
}

/* The same. Returns the result of |lock|, which must be one of this world. */
static inline int let_majority_answer(void) {
  let_nodes_0_and_1_answer();
  return rl_lock_result(lock);
}

/* Lets another client hold the key on nodes 0 to |count| - 1. */
static inline void let_other_client_hold(unsigned count, redlock_time ends_us) {
  for (unsigned i = 0; i < count; i++) {
    fake_store_put(&world->nodes[i].store, KEY, OTHER, ends_us);
  }
}

/* Breaks the connection of a node, which refuses the next ones. */
static inline void take_down(unsigned node) {
  world->nodes[node].policy = FAKE_REFUSES;
  fake_break(world, node, "Connection reset by peer");
}

/* Returns when the key ends on a node, or 0 if it is not there. */
static inline redlock_time key_expiry(unsigned node) {
  return fake_store_expiry(&world->nodes[node].store, world->now_us, KEY);
}

/* Three ways to end an operation in flight. */
static inline void cancel_operation(void) {
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
}

static inline void free_lock(void) {
  rl_lock_free(lock, world->now_us);
}

static inline void close_core(void) {
  rl_core_close(&world->core, world->now_us);
}

static inline void assert_message(const rl_lock *self, const char *part) {
  char message[512];
  assert_contains(rl_lock_message(self, message, sizeof message), part);
}

#endif
