/*
 * Semaphores, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_semaphore.h"

#include "base/rl_label.h"
#include "fake_nodes.h"
#include "rl_test.h"

static rl_lock *pool(fake_world *world, int permits) {
  redlock_options options = fake_once();
  options.permits = permits;
  rl_lock *lock = fake_lock(world, "pool", &options);
  assert_non_null(lock);
  return lock;
}

static rl_lock *held(fake_world *world, int permits) {
  rl_lock *lock = pool(world, permits);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  return lock;
}

static void release(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

static unsigned sets(const fake_world *world) {
  unsigned count = 0;
  for (unsigned i = 0; i < world->count; i++) {
    count += world->nodes[i].sets;
  }
  return count;
}

TEST(semaphore_grants_as_many_slots_as_permits) {
  fake_world *world = fake_world_new(3);
  unsigned seen = 0;
  for (unsigned i = 0; i < 3; i++) {
    seen |= 1u << rl_semaphore_slot(held(world, 3), world->now_us);
  }
  assert_int_equal(seen, 0xe);
  rl_lock *fourth = pool(world, 3);
  assert_error(fake_acquire(world, fourth), REDLOCK_E_TAKEN);
  assert_int_equal(rl_semaphore_slot(fourth, world->now_us), 0);
}

TEST(free_first_slot_costs_one_set_on_each_node) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = pool(world, 64);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(sets(world), 3);
  assert_int_equal(rl_label_permits(rl_attempt_token(lock->lease), lock->lease->token_length), 64);
  unsigned slot = rl_semaphore_slot(lock, world->now_us);
  release(world, lock);
  assert_error(fake_acquire(world, lock), REDLOCK_OK); /* It remembers the slot. */
  assert_int_equal(rl_semaphore_slot(lock, world->now_us), slot);
  assert_int_equal(sets(world), 6);
}

/* Its random number would lead to another slot. */
TEST(client_tries_the_slot_first_that_it_has_released) {
  fake_world *world = fake_world_new(3);
  world->jitter = 4;
  rl_lock *lock = held(world, 64);
  assert_int_equal(rl_semaphore_slot(lock, world->now_us), 5);
  release(world, lock);
  world->jitter = 10;
  rl_lock *next = held(world, 64);
  assert_int_equal(rl_semaphore_slot(next, world->now_us), 5);
  rl_lock *other = held(world, 64);
  assert_int_equal(rl_semaphore_slot(other, world->now_us), 11);
}

TEST(taken_slot_leads_to_a_question_and_a_free_slot) {
  fake_world *world = fake_world_new(3);
  rl_lock *first = held(world, 2);
  rl_lock *second = pool(world, 2);
  world->jitter = rl_semaphore_slot(first, world->now_us) - 1; /* It draws the taken slot. */
  assert_error(rl_lock_acquire(second, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(fake_next(world, i), FAKE_SET);
  }
  fake_answer(world, 0);
  fake_answer(world, 1);
  fake_answer(world, 2);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(fake_next(world, i), FAKE_SLOTS);
    fake_answer(world, i); /* A majority suffices. */
  }
  assert_int_equal(fake_next(world, 0), FAKE_SET);
  fake_settle(world);
  assert_error(rl_lock_result(second), REDLOCK_OK);
  assert_int_equal(
      rl_semaphore_slot(first, world->now_us) + rl_semaphore_slot(second, world->now_us), 3);
}

TEST(slots_that_are_free_on_different_minorities_are_taken) {
  fake_world *world = fake_world_new(3);
  fake_store_put(&world->nodes[0].store, "pool/1", "another", REDLOCK_NEVER);
  fake_store_put(&world->nodes[1].store, "pool/1", "another", REDLOCK_NEVER);
  fake_store_put(&world->nodes[1].store, "pool/2", "another", REDLOCK_NEVER);
  fake_store_put(&world->nodes[2].store, "pool/2", "another", REDLOCK_NEVER);
  rl_lock *lock = pool(world, 2);
  assert_error(fake_acquire(world, lock), REDLOCK_E_TAKEN);
}

TEST(another_number_of_permits_is_named_in_the_message) {
  char message[512];
  fake_world *world = fake_world_new(3);
  (void)held(world, 1);
  rl_lock *second = held(world, 2);
  assert_int_equal(rl_semaphore_slot(second, world->now_us), 2);
  rl_lock *third = pool(world, 2);
  assert_error(fake_acquire(world, third), REDLOCK_E_TAKEN);
  assert_int_equal(rl_semaphore_other(third), 1);
  assert_non_null(strstr(rl_lock_message(third, message, sizeof message),
                         "have no free slot of 2; another client uses permits = 1: give all "
                         "clients the same number: "));
}

TEST(question_that_no_majority_answers_leaves_the_slot_taken) {
  fake_world *world = fake_world_new(3);
  (void)held(world, 1);
  rl_lock *lock = pool(world, 2);
  world->jitter = 0;
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  for (unsigned i = 0; i < 3; i++) {
    fake_answer(world, i);
  }
  fake_break(world, 0, "broken");
  fake_break(world, 1, "broken");
  fake_pass(world, REDLOCK_SECONDS);
  fake_settle(world);
  assert_true(rl_lock_result(lock) == REDLOCK_E_TAKEN ||
              rl_lock_result(lock) == REDLOCK_E_UNAVAILABLE);
}

TEST(semaphore_refuses_a_supplied_token_and_several_resources) {
  fake_world *world = fake_world_new(3);
  redlock_options options = fake_once();
  options.permits = 2;
  static const char *const names[] = {"a", "b"};
  rl_lock *lock = fake_lock_many(world, names, 2, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_INVALID);
}
