/*
 * Steps that many tests of worlds of fake nodes take.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world_steps.h"

void fake_begin_ask(fake_world *world, rl_lock *lock, rl_operation operation) {
  assert_error(rl_lock_ask(lock, world->now_us, operation, NULL, false), REDLOCK_OK);
  fake_turn(world);
}

void fake_begin_acquire(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
}

void fake_begin_extend(fake_world *world, rl_lock *lock, redlock_duration ttl_us) {
  assert_error(rl_lock_extend(lock, world->now_us, ttl_us, false), REDLOCK_OK);
  fake_turn(world);
}

void fake_begin_release(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
}

static int fake_finish(fake_world *world, rl_lock *lock, int error) {
  if (error != REDLOCK_OK) {
    return error;
  }
  fake_settle(world);
  return rl_lock_outcome(lock, world->now_us);
}

int fake_ask(fake_world *world, rl_lock *lock, rl_operation operation) {
  return fake_finish(world, lock, rl_lock_ask(lock, world->now_us, operation, NULL, true));
}

int fake_acquire_with(fake_world *world, rl_lock *lock, const redlock_options *options) {
  return fake_finish(world, lock, rl_lock_acquire(lock, world->now_us, options, true));
}

int fake_extend(fake_world *world, rl_lock *lock, redlock_duration ttl_us) {
  return fake_finish(world, lock, rl_lock_extend(lock, world->now_us, ttl_us, true));
}

int fake_release(fake_world *world, rl_lock *lock) {
  return fake_finish(world, lock, rl_lock_release(lock, world->now_us, true));
}

void fake_free(fake_world *world, rl_lock *lock) {
  rl_lock_free(lock, world->now_us);
  fake_settle(world);
}

void fake_break_for_good(fake_world *world, unsigned node) {
  world->nodes[node].policy = FAKE_HANGS;
  fake_break(world, node, "Connection reset by peer");
}
