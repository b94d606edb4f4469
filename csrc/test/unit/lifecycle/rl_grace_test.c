/*
 * The grace period, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lifecycle/rl_grace.h"

#include "lease/rl_reentry.h"

#include "lease_world.h"

#define START FAKE_START_US
#define NOTHING(lock) assert_true(rl_grace_until((lock), world->now_us) <= world->now_us)
#define UNTIL(lock, at_us) assert_int_equal(rl_grace_until((lock), world->now_us), (at_us))

static const char NOSCRIPT[] = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

/* Three nodes, of which the last does not answer its handshake, and a lock on the other two. */
static void hold_two(const redlock_options *options) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_SILENT;
  begin_acquire_of_new_lock(options);
  assert_error(let_majority_answer(), REDLOCK_OK);
}

TEST(connection_in_progress_is_waited_for) {
  hold_two(NULL);
  UNTIL(lock, START + 100 * MS);
  world->now_us += 99 * MS;
  UNTIL(lock, START + 100 * MS);
  fake_reply(world, 2, "+OK\r\n");
  assert_int_equal(fake_next(world, 2), FAKE_SET);
  NOTHING(lock); /* Its command is out: the reply does not matter. */
}

/* Also one whose name is being looked up. */
TEST(connection_before_handshake_is_waited_for) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_HANGS;
  begin_acquire_of_new_lock(NULL);
  assert_error(let_majority_answer(), REDLOCK_OK);
  UNTIL(lock, START + 100 * MS);
  fake_pass(world, 100 * MS);
  NOTHING(lock);
}

/* It was not asked, because it was behind; then its connection broke, and is being made again. */
TEST(node_that_was_behind_is_waited_for) {
  world = fake_world_new(3);
  rl_lock *first = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, first), REDLOCK_OK);
  assert_error(rl_lock_extend(first, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  fake_answer(world, 0);
  fake_answer(world, 1);
  fake_pass(world, 150 * MS);
  lock = fake_lock(world, "orders:43", NULL);
  fake_begin_acquire(world, lock);
  world->nodes[2].policy = FAKE_SILENT;
  fake_break(world, 2, "Connection reset by peer");
  assert_error(let_majority_answer(), REDLOCK_OK);
  UNTIL(lock, world->now_us + 100 * MS);
}

TEST(connected_nodes_are_not_waited_for) {
  world = fake_world_new(3);
  lock = fake_lock(world, KEY, NULL);
  NOTHING(lock);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  NOTHING(lock);
  fake_turn(world);
  NOTHING(lock);
  assert_error(let_majority_answer(), REDLOCK_OK);
  NOTHING(lock);
}

TEST(grace_period_follows_duration_of_decision) {
  redlock_options options = fake_once();
  options.node_timeout_us = 900 * MS;
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_SILENT;
  begin_acquire_of_new_lock(&options);
  fake_answer(world, 0);
  fake_pass(world, 60 * MS);
  fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  UNTIL(lock, START + 240 * MS);
}

TEST(grace_period_is_limited_by_ttl_and_attempt) {
  redlock_options options = fake_once();
  options.ttl_us = 500 * MS;
  options.node_timeout_us = 400 * MS;
  hold_two(&options);
  UNTIL(lock, START + 50 * MS);
  options = fake_once();
  options.node_timeout_us = 30 * MS;
  hold_two(&options);
  UNTIL(lock, START + 30 * MS);
}

/* Its time counts from its start, so that a hung node delays a script once, not at each lock. */
TEST(hung_connection_is_waited_for_once) {
  hold_two(NULL);
  rl_lock *later = fake_lock(world, "later", NULL);
  fake_pass(world, 60 * MS);
  fake_begin_acquire(world, later);
  fake_answer(world, 0);
  fake_answer(world, 1);
  UNTIL(later, START + 100 * MS);
  fake_pass(world, 40 * MS);
  NOTHING(lock);
  NOTHING(later);
}

/* An owner shares its lease without waiting, whichever of its locks is the lease owner. */
TEST(nested_acquire_waits_for_no_node) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_SILENT;
  rl_lock *locks[3];
  for (unsigned i = 0; i < 3; i++) {
    locks[i] = fake_lock(world, KEY, NULL);
    assert_error(rl_reentry_set_owner(locks[i], world->now_us, "me", 2), REDLOCK_OK);
  }
  assert_error(rl_lock_acquire(locks[0], world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  fake_answer(world, 0);
  fake_answer(world, 1);
  UNTIL(locks[0], START + 100 * MS);
  assert_error(rl_lock_acquire(locks[1], world->now_us, NULL, false), REDLOCK_OK);
  NOTHING(locks[1]);
  assert_error(rl_lock_release(locks[0], world->now_us, false), REDLOCK_OK);
  NOTHING(locks[0]);
  assert_error(rl_lock_acquire(locks[2], world->now_us, NULL, false), REDLOCK_OK);
  NOTHING(locks[1]);
  NOTHING(locks[2]);
  fake_reply(world, 2, "+OK\r\n");
  fake_pass(world, 200 * MS);
  assert_int_equal(fake_next(world, 2), FAKE_SET); /* It joins all the same. */
}

TEST(connection_that_failed_before_is_not_waited_for) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_REFUSES;
  begin_acquire_of_new_lock(NULL);
  fake_answer(world, 0);
  fake_answer(world, 1);
  NOTHING(lock);
  world->nodes[2].policy = FAKE_HANGS;
  fake_pass(world, SECONDS);
  rl_lock *later = fake_lock(world, "later", NULL);
  fake_begin_acquire(world, later);
  fake_answer(world, 0);
  fake_answer(world, 1);
  assert_error(rl_lock_result(later), REDLOCK_OK);
  assert_int_equal(later->awaited, 4);
  NOTHING(later);
}

TEST(release_for_connection_in_progress_is_waited_for) {
  open_world_with_lease(3, NULL);
  fake_pass(world, SECONDS);
  world->nodes[2].policy = FAKE_SILENT;
  redlock_time broken_us = world->now_us;
  fake_break(world, 2, "reset");
  world->now_us += MS;
  begin_release();
  NOTHING(lock); /* It is in flight. */
  assert_error(let_majority_answer(), REDLOCK_OK);
  UNTIL(lock, broken_us + 100 * MS);
  fake_reply(world, 2, "+OK\r\n");
  assert_int_equal(fake_next(world, 2), FAKE_RELEASE);
  NOTHING(lock);
}

TEST(forgotten_script_is_waited_for) {
  open_world_with_lease(3, NULL);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world); /* They know the script. */
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_pass(world, SECONDS);
  redlock_time start_us = world->now_us;
  begin_release();
  for (unsigned i = 0; i < 2; i++) {
    fake_reply(world, i, NOSCRIPT);
    fake_answer(world, i);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  UNTIL(lock, start_us + 100 * MS);
  fake_reply(world, 2, NOSCRIPT);
  UNTIL(lock, start_us + 100 * MS);
  fake_answer(world, 2);
  NOTHING(lock);
  /* The next release is an ordinary one. */
  world->now_us += MS;
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  world->now_us += MS;
  begin_release();
  assert_error(let_majority_answer(), REDLOCK_OK);
  NOTHING(lock);
}

/* An extend, too: slow nodes must keep the key as long as the other nodes. */
TEST(forgotten_extend_script_is_waited_for) {
  open_world_with_lease(3, NULL);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world); /* They know the script. */
  fake_pass(world, SECONDS);
  redlock_time start_us = world->now_us;
  begin_extend(0);
  for (unsigned i = 0; i < 2; i++) {
    fake_reply(world, i, NOSCRIPT);
    fake_answer(world, i);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  UNTIL(lock, start_us + 100 * MS);
  fake_reply(world, 2, NOSCRIPT);
  assert_int_equal(fake_next(world, 2), FAKE_EXTEND);
  UNTIL(lock, start_us + 100 * MS);
  fake_answer(world, 2);
  NOTHING(lock);
}
