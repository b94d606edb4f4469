/*
 * Acquiring while nodes are away, late, connecting or back again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"
#include "rl_test.h"

/* ttl 10 s, less 1 % and 2 ms. */
#define LEASE_US (9898 * MS)

static const char KEY[] = "orders:42";

static rl_lock *start(fake_world *world, const redlock_options *options) {
  rl_lock *lock = fake_lock(world, KEY, options);
  assert_non_null(lock);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_turn(world);
  return lock;
}

static rl_lock *start_once(fake_world *world) {
  redlock_options once = fake_once();
  return start(world, &once);
}

static void a_node_that_is_behind_gets_no_set(void **state) {
  (void)state;
  redlock_options once = fake_once();
  fake_world *world = fake_world_new(3);
  rl_lock *first = start_once(world);
  fake_answer(world, 0);
  fake_answer(world, 1);
  assert_error(rl_lock_result(first), REDLOCK_OK);
  rl_lock *second = fake_lock(world, "second", &once);
  world->now_us += 100 * MS; /* Exactly the node timeout is not behind yet. */
  assert_error(rl_lock_acquire(second, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[2].sets, 2);
  fake_answer(world, 0);
  fake_answer(world, 1);
  rl_lock *third = fake_lock(world, "third", &once);
  world->now_us += 1;
  assert_error(rl_lock_acquire(third, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[2].sets, 2);
  assert_int_equal(third->votes[2].vote, REDLOCK_VOTE_UNKNOWN);
  assert_string_equal(third->votes[2].error, "no reply for 100 ms");
  fake_answer(world, 0);
  fake_answer(world, 1);
  assert_error(rl_lock_result(third), REDLOCK_OK);
  assert_int_equal(third->lease->sent, 3); /* nodes 0 and 1 */
  assert_true(fake_world_end(world));
}

/* A driver needs a moment to read what has come: a short ttl must not make every node late. */
static void a_node_may_be_5_ms_behind_whatever_the_ttl(void **state) {
  (void)state;
  for (unsigned more = 0; more <= 1; more++) {
    redlock_options options = fake_once();
    options.ttl_us = 20 * MS; /* a node timeout of 2 ms */
    fake_world *world = fake_world_new(1);
    (void)start(world, &options);
    rl_lock *second = fake_lock(world, "second", &options);
    world->now_us += 5 * MS + more;
    assert_error(rl_lock_acquire(second, world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    assert_int_equal(world->nodes[0].sets, more ? 1 : 2);
    assert_true(fake_world_end(world));
  }
}

static void refused_nodes_decide_at_once(void **state) {
  (void)state;
  fake_world *world = fake_world_new(5);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].policy = FAKE_REFUSES;
  }
  rl_lock *lock = start_once(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(lock->votes[0].error, "Connection refused");
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_ERROR);
  assert_true(fake_world_end(world));
}

static void connecting_is_part_of_the_attempts_budget(void **state) {
  (void)state;
  fake_world *world = fake_world_new(3);
  world->nodes[0].policy = FAKE_HANGS;
  world->nodes[1].policy = FAKE_SILENT;
  rl_lock *lock = start_once(world);
  fake_answer(world, 2);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(lock->votes[0].error, "no connection within 100 ms");
  assert_string_equal(lock->votes[1].error, "no connection within 100 ms");
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_UNKNOWN);
  assert_true(fake_world_end(world));
}

static void a_node_that_comes_up_in_time_is_asked(void **state) {
  (void)state;
  fake_world *world = fake_world_new(3);
  world->nodes[0].policy = FAKE_SILENT;
  world->nodes[1].policy = FAKE_REFUSES;
  rl_lock *lock = start_once(world);
  fake_answer(world, 2);
  assert_int_equal(fake_next(world, 0), FAKE_SETNAME);
  fake_pass(world, 60 * MS);
  fake_reply(world, 0, "+OK\r\n");
  assert_int_equal(fake_next(world, 0), FAKE_SET);
  fake_pass(world, 39 * MS);
  fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US); /* not from when it came up */
  assert_true(fake_world_end(world));
}

/* The more nodes hold the key, the more of them may forget it. */
static void a_node_that_comes_up_after_the_decision_joins_the_lease(void **state) {
  (void)state;
  fake_world *world = fake_world_new(3);
  world->nodes[2].policy = FAKE_SILENT;
  rl_lock *lock = start_once(world);
  fake_answer(world, 0);
  fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  redlock_time deadline_us = lock->deadline_us;
  fake_pass(world, 500 * MS);
  fake_reply(world, 2, "+OK\r\n"); /* the handshake */
  assert_int_equal(fake_next(world, 2), FAKE_SET);
  assert_string_equal(world->nodes[2].queue[0].token, lock->lease->token);
  fake_answer(world, 2);
  assert_int_equal(lock->votes[2].vote, REDLOCK_VOTE_GRANTED);
  assert_int_equal(lock->deadline_us, deadline_us);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_true(fake_world_end(world));
}

/* |what| happens to the held lock before node 2 comes up: nothing must be set there any more. */
static void nothing_joins_a_lease_that_is_over(void **state) {
  (void)state;
  for (unsigned what = 0; what < 5; what++) {
    fake_world *world = fake_world_new(3);
    world->nodes[2].policy = FAKE_SILENT;
    rl_lock *lock = start_once(world);
    fake_answer(world, 0);
    fake_answer(world, 1);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    if (what == 0) {
      world->now_us = lock->deadline_us;
      rl_core_input(&world->core, 2, world->now_us, "+OK\r\n", 5);
    } else if (what == 1) {
      assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
    } else if (what == 2) {
      rl_lock_lapse(lock, world->now_us);
    } else if (what == 3) {
      rl_lock_free(lock, world->now_us);
    } else {
      rl_core_close(&world->core, world->now_us);
    }
    if (what != 0) {
      fake_reply(world, 2, "+OK\r\n");
    }
    world->nodes[2].policy = FAKE_ACCEPTS;
    fake_settle(world);
    assert_int_equal(world->nodes[2].sets, 0);
    assert_true(fake_world_end(world));
  }
}

static void a_dead_node_is_used_again_when_it_is_back(void **state) {
  (void)state;
  fake_world *world = fake_world_new(3);
  world->nodes[2].policy = FAKE_REFUSES;
  rl_lock *lock = start_once(world);
  fake_answer(world, 0);
  fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, 50 * MS); /* the first back-off */
  assert_int_equal(world->nodes[2].connections, 1);
  assert_error(fake_hold(world, lock), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, lock->lease->token), 3);
  assert_true(fake_world_end(world));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_node_that_is_behind_gets_no_set),
      cmocka_unit_test(a_node_may_be_5_ms_behind_whatever_the_ttl),
      cmocka_unit_test(refused_nodes_decide_at_once),
      cmocka_unit_test(connecting_is_part_of_the_attempts_budget),
      cmocka_unit_test(a_node_that_comes_up_in_time_is_asked),
      cmocka_unit_test(a_node_that_comes_up_after_the_decision_joins_the_lease),
      cmocka_unit_test(nothing_joins_a_lease_that_is_over),
      cmocka_unit_test(a_dead_node_is_used_again_when_it_is_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
