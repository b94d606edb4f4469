/*
 * Steps that many tests of worlds of fake nodes take.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world_steps.h"

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

int fake_extend(fake_world *world, rl_lock *lock, redlock_duration ttl_us) {
  fake_begin_extend(world, lock, ttl_us);
  fake_settle(world);
  return rl_lock_result(lock);
}

int fake_release(fake_world *world, rl_lock *lock) {
  fake_begin_release(world, lock);
  fake_settle(world);
  return rl_lock_result(lock);
}

void fake_free(fake_world *world, rl_lock *lock) {
  rl_lock_free(lock, world->now_us);
  fake_settle(world);
}

void fake_lose(fake_world *world, unsigned node) {
  world->nodes[node].policy = FAKE_HANGS;
  fake_break(world, node, "Connection reset by peer");
}
