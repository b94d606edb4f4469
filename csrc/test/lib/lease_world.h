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
static char lease_token[REDLOCK_TOKEN_LENGTH + 1]; /* of the lease that hold() has got */

#define LEASE_US (9898 * MS) /* of the default ttl: 10 s, less 1 % and 2 ms */

/* Opens a new world whose |lock| is held on all nodes since FAKE_START_US. */
static inline void hold(unsigned count, const redlock_options *options) {
  world = fake_world_new(count);
  lock = fake_lock(world, KEY, options);
  assert_error(fake_hold(world, lock), REDLOCK_OK);
  memcpy(lease_token, rl_attempt_token(lock->lease), sizeof lease_token);
}

/*
 * Begins an acquire in the open world. |lock| is a new lock. The nodes have the commands of its
 * acquire, and none has answered.
 */
static inline void start(const redlock_options *options) {
  lock = fake_lock(world, KEY, options);
  fake_begin_acquire(world, lock);
}

/* Begins an acquire of one attempt in the open world. */
static inline void start_once(void) {
  redlock_options options = fake_once();
  start(&options);
}

/* Opens a new world, and begins an acquire there. */
static inline void begin(unsigned count, const redlock_options *options) {
  world = fake_world_new(count);
  start(options);
}

/* Opens a new world, and begins an acquire of one attempt there. */
static inline void begin_once(unsigned count) {
  world = fake_world_new(count);
  start_once();
}

/* fake_begin_extend() and fake_begin_release(). */
static inline void begin_extend(redlock_duration ttl_us) {
  fake_begin_extend(world, lock, ttl_us);
}

static inline void begin_release(void) {
  fake_begin_release(world, lock);
}

/* fake_acquire(), fake_extend() and fake_release(). */
static inline int acquire(rl_lock *self, const redlock_options *options) {
  return fake_acquire(world, self, options);
}

static inline int extend(rl_lock *self, redlock_duration ttl_us) {
  return fake_extend(world, self, ttl_us);
}

static inline int release(rl_lock *self) {
  return fake_release(world, self);
}

/* Nodes 0 and 1 answer, the majority of three. */
static inline void answer_majority(void) {
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
}

/* Lets nodes 0 and 1 answer. Returns the result of |lock|. */
static inline int majority_answers(void) {
  answer_majority();
  return rl_lock_result(lock);
}

/* Lets another client hold the key on nodes 0 to |count| - 1. */
static inline void let_other_hold(unsigned count, redlock_time ends_us) {
  for (unsigned i = 0; i < count; i++) {
    fake_store_put(&world->nodes[i].store, KEY, OTHER, ends_us);
  }
}

/* A node goes down, and refuses connections. */
static inline void take_down(unsigned node) {
  world->nodes[node].policy = FAKE_REFUSES;
  fake_break(world, node, "Connection reset by peer");
}

/* Returns when the key ends on a node, or 0 if it is not there. */
static inline redlock_time expiry(unsigned node) {
  return fake_store_expiry(&world->nodes[node].store, world->now_us, KEY);
}

/* Ways in which a caller ends an operation in flight. */
static inline void by_cancelling(void) {
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
}

static inline void by_freeing(void) {
  rl_lock_free(lock, world->now_us);
}

static inline void by_closing(void) {
  rl_core_close(&world->core, world->now_us);
}

static inline void assert_message(const rl_lock *self, const char *part) {
  char message[512];
  assert_contains(rl_lock_message(self, message, sizeof message), part);
}

#endif
