/*
 * What attempts leave on nodes: where a release is due, when, and for how long.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease_world.h"

/* ----------------------------------------------------------------------------- what was refused */

TEST(node_that_refused_set_gets_no_release) {
  world = fake_world_new(3);
  let_other_client_hold(3, REDLOCK_NEVER);
  begin_single_attempt();
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  fake_pass(world, SECONDS);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].releases, 0);
  }
  assert_int_equal(world->core.releases->count, 0);
}

/* A node answers -LOADING and its kin in place of executing; a proxy may fail after that. */
TEST(error_before_execution_leaves_nothing_to_release) {
  static const struct {
    const char *reply;
    unsigned releases;
  } cases[] = {
      {"-LOADING Redis is loading the dataset in memory\r\n", 0},
      {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", 0},
      {"-READONLY You can't write against a read only replica.\r\n", 0},
      {"-NOAUTH Authentication required.\r\n", 0},
      {"-NOPERM this user has no permissions\r\n", 0},
      {"-MISCONF Redis is configured to save RDB snapshots\r\n", 0},
      {"-NOREPLICAS Not enough good replicas to write.\r\n", 0},
      {"-BUSY Redis is busy running a script.\r\n", 0},
      {"-MASTERDOWN Link with MASTER is down\r\n", 0},
      {"-MOVED 3999 127.0.0.1:6381\r\n", 0},
      {"-ERR upstream timed out\r\n", 1},
      {"-LOADINGS\r\n", 1},
      {"-BUSYNESS\r\n", 1},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    open_world_and_begin_single_attempt(1);
    (void)fake_reply(world, 0, cases[i].reply);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    fake_pass(world, SECONDS);
    assert_int_equal(world->nodes[0].releases, cases[i].releases);
  }
}

/* The node that is still to answer may refuse as well. */
TEST(release_waits_for_answer_to_set) {
  for (unsigned granted = 0; granted < 2; granted++) {
    world = fake_world_new(3);
    let_other_client_hold(2, REDLOCK_NEVER);
    begin_single_attempt();
    assert_error(let_majority_answer(), REDLOCK_E_TAKEN);
    assert_int_equal(world->nodes[2].releases, 0);
    (void)fake_reply(world, 2, granted != 0 ? "+OK\r\n" : "$-1\r\n");
    assert_int_equal(world->nodes[2].releases, granted);
    fake_pass(world, SECONDS);
    assert_int_equal(world->nodes[2].releases, granted);
  }
}

/* It may have set the key for all that is known, and nothing else is to come. */
TEST(broken_answer_is_not_waited_for) {
  world = fake_world_new(3);
  let_other_client_hold(2, REDLOCK_NEVER);
  begin_single_attempt();
  assert_error(let_majority_answer(), REDLOCK_E_TAKEN);
  (void)fake_reply(world, 2, ":7\r\n");
  assert_int_equal(world->nodes[2].releases, 1);
  /* Nor that it has not read the SET yet: what finds nothing is repeated. */
  (void)fake_reply(world, 2, ":0\r\n");
  fake_pass(world, RL_RELEASE_RETRY_US);
  assert_int_equal(world->nodes[2].releases, 2);
}

/* Its release was given up when no key could exist any more. */
TEST(broken_answer_after_the_last_release_is_released_again) {
  redlock_options options = fake_once();
  options.ttl_us = 400 * MS;
  world = fake_world_new(3);
  let_other_hold(2, REDLOCK_NEVER);
  start(&options);
  assert_error(majority_answers(), REDLOCK_E_TAKEN);
  fake_pass(world, 2 * SECONDS);
  unsigned releases = world->nodes[2].releases;
  (void)fake_reply(world, 2, ":7\r\n");
  fake_settle(world);
  assert_true(world->nodes[2].releases > releases);
}

/* A release that the node refused for the moment, and that is to be repeated in half a second. */
static void postponed(void) {
  open_world_and_begin_single_attempt(3);
  fake_settle(world);
  begin_release();
  (void)fake_reply(world, 0, "-LOADING Redis is loading the dataset in memory\r\n");
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->nodes[0].releases, 1);
}

TEST(release_is_not_repeated_early_for_another_node) {
  postponed();
  fake_break(world, 2, "gone");
  fake_pass(world, 200 * MS);
  assert_int_equal(world->nodes[2].connections, 2);
  fake_pass(world, RL_RELEASE_RETRY_US - 200 * MS - 1);
  assert_int_equal(world->nodes[0].releases, 1);
  fake_pass(world, 1);
  assert_int_equal(world->nodes[0].releases, 2);
}

/* The processor would be busy with it until the node is back. */
TEST(a_release_that_is_due_on_a_node_that_is_gone_is_not_looked_at_all_the_time) {
  postponed();
  world->nodes[0].policy = FAKE_REFUSES;
  fake_break(world, 0, "gone");
  fake_pass(world, RL_RELEASE_RETRY_US + 50 * MS);
  assert_int_equal(world->core.releases->count, 1);
  fake_turn(world);
  assert_true(rl_core_deadline(&world->core) > world->now_us);
}

/* The process was stopped: its time is up, and all answers are there, but are read one by one. */
TEST(release_waits_until_replies_are_read) {
  static const char TAKEN[] = "$-1\r\n";
  for (unsigned answered = 2; answered <= 3; answered++) {
    world = fake_world_new(3);
    let_other_client_hold(2, REDLOCK_NEVER);
    begin_single_attempt();
    world->now_us = lock->round_deadline_us + 1;
    for (unsigned i = 0; i < answered; i++) {
      (void)fake_take(world, i);
      rl_core_input(&world->core, i, world->now_us, TAKEN, sizeof TAKEN - 1);
    }
    assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
    fake_turn(world);
    assert_int_equal(world->nodes[2].queued, answered == 2 ? 2 : 0); /* The SET, and a release. */
  }
}

/* Or its own key, of the attempt before, would stand in the way of the SET. */
TEST(next_attempt_sends_former_release_first) {
  world = fake_world_new(3);
  redlock_options options = fake_once();
  options.retry_count = 1;
  options.retry_delay_us = 10 * MS;
  options.retry_jitter_us = 0;
  let_other_client_hold(2, REDLOCK_NEVER);
  begin_acquire_of_new_lock(&options);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  fake_store_remove(&world->nodes[0].store, KEY);
  fake_pass(world, 10 * MS);
  assert_int_equal(fake_answer(world, 2).verb, FAKE_SET);
  assert_int_equal(fake_answer(world, 2).verb, FAKE_RELEASE);
  assert_int_equal(fake_answer(world, 2).verb, FAKE_SET);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* A driver that is about to do nothing for long, or a client that is closed. */
TEST(rest_sends_releases_that_wait_for_answer) {
  for (unsigned how = 0; how < 3; how++) {
    world = fake_world_new(3);
    let_other_client_hold(2, REDLOCK_NEVER);
    begin_single_attempt();
    (void)fake_answer(world, 0);
    (void)fake_answer(world, 1);
    if (how < 2) {
      rl_buffer_free(&world->core.nodes[2]->link.output); /* There is no room but what is made. */
    }
    if (how == 0) {
      rl_core_before_pause(&world->core, world->now_us);
    } else if (how == 1) {
      rl_core_close(&world->core, world->now_us);
    } else {
      rl_lock_free(lock, world->now_us);
    }
    size_t length;
    assert_non_null(rl_core_output(&world->core, 2, &length));
    fake_turn(world);
    assert_int_equal(world->nodes[2].releases, 1);
  }
}

/* A former answer must not count twice: the node never had the key. */
TEST(release_of_bare_majority_asks_that_majority) {
  world = fake_world_new(3);
  fake_store_put(&world->nodes[2].store, KEY, OTHER, REDLOCK_NEVER);
  begin_single_attempt();
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(world->nodes[0].releases, 1);
  assert_int_equal(world->nodes[1].releases, 1);
  assert_int_equal(world->nodes[2].releases, 0);
  assert_int_equal(lock->votes[2].vote, REDLOCK_VOTE_TAKEN);
}

/* --------------------------------------------------------------------------- uncertain commands */

/* The connection goes silent with a SET on it; the node reads the SET after the release. */
TEST(set_that_is_read_late_is_released_again) {
  world = fake_world_new(1);
  char reply[FAKE_REPLY_MAX];
  begin_single_attempt();
  fake_command set = fake_take(world, 0);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_pass(world, 2900 * MS);
  assert_int_equal(world->nodes[0].connections, 2);
  redlock_time ended_us = world->now_us;
  assert_int_equal(fake_answer(world, 0).verb, FAKE_RELEASE); /* 0: there is nothing */
  fake_store_execute(&world->nodes[0].store, world->now_us, &set, reply);
  assert_int_equal(fake_keys(world, KEY), 1);
  assert_false(rl_core_has_unanswered(&world->core));
  fake_pass(world, RL_RELEASE_RETRY_US - 1);
  assert_int_equal(fake_keys(world, KEY), 1);
  fake_pass(world, 1);
  assert_int_equal(fake_answer(world, 0).verb, FAKE_RELEASE);
  assert_int_equal(fake_keys(world, KEY), 0);
  /* It has had the key: there is none to come any more. */
  fake_pass(world, 60 * SECONDS);
  assert_int_equal(world->nodes[0].queued, 0);
  assert_int_equal(world->core.releases->count, 0);
  assert_true(world->now_us > ended_us);
}

/* As long as the key could live, and each time after twice as long. */
TEST(release_of_uncertain_set_is_repeated_with_growing_delay) {
  open_world_and_begin_single_attempt(1);
  (void)fake_take(world, 0);
  fake_pass(world, 3 * SECONDS);
  unsigned releases = 0;
  for (unsigned i = 0; i < 300; i++) {
    while (world->nodes[0].queued > 0) {
      releases += fake_answer(world, 0).verb == FAKE_RELEASE;
    }
    fake_pass(world, 100 * MS);
  }
  assert_int_equal(releases,
                   6); /* at once, and 0.5, 1, 2, 4 and 8 s after the connection has ended */
  assert_int_equal(world->core.releases->count, 0);
}

/* An extend creates nothing. */
TEST(uncertain_extend_prolongs_life_of_key) {
  open_world_and_begin_single_attempt(1);
  fake_settle(world);
  begin_extend(0);
  fake_pass(world, 3 * SECONDS);
  assert_int_equal(world->nodes[0].connections, 2);
  assert_error(release(lock), REDLOCK_OK);
  fake_pass(world, 60 * SECONDS);
  assert_int_equal(world->nodes[0].releases, 1);
}

/* ttl 10 s, extended each second, and all connections go silent: the lease outlives them. */
TEST(lease_of_ten_seconds_outlives_silent_connection) {
  open_world_and_begin_single_attempt(1);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  for (unsigned second = 0; second < 12; second++) {
    bool silent = world->nodes[0].connections == 1;
    assert_true(rl_lock_remaining(lock, world->now_us) > 5 * SECONDS);
    begin_extend(0);
    if (!silent) {
      fake_settle(world);
      assert_error(rl_lock_result(lock), REDLOCK_OK);
    }
    fake_pass(world, SECONDS);
  }
  assert_int_equal(world->nodes[0].connections, 2);
}
