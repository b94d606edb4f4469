/*
 * Leases that keep themselves, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KEPT_H
#define KEPT_H

#include "fake_nodes.h"
#include "keys.h"
#include "lease/rl_loss.h"
#include "rl_test.h"

#define LEASE_US (9898 * MS)             /* of a ttl of 10 s */
#define THIRD_US (10 * SECONDS / 3)      /* of the same */
#define EIGHTH_US (10 * SECONDS / 3 / 8) /* of that */

static inline redlock_options kept(void) {
  redlock_options options = fake_once();
  options.auto_extend = REDLOCK_YES;
  return options;
}

/* Returns a world whose lock is held on all nodes since FAKE_START_US, and auto-extended. */
static inline fake_world *held_by(unsigned count, rl_lock **lock, const redlock_options *options) {
  fake_world *world = fake_world_new(count);
  *lock = fake_lock(world, KEY, options);
  assert_error(fake_acquire(world, *lock), REDLOCK_OK);
  return world;
}

static inline fake_world *held(unsigned count, rl_lock **lock) {
  redlock_options options = kept();
  return held_by(count, lock, &options);
}

/* Time passes until the core's next timer, and then a turn. */
static inline void wait_for_core(fake_world *world) {
  redlock_time deadline_us = rl_core_deadline(&world->core);
  assert_true(deadline_us != REDLOCK_NEVER && deadline_us > world->now_us);
  fake_pass(world, deadline_us - world->now_us);
}

static inline unsigned extends(const fake_world *world) {
  unsigned count = 0;
  for (unsigned i = 0; i < world->count; i++) {
    count += world->nodes[i].extends;
  }
  return count;
}

static inline int reason_of(const fake_world *world, const rl_lock *lock) {
  redlock_time since_us;
  return rl_loss_of(lock, world->now_us, &since_us);
}

static inline redlock_time since_of(const fake_world *world, const rl_lock *lock) {
  redlock_time since_us;
  (void)rl_loss_of(lock, world->now_us, &since_us);
  return since_us;
}

static inline void refuse_all(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].policy = FAKE_REFUSES;
    fake_break(world, i, "Connection reset by peer");
  }
}

static inline void accept_all(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].policy = FAKE_ACCEPTS;
  }
}

#endif
