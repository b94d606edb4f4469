/*
 * When an acquire tries again, and when it gives up: wait, retry_count, retry_delay, retry_jitter.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease_world.h"
#include "lock/rl_round.h"

/*
 * Options of an acquire that tries again after |delay_us|: |count| times, or as often as it can if
 * that is 0, and for |wait_us|, unless that is 0.
 */
static redlock_options retrying(int count, redlock_duration delay_us, redlock_duration wait_us) {
  redlock_options options = {.retry_count = count,
                             .retry_delay_us = delay_us,
                             .retry_jitter_us = REDLOCK_DURATION_NONE,
                             .wait_us = wait_us};
  return options;
}

/* Begins an acquire of a key that another client holds on node 0. */
static void start_taken(const redlock_options *options) {
  let_other_client_hold(1, REDLOCK_NEVER);
  begin_acquire_of_new_lock(options);
}

/* The same in a new world of one node. */
static void begin_taken(const redlock_options *options) {
  world = fake_world_new(1);
  start_taken(options);
}

/* How many attempts are made when each is refused at once, and how long that takes. */
static unsigned run(void) {
  while (rl_lock_result(lock) == REDLOCK_PENDING) {
    fake_settle(world);
    if (rl_lock_result(lock) == REDLOCK_PENDING) {
      redlock_time next_us = rl_core_deadline(&world->core);
      assert_true(next_us != REDLOCK_NEVER);
      assert_true(next_us > world->now_us);
      world->now_us = next_us;
      fake_turn(world);
    }
  }
  return world->nodes[0].sets;
}

/* Node 0 gets the next SET when exactly |delay_us| have gone by. */
static void assert_asked_again_after(redlock_duration delay_us) {
  unsigned sets = world->nodes[0].sets;
  fake_pass(world, delay_us - 1);
  assert_int_equal(world->nodes[0].sets, sets);
  fake_pass(world, 1);
  assert_int_equal(world->nodes[0].sets, sets + 1);
}

TEST(retry_count_counts_the_attempts_after_the_first) {
  static const int counts[] = {REDLOCK_RETRIES_NONE, 0, 1, 2, 5};
  for (unsigned i = 0; i < COUNT_OF(counts); i++) {
    redlock_options options = {.retry_count = counts[i]};
    int retries = counts[i] == 0 ? 3 : counts[i] == REDLOCK_RETRIES_NONE ? 0 : counts[i];
    world = fake_world_new(1);
    world->jitter = 100 * MS; /* in the middle: the delay itself */
    start_taken(&options);
    assert_int_equal(run(), retries + 1);
    assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
    assert_int_equal(world->now_us, FAKE_START_US + (unsigned)retries * 200 * MS);
  }
}

TEST(pause_is_exact_to_the_microsecond) {
  redlock_options options = fake_once();
  options.retry_count = 1;
  options.retry_delay_us = 10000;
  options.retry_jitter_us = 300;
  static const struct {
    uint64_t random;
    redlock_duration delay_us;
  } cases[] = {{0, 9700}, {1, 9701}, {600, 10300}, {601, 9700}, {299, 9999}, {UINT64_MAX, 0}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_duration delay_us =
        cases[i].random == UINT64_MAX ? 9700 + UINT64_MAX % 601 : cases[i].delay_us;
    world = fake_world_new(1);
    world->jitter = cases[i].random;
    start_taken(&options);
    fake_settle(world);
    assert_int_equal(world->nodes[0].sets, 1);
    fake_pass(world, delay_us - 1);
    assert_int_equal(world->nodes[0].sets, 1);
    assert_int_equal(rl_core_deadline(&world->core), world->now_us + 1);
    fake_pass(world, 1);
    assert_int_equal(world->nodes[0].sets, 2);
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  }
}

TEST(pause_begins_when_the_attempt_fails) {
  redlock_options options = retrying(1, 10 * MS, 0);
  begin_taken(&options);
  world->now_us += 35 * MS;
  fake_settle(world);
  assert_asked_again_after(10 * MS);
}

/* Nodes that refuse at once must not be asked as fast as the processor goes. */
TEST(pause_lasts_at_least_1_ms) {
  redlock_options options = retrying(1, REDLOCK_DURATION_NONE, 0);
  begin_taken(&options);
  fake_settle(world);
  assert_asked_again_after(MS);
}

TEST(wait_0_overrides_retry_count) {
  redlock_options options = fake_once();
  options.retry_count = 7;
  options.wait_us = REDLOCK_DURATION_NONE;
  begin_taken(&options);
  assert_int_equal(run(), 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_int_equal(world->now_us, FAKE_START_US);
}

TEST(wait_0_still_has_the_budget_of_one_attempt) {
  redlock_options options = fake_once();
  options.wait_us = REDLOCK_DURATION_NONE;
  begin_taken(&options);
  fake_store_remove(&world->nodes[0].store, KEY);
  fake_pass(world, 99 * MS);
  fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(last_attempt_begins_5_ms_before_the_end_of_wait) {
  redlock_options options = retrying(0, 100 * MS, SECONDS);
  begin_taken(&options);
  unsigned attempts = run();
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  /* At 0, 100, ..., 900 and 995 ms. */
  assert_int_equal(attempts, 11);
  assert_int_equal(world->now_us, FAKE_START_US + 995 * MS);
}

TEST(retry_count_limits_the_attempts_within_wait_as_well) {
  redlock_options options = retrying(2, 100 * MS, SECONDS);
  begin_taken(&options);
  assert_int_equal(run(), 3);
  assert_int_equal(world->now_us, FAKE_START_US + 200 * MS);
}

TEST(pause_longer_than_wait_ends_for_one_last_attempt) {
  redlock_options options = retrying(0, 10 * SECONDS, 100 * MS);
  begin_taken(&options);
  world->now_us += 20 * MS;
  fake_settle(world);
  assert_asked_again_after(75 * MS);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
}

TEST(wait_clips_the_last_attempt) {
  redlock_options options = retrying(0, 200 * MS, 30 * MS);
  begin_taken(&options);
  fake_pass(world, 30 * MS - 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0), "no reply within 30 ms");
}

/*
 * The first attempt finds the key taken. Every 40 ms each node then answers the oldest of many
 * commands; or it answers nothing; or every command with an error.
 */
typedef enum behaviour { SLOW, SILENT, FAILING } behaviour;

static int result_of_waiting_for(behaviour of_nodes) {
  redlock_options options = retrying(0, 50 * MS, 400 * MS), once = fake_once();
  char name[] = "other-a";
  world = fake_world_new(3);
  start_taken(&options);
  for (unsigned node = 0; node < 3; node++) {
    (void)fake_reply(world, node, "$-1\r\n");
  }
  for (; name[6] <= 'p'; name[6]++) {
    rl_lock *other = fake_lock(world, name, &once);
    assert_error(rl_lock_acquire(other, world->now_us, NULL, false), REDLOCK_OK);
  }
  while (rl_lock_result(lock) == REDLOCK_PENDING) {
    fake_pass(world, 40 * MS);
    for (unsigned node = 0; node < 3; node++) {
      if (of_nodes == SLOW) {
        fake_answer(world, node);
      }
      while (of_nodes == FAILING && world->nodes[node].queued > 0) {
        (void)fake_reply(world, node, "-LOADING Redis is loading the dataset in memory\r\n");
      }
    }
  }
  int result = rl_lock_result(lock);
  return result;
}

TEST(slow_nodes_do_not_turn_taken_into_unavailable) {
  assert_error(result_of_waiting_for(SLOW), REDLOCK_E_TAKEN);
  assert_error(result_of_waiting_for(SILENT), REDLOCK_E_UNAVAILABLE);
  assert_error(result_of_waiting_for(FAILING), REDLOCK_E_UNAVAILABLE);
}

TEST(budget_too_short_for_a_retry_ends_the_acquire) {
  for (int more = 0; more <= 1; more++) {
    redlock_options options = retrying(0, 200 * MS, 20 * MS);
    begin_taken(&options);
    world->now_us += 14 * MS + (more ? 0 : 1);
    fake_answer(world, 0);
    if (more) {
      assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    } else {
      assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
    }
  }
}

/* The driver was held up before its turn, or in it, between the timers and the commands. */
TEST(acquire_after_its_budget_sends_nothing) {
  static const unsigned char entropy[RL_LOCK_ENTROPY] = {0};
  for (unsigned in_turn = 0; in_turn <= 1; in_turn++) {
    redlock_options options = {.retry_count = REDLOCK_RETRIES_NONE, .wait_us = 5 * MS};
    world = fake_world_new(1);
    lock = fake_lock(world, KEY, &options);
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
    world->now_us += 5 * MS;
    if (in_turn) {
      rl_core_send(&world->core, world->now_us, entropy, sizeof entropy);
      assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    }
    fake_turn(world);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_int_equal(world->nodes[0].sets, 0);
  }
}

TEST(budget_that_expires_in_the_pause_reports_the_last_attempt) {
  redlock_options options = retrying(0, 200 * MS, 20 * MS);
  begin_taken(&options);
  fake_settle(world);
  assert_int_equal(lock->phase, RL_PHASE_DELAY);
  world->now_us += 50 * MS; /* The process was held up. */
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_int_equal(world->nodes[0].sets, 1);
}

TEST(acquire_succeeds_after_failed_attempts) {
  redlock_options options = retrying(2, 200 * MS, 0);
  begin_taken(&options);
  fake_settle(world);
  fake_pass(world, 200 * MS);
  fake_settle(world);
  fake_store_remove(&world->nodes[0].store, KEY);
  fake_pass(world, 200 * MS);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + 400 * MS + 9898 * MS);
}

TEST(default_node_timeout_is_100_ms_or_a_tenth_of_the_ttl) {
  static const struct {
    redlock_duration ttl_us, node_timeout_us, expected_us;
  } cases[] = {{10 * SECONDS, 0, 100 * MS},  {SECONDS, 0, 100 * MS}, {900 * MS, 0, 90 * MS},
               {50 * MS, 0, 5 * MS},         {10 * SECONDS, 1, 1},   {50 * MS, 40 * MS, 40 * MS},
               {SECONDS, 700 * MS, 700 * MS}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_options options = fake_once();
    options.ttl_us = cases[i].ttl_us;
    options.node_timeout_us = cases[i].node_timeout_us;
    begin_taken(&options);
    fake_pass(world, cases[i].expected_us - 1);
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    fake_pass(world, 1);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  }
}

TEST(options_of_the_call_override_the_lock) {
  redlock_options call = fake_once();
  call.ttl_us = 3 * SECONDS;
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, &call, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(fake_answer(world, 0).ttl_ms, 3000);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(rl_lock_options(lock)->ttl_us, 10 * SECONDS);
}

TEST(acquire_without_entropy_sends_nothing) {
  world = fake_world_new(1);
  world->no_entropy = true;
  start_taken(NULL);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, 0);
  assert_int_equal(rl_core_deadline(&world->core), 0);
  world->no_entropy = false;
  fake_turn(world);
  assert_int_equal(world->nodes[0].sets, 1);
}

/* Three nodes, each of which takes 30 ms to answer, from the handshake on. */
static void far_away(void) {
  world = fake_world_new(3);
  rl_lock *first = fake_lock(world, "first", NULL);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].policy = FAKE_SILENT;
  }
  fake_begin_acquire(world, first);
  for (unsigned replies = 0; replies < 2; replies++) {
    fake_pass(world, 30 * MS);
    for (unsigned i = 0; i < 3; i++) {
      fake_reply(world, i, "+OK\r\n");
    }
  }
  assert_error(rl_lock_result(first), REDLOCK_OK);
}

/*
 * The fourth attempt would have 7 ms of the 100 that the caller can bear, and no majority has ever
 * answered within 30.
 */
TEST(attempt_without_time_to_succeed_is_not_made) {
  redlock_options options = retrying(0, MS, 100 * MS);
  far_away();
  redlock_time start_us = world->now_us;
  begin_acquire_of_new_lock(&options);
  for (unsigned attempts = 1; attempts <= 3; attempts++) {
    assert_int_equal(world->nodes[0].sets, 1 + attempts);
    world->now_us += 30 * MS;
    for (unsigned i = 0; i < 3; i++) {
      while (fake_next(world, i) == FAKE_RELEASE) {
        (void)fake_reply(world, i, ":0\r\n");
      }
      fake_reply(world, i, "$-1\r\n");
    }
    if (attempts < 3) {
      assert_int_equal(lock->phase, RL_PHASE_DELAY);
      fake_pass(world, MS);
    }
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_int_equal(world->now_us, start_us + 92 * MS);
  assert_int_equal(world->nodes[0].sets, 4);
}

/*
 * Two refuse when |left_us| of the budget are left; a second attempt is made if it can still win.
 */
static void check_that_a_second_attempt_is_made(redlock_duration left_us, bool made) {
  redlock_options options = retrying(0, MS, 50 * MS);
  unsigned sets = world->nodes[2].sets;
  begin_acquire_of_new_lock(&options);
  world->now_us += 50 * MS - left_us;
  for (unsigned i = 1; i < 3; i++) {
    fake_reply(world, i, "$-1\r\n");
  }
  assert_int_equal(rl_lock_result(lock), made ? REDLOCK_PENDING : REDLOCK_E_TAKEN);
  fake_pass(world, MS);
  assert_int_equal(world->nodes[2].sets - sets, made ? 2 : 1);
  rl_lock_free(lock, world->now_us);
}

TEST(last_attempt_allows_for_the_slowest_needed_node) {
  static const redlock_duration nearest_us[][3] = {
      {30 * MS, 20 * MS, 10 * MS}, {10 * MS, 20 * MS, 30 * MS}, {20 * MS, 30 * MS, 10 * MS}};
  for (unsigned i = 0; i < COUNT_OF(nearest_us); i++) {
    for (int made = 0; made <= 1; made++) {
      far_away();
      for (unsigned node = 0; node < 3; node++) {
        world->core.nodes[node]->link.fastest_us = nearest_us[i][node];
      }
      check_that_a_second_attempt_is_made(25 * MS + (made ? MS : 0), made);
    }
  }
}

/* A latency of an earlier connection does not count. */
TEST(disconnected_node_does_not_count_as_distant) {
  far_away();
  world->nodes[0].policy = FAKE_REFUSES;
  fake_break(world, 0, "gone");
  world->core.nodes[1]->link.fastest_us = 10 * MS;
  check_that_a_second_attempt_is_made(16 * MS, true);
}

/* The next SET would find the key that the one before has left. */
TEST(the_attempt_before_is_released_before_the_next_is_sent_whatever_room_there_is) {
  redlock_options options = retrying(1, MS, 0);
  world = fake_world_new(3);
  start_taken(&options);
  fake_reply(world, 1, "$-1\r\n");
  fake_reply(world, 2, "$-1\r\n");
  assert_int_equal(lock->phase, RL_PHASE_DELAY);
  assert_int_equal(world->nodes[0].queued, 1);
  rl_buffer_free(&world->core.nodes[0]->link.output);
  fake_pass(world, MS);
  assert_int_equal(world->nodes[0].queued, 3);
  assert_int_equal(fake_take(world, 0).verb, FAKE_SET);
  assert_int_equal(fake_take(world, 0).verb, FAKE_RELEASE);
  assert_int_equal(fake_take(world, 0).verb, FAKE_SET);
}

/* A driver that was held up between the timer and the launch: the attempt is not made any more. */
TEST(retry_without_time_is_not_sent) {
  static const unsigned char entropy[RL_LOCK_ENTROPY] = {0};
  redlock_options options = retrying(0, MS, 100 * MS);
  far_away();
  unsigned sets = world->nodes[0].sets;
  begin_acquire_of_new_lock(&options);
  world->now_us += 30 * MS;
  for (unsigned i = 0; i < 3; i++) {
    fake_reply(world, i, "$-1\r\n");
  }
  assert_int_equal(lock->phase, RL_PHASE_DELAY);
  world->now_us += MS;
  rl_core_advance(&world->core, world->now_us);
  assert_int_equal(lock->phase, RL_PHASE_SEND);
  world->now_us += 50 * MS; /* 19 ms are left, and no node answers within 30. */
  rl_core_send(&world->core, world->now_us, entropy, sizeof entropy);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  fake_turn(world);
  assert_int_equal(world->nodes[0].sets, sets + 1);
}

/* Otherwise the client would never notice that the nodes have become faster. */
TEST(first_attempt_is_always_made) {
  redlock_options options = fake_once();
  options.wait_us = 10 * MS;
  far_away();
  lock = fake_lock(world, KEY, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}
