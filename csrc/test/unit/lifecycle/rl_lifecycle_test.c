/*
 * A fire-and-forget release, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease_world.h"

static void send(rl_lock *self) {
  assert_error(rl_lock_release_send(self, world->now_us), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(self, world->now_us), 0);
  fake_turn(world);
}

TEST(fire_and_forget_is_sent_at_once_and_has_a_result) {
  open_world_with_lease(3, NULL);
  send(lock);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].releases, 1);
  }
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_null(rl_core_next_ended(&world->core));
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(acquire_may_follow_fire_and_forget_at_once) {
  open_world_with_lease(3, NULL);
  send(lock);
  assert_error(acquire(lock, NULL), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].releases, 1);
  }
}

TEST(extend_after_fire_and_forget_is_not_held) {
  open_world_with_lease(3, NULL);
  send(lock);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_result(lock), REDLOCK_E_NOT_HELD);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(wrong_argument_after_fire_and_forget_is_reported) {
  open_world_with_lease(3, NULL);
  redlock_options wrong = {.drift_factor = 7};
  send(lock);
  assert_error(rl_lock_acquire(lock, world->now_us, &wrong, false), REDLOCK_E_INVALID);
  assert_error(rl_lock_refuse_argument(lock, RL_OPERATION_ACQUIRE, "it is wrong"),
               REDLOCK_E_INVALID);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(wrong_argument_does_not_disturb_fire_and_forget) {
  open_world_with_lease(3, NULL);
  send(lock);
  assert_error(rl_lock_refuse_argument(lock, RL_OPERATION_ACQUIRE, "it is wrong"),
               REDLOCK_E_INVALID);
  assert_error(rl_lock_result(lock), REDLOCK_E_INVALID);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* Before the nodes have answered, and after: the caller of a release need not know which it is. */
TEST(blocking_release_takes_over_a_fire_and_forget_release) {
  for (unsigned ended = 0; ended <= 1; ended++) {
    open_world_with_lease(3, NULL);
    send(lock);
    if (ended) {
      fake_settle(world);
    }
    assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
    assert_error(rl_lock_release(lock, world->now_us, true), REDLOCK_OK);
    fake_settle(world);
    assert_ptr_equal(rl_core_next_ended(&world->core), lock);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_error(rl_lock_release(lock, world->now_us, true), REDLOCK_E_NOT_HELD);
    assert_int_equal(world->nodes[0].releases, 1);
  }
}

TEST(lost_lock_is_reported_after_fire_and_forget) {
  open_world_with_lease(3, NULL);
  let_other_client_hold(2, REDLOCK_NEVER);
  send(lock);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_LOST);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  assert_error(rl_lock_result(lock), REDLOCK_E_LOST);
}

TEST(unavailable_fire_and_forget_release_can_be_repeated) {
  open_world_with_lease(3, NULL);
  send(lock);
  fake_pass(world, 200 * MS); /* No node answers. */
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(fire_and_forget_does_not_wait_for_busy_nodes) {
  open_world_with_lease(3, NULL);
  world->core.pacer.in_flight_limit = 1;
  world->core.pacer.command_us = SECONDS;
  rl_lock *other = fake_lock(world, "other", NULL);
  fake_begin_acquire(
      world, other); /* Each node has one outstanding reply now: the in-flight limit is reached. */
  send(lock);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].releases, 1);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(free_completes_fire_and_forget) {
  for (unsigned launched = 0; launched <= 1; launched++) {
    open_world_with_lease(3, NULL);
    assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
    if (launched) {
      fake_turn(world);
      fake_break(world, 1, "it was cut");
    }
    rl_lock_free(lock, world->now_us);
    fake_turn(world);
    fake_pass(world, SECONDS);
    fake_settle(world);
    assert_int_equal(fake_keys(world, KEY), 0);
  }
}

TEST(cancel_and_fork_end_fire_and_forget) {
  for (unsigned forked = 0; forked <= 1; forked++) {
    open_world_with_lease(3, NULL);
    send(lock);
    if (forked) {
      rl_core_reset(&world->core);
    } else {
      fake_settle(world);
      rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
      assert_int_equal(fake_keys(world, KEY), 0);
    }
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
    (void)fake_world_end(world);
  }
}

TEST(fire_and_forget_release_needs_held_lock) {
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_E_BUSY);
  fake_settle(world);
  rl_core_close(&world->core, world->now_us);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_E_CLOSED);
}
