/*
 * How often a waiter asks the nodes: not as fast as they answer, and not ever later.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_queue.h"
#include "keys.h"
#include "world_steps.h"

static redlock_options patient(redlock_duration wait_us) {
  redlock_options options = {0};
  options.wait_us = wait_us;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  return options;
}

static rl_lock *begin(fake_world *world, const redlock_options *options) {
  rl_lock *lock = fake_lock(world, KEY, options);
  assert_non_null(lock);
  fake_begin_acquire(world, lock);
  return lock;
}

TEST(free_node_without_vote_is_tried_at_the_usual_pace) {
  redlock_options options = patient(10 * REDLOCK_SECONDS);
  fake_world *world = fake_world_new_notifying(1);
  rl_lock *lock = begin(world, &options);
  assert_int_equal(fake_reply(world, 0, "-OOM command not allowed\r\n").verb, FAKE_SET);
  fake_settle(world);
  assert_true(world->nodes[0].enqueues > 0);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 200 * MS - 1);
  assert_int_equal(world->nodes[0].sets, 1);
  fake_pass(world, 1);
  assert_int_equal(world->nodes[0].sets, 2);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* Two have it for good, a third for 0.8 s; the others are free. */
TEST(waiter_polls_when_a_majority_is_free) {
  redlock_options options = patient(10 * REDLOCK_SECONDS);
  fake_world *world = fake_world_new_notifying(5);
  for (unsigned i = 0; i < 3; i++) {
    fake_store_put(&world->nodes[i].store, KEY, OTHER,
                   i < 2 ? REDLOCK_NEVER : world->now_us + 800 * MS);
  }
  redlock_time begun_us = world->now_us;
  rl_lock *lock = begin(world, &options);
  fake_settle(world);
  while (rl_lock_result(lock) == REDLOCK_PENDING) {
    world->now_us = rl_core_deadline(&world->core);
    fake_settle(world);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_true(world->now_us - begun_us <= 810 * MS);
}

TEST(late_report_does_not_postpone_the_poll) {
  redlock_options options = patient(60 * REDLOCK_SECONDS);
  fake_world *world = fake_world_new_notifying(3);
  for (unsigned i = 0; i < 3; i++) {
    fake_store_put(&world->nodes[i].store, KEY, OTHER, REDLOCK_NEVER);
  }
  rl_lock *lock = begin(world, &options);
  fake_settle(world);
  unsigned asked = world->nodes[0].enqueues;
  assert_int_equal(asked, 1);
  fake_pass(world, 1500 * MS);
  unsigned others = world->nodes[2].enqueues;
  fake_break(world, 3 + 2, "the connection over which node 2 calls");
  fake_settle(world);
  assert_int_equal(world->nodes[2].enqueues, others + 1);
  assert_int_equal(world->nodes[0].enqueues, asked);
  fake_pass(world, 760 * MS); /* 2 s, and an eighth at most */
  fake_settle(world);
  assert_int_equal(world->nodes[0].enqueues, asked + 1);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
}

/* Enqueues |count| waiters, whose key another client holds until |ends_us|. */
static void fill_queues(fake_world *world, unsigned count, redlock_time ends_us) {
  char entry[FAKE_ENTRY_MAX + 1];
  for (unsigned i = 0; i < 3; i++) {
    fake_store_put(&world->nodes[i].store, KEY, OTHER, ends_us);
    for (unsigned other = 0; other < count; other++) {
      (void)snprintf(entry, sizeof entry, "0123456789abcdef%08x", other);
      fake_queue_put(&world->nodes[i].store, KEY, entry);
    }
  }
}

TEST(waiter_far_back_polls_less_often) {
  redlock_options options = patient(60 * REDLOCK_SECONDS);
  fake_world *world = fake_world_new_notifying(3);
  fill_queues(world, 16, REDLOCK_NEVER);
  (void)begin(world, &options);
  fake_settle(world);
  assert_int_equal(world->nodes[0].enqueues, 1);
  for (unsigned i = 0; i < 5; i++) { /* The subscribers answer meanwhile. */
    fake_pass(world, 1048 * MS);     /* 3 times 2 s, less an eighth at most */
    fake_settle(world);
  }
  assert_int_equal(world->nodes[0].enqueues, 1);
  fake_pass(world, 1520 * MS);
  fake_settle(world);
  assert_int_equal(world->nodes[0].enqueues, 2);
}

/* Or a thousand would ask at once when a holder has died. */
TEST(expiry_of_a_key_wakes_only_the_first_sixteen) {
  redlock_options options = patient(60 * REDLOCK_SECONDS);
  for (unsigned before = 15; before <= 16; before++) {
    fake_world *world = fake_world_new_notifying(3);
    fill_queues(world, before, world->now_us + REDLOCK_SECONDS);
    (void)begin(world, &options);
    fake_settle(world);
    fake_pass(world, 1100 * MS);
    fake_settle(world);
    assert_int_equal(world->nodes[0].enqueues, before < 16 ? 2 : 1);
  }
}

TEST(poll_of_distant_nodes_ends_within_the_budget) {
  redlock_options options = patient(3300 * MS);
  options.retry_delay_us = 700 * MS;
  options.node_timeout_us = REDLOCK_SECONDS;
  fake_world *world = fake_world_new_notifying(1);
  fake_store_put(&world->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  redlock_time begun_us = world->now_us;
  rl_lock *lock = begin(world, &options);
  world->core.nodes[0]->link.fastest_us = 300 * MS; /* It took that to make the connection. */
  for (fake_verb verb = FAKE_SET; verb != FAKE_ENQUEUE;) {
    fake_pass(world, 300 * MS);
    verb = fake_answer(world, 0).verb;
  }
  while (rl_lock_result(lock) == REDLOCK_PENDING) { /* From now on nothing is answered. */
    fake_pass(world, rl_core_deadline(&world->core) - world->now_us);
  }
  assert_true(world->now_us <= begun_us + options.wait_us);
}
