/*
 * How many attempts a waiter makes, at which pauses, and what a wait that fails costs a node: with
 * notifications and without.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_steps.h"
#include "waiting_world.h"

/* Nodes on which another client holds the key for good. */
static fake_world *taken_world(bool notifies) {
  fake_world *world = world_with_subscribers(3);
  for (unsigned i = 3; i < 6 && !notifies; i++) { /* Their notifications do not arrive. */
    world->nodes[i].policy = FAKE_REFUSES;
    fake_break(world, i, "Connection reset by peer");
  }
  let_other_take(world, 7, REDLOCK_NEVER);
  return world;
}

static redlock_options counted(int retry_count) {
  redlock_options options = patient_options();
  options.wait_us = 0;
  options.retry_count = retry_count;
  return options;
}

/* Time passes until the acquire has ended. Returns how long that takes. */
static redlock_duration wait_for_end(fake_world *world, const rl_lock *lock) {
  redlock_time begun_us = world->now_us;
  while (rl_lock_result(lock) == REDLOCK_PENDING) {
    pass_until(world, rl_core_deadline(&world->core));
  }
  return world->now_us - begun_us;
}

static const int COUNTS[] = {1, 3, 10, 100};

TEST(waiter_makes_the_attempts_of_retry_count_without_notifications) {
  for (unsigned i = 0; i < COUNT_OF(COUNTS); i++) {
    redlock_options options = counted(COUNTS[i]);
    fake_world *world = taken_world(false);
    rl_lock *lock = begin_acquire_of(world, KEY, &options);
    (void)wait_for_end(world, lock);
    assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
    assert_int_equal(world->nodes[0].sets, COUNTS[i] + 1);
  }
}

TEST(notified_waiter_makes_no_more_attempts_than_retry_count) {
  for (unsigned i = 0; i < COUNT_OF(COUNTS); i++) {
    for (unsigned every_ms = 1; every_ms <= 300; every_ms = every_ms * 7 + 1) {
      redlock_options options = counted(COUNTS[i]);
      fake_world *world = taken_world(true);
      rl_lock *lock = begin_acquire_of(world, KEY, &options);
      for (unsigned ms = 0; ms < 25000 && rl_lock_result(lock) == REDLOCK_PENDING; ms++) {
        for (unsigned node = 0; node < 3 && ms % every_ms == 0; node++) {
          if (lock->waitlist != NULL && lock->waitlist->ticket != NULL) {
            notify_ticket(world, node, lock->waitlist->ticket->id); /* In vain. */
          }
        }
        pass(world, MS);
      }
      assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
      assert_in_range(world->nodes[0].sets, 2, COUNTS[i] + 1);
    }
  }
}

TEST(retry_count_limits_the_attempts_of_a_promoted_waiter) {
  redlock_options options = counted(2), briefly = patient_options();
  briefly.wait_us = 100 * MS;
  fake_world *world = taken_world(false);
  rl_lock *head = begin_acquire_of(world, KEY, &briefly);
  rl_lock *next = begin_acquire_of(world, KEY, &options);
  assert_int_equal(next->phase, RL_PHASE_QUEUED);
  (void)wait_for_end(world, head);
  unsigned sets = world->nodes[0].sets;
  (void)wait_for_end(world, next);
  assert_error(rl_lock_result(next), REDLOCK_E_TAKEN);
  assert_in_range(world->nodes[0].sets - sets, 1, 3);
}

TEST(notified_waiter_draws_each_pause) {
  enum { ROUNDS = 60 };
  redlock_options options = counted(2);
  options.retry_delay_us = 50 * MS;
  options.retry_jitter_us = 40 * MS;
  redlock_duration least_us = REDLOCK_NEVER, most_us = 0, sum_us = 0;
  fake_world *world = taken_world(true);
  rl_lock *lock = fake_lock(world, KEY, &options);
  for (unsigned i = 0; i < ROUNDS; i++) {
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
    fake_settle(world);
    redlock_duration took_us = wait_for_end(world, lock);
    assert_in_range(took_us, 2 * 10 * MS - 5 * MS, 2 * 90 * MS);
    least_us = rl_time_min(least_us, took_us);
    most_us = rl_time_max(most_us, took_us);
    sum_us += took_us;
  }
  assert_true(least_us < 70 * MS && most_us > 130 * MS);
  assert_in_range(sum_us / ROUNDS, 80 * MS, 110 * MS);
}

/* The mean has to do for the pauses beyond a limit, and no sum overflows. */
TEST(time_limit_of_any_retry_count_is_bounded) {
  fake_world *world = taken_world(true);
  redlock_options options = counted(1000);
  options.retry_jitter_us = 40 * MS;
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  assert_in_range(lock->budget_ends_us, world->now_us + 198 * SECONDS,
                  world->now_us + 202 * SECONDS);
  rl_lock_free(lock, world->now_us);
  options = counted(1000000);
  options.retry_delay_us = REDLOCK_TTL_MAX_US;
  lock = begin_acquire_of(world, KEY, &options);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_true(lock->budget_ends_us > 1000 * REDLOCK_TTL_MAX_US);
}

/* Commands to node 0 for a wait of |wait_us| that fails. */
static unsigned cost_of(redlock_duration wait_us, bool notifies) {
  redlock_options options = patient_options();
  options.wait_us = wait_us;
  fake_world *world = taken_world(notifies);
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  redlock_duration took_us = wait_for_end(world, lock);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_in_range(took_us, wait_us - 5 * MS, wait_us);
  const fake_node *node = &world->nodes[0];
  unsigned commands = node->sets + node->enqueues + node->dequeues;
  return commands;
}

TEST(failed_wait_costs_no_more_commands_with_notifications) {
  static const unsigned waits_ms[] = {600, 1000, 2000, 3000, 5000, 20000};
  for (unsigned i = 0; i < COUNT_OF(waits_ms); i++) {
    assert_true(cost_of(waits_ms[i] * MS, true) <= cost_of(waits_ms[i] * MS, false));
  }
  /* Less cannot be: an attempt at either end, and a place in the queue between. */
  assert_int_equal(cost_of(100 * MS, true), 4);
  assert_int_equal(cost_of(100 * MS, false), 2);
}

TEST(waiter_polls_once_in_poll_interval_by_the_cheap_command) {
  redlock_options options = patient_options();
  fake_world *world = taken_world(true);
  (void)begin_acquire_of(world, KEY, &options);
  pass(world, 59 * SECONDS);
  assert_int_equal(world->nodes[0].sets, 1);
  assert_in_range(world->nodes[0].enqueues, 59 * 4 / 9, 59 * 54 / 100 + 1);
}

/* The nodes, or the client, have much to do: they once answered within 0 ms, and now take 20. */
TEST(late_reply_to_a_poll_makes_no_attempt) {
  redlock_options options = patient_options();
  fake_world *world = taken_world(true);
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  while (world->nodes[0].enqueues == 1) {
    fake_pass(world, MS);
  }
  fake_pass(world, 20 * MS);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  pass(world, SECONDS);
  assert_int_equal(world->nodes[0].sets, 1);
}

TEST(waiters_that_end_together_make_one_last_attempt) {
  enum { MANY = 50 };
  for (unsigned notifies = 0; notifies < 2; notifies++) {
    rl_lock *locks[MANY];
    redlock_options options = patient_options();
    options.wait_us = 100 * MS;
    fake_world *world = taken_world(notifies != 0);
    for (unsigned i = 0; i < MANY; i++) {
      locks[i] = begin_acquire_of(world, KEY, &options);
    }
    pass(world, 100 * MS);
    for (unsigned i = 0; i < MANY; i++) {
      assert_error(rl_lock_result(locks[i]), REDLOCK_E_TAKEN);
    }
    assert_int_equal(world->nodes[0].sets, 2);
    assert_in_range(world->nodes[0].enqueues, 0, 1);
  }
}

/* The attempt was not answered in time; what the queues say since then is newer. */
TEST(waiter_that_has_polled_reports_the_queues) {
  redlock_options options = patient_options();
  options.wait_us = 4 * SECONDS;
  fake_world *world = taken_world(true);
  rl_lock *lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  fake_pass(world, 50 * MS); /* The attempt times out. */
  assert_int_equal(lock->result, REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  (void)wait_for_end(world, lock);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_int_equal(world->nodes[0].sets, 1);
}

/*
 * A release without a notification, by another library, while a client waits for less than
 * poll_interval.
 */
TEST(last_attempt_finds_a_key_that_was_released_without_notification) {
  redlock_options options = counted(3);
  fake_world *world = taken_world(true);
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  pass(world, 300 * MS);
  remove_keys_unnoticed(world);
  (void)wait_for_end(world, lock);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->nodes[0].sets, 2);
}
