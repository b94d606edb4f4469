/*
 * When leases that keep themselves are extended, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_renew.h"

#include "kept.h"
#include "lock/rl_round.h"

#include "lease_world.h"

/* The lock is held, and auto-extended. */
static void keep(unsigned count) {
  redlock_options options = kept();
  open_world_with_lease(count, &options);
}

/* -------------------------------------------------------------------------- when (REN-1, REN-2) */

TEST(the_next_extend_is_due_a_third_of_the_ttl_after_the_last_that_was_confirmed) {
  keep(5);
  redlock_time start_us = FAKE_START_US;
  for (unsigned i = 0; i < 20; i++) {
    assert_int_equal(rl_core_deadline(&world->core), start_us + THIRD_US);
    fake_pass(world, start_us + THIRD_US - 1 - world->now_us);
    assert_int_equal(extends(world), 5 * i);
    fake_pass(world, 1);
    assert_int_equal(extends(world), 5 * (i + 1));
    start_us = world->now_us;
    fake_pass(world, 30 * MS); /* The next is counted from the start, not from the answers. */
    fake_settle(world);
    assert_int_equal(lock->deadline_us, start_us + LEASE_US);
    assert_error(reason_of(world, lock), REDLOCK_OK);
  }
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 5);
  assert_null(rl_loss_next(&world->core, world->now_us));
}

TEST(lock_without_auto_extend_is_not_extended) {
  redlock_options options = fake_once();
  open_world_with_lease(3, &options);
  assert_null(lock->renewal);
  assert_int_equal(rl_core_deadline(&world->core), REDLOCK_NEVER);
  fake_pass(world, 20 * SECONDS);
  assert_int_equal(extends(world), 0);
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED); /* the reason of each later question */
  assert_int_equal(since_of(world, lock), FAKE_START_US + LEASE_US);
}

TEST(extend_every_says_when_but_floods_nobody_and_leaves_a_third_of_the_validity) {
  static const struct {
    redlock_duration every_us, ttl_us;
    double drift_factor;
    redlock_duration expected_us;
  } cases[] = {
      {SECONDS, 10 * SECONDS, 0.01, SECONDS},
      {1, 10 * SECONDS, 0.01, 10 * MS}, /* A microsecond would flood the nodes. */
      {10 * MS + 1, 10 * SECONDS, 0.01, 10 * MS + 1},
      {1, 12 * MS, 0.01, 4 * MS},
      {9 * SECONDS, 10 * SECONDS, 0.01, LEASE_US - LEASE_US / 3},
      {REDLOCK_TTL_MAX_US, 10 * SECONDS, 0.01, LEASE_US - LEASE_US / 3},
      /* Of 10 s 998 ms are valid: a third of the ttl would be too late. */
      {0, 10 * SECONDS, 0.9, 998 * MS - 998 * MS / 3},
      {REDLOCK_DURATION_NONE, 10 * SECONDS, 0.01, THIRD_US},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_options options = kept();
    options.extend_every_us = cases[i].every_us;
    options.ttl_us = cases[i].ttl_us;
    options.drift_factor = cases[i].drift_factor;
    open_world_with_lease(1, &options);
    assert_int_equal(rl_core_deadline(&world->core), FAKE_START_US + cases[i].expected_us);
  }
}

TEST(leases_taken_together_are_extended_apart) {
  redlock_options options = kept();
  redlock_duration earliest_us = REDLOCK_NEVER, latest_us = 0;
  for (unsigned i = 1; i <= 100; i++) {
    world = fake_world_new(1);
    lock = fake_lock(world, KEY, &options);
    world->jitter = i * 0x9e3779b97f4a7c15u;
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    redlock_duration due_us = rl_core_deadline(&world->core) - FAKE_START_US;
    assert_true(due_us >= THIRD_US / 4 && due_us <= THIRD_US);
    earliest_us = due_us < earliest_us ? due_us : earliest_us;
    latest_us = due_us > latest_us ? due_us : latest_us;
    wait_for_core(world);
    fake_settle(world);
    redlock_duration next_us = rl_core_deadline(&world->core) - world->now_us; /* drawn anew */
    assert_true(next_us != due_us && next_us >= THIRD_US - EIGHTH_US && next_us <= THIRD_US);
    assert_true(fake_world_end(world));
  }
  assert_true(latest_us - earliest_us > THIRD_US / 2);
}

TEST(failed_automatic_extend_is_repeated_sooner_near_deadline) {
  keep(3);
  unsigned tries = 0;
  refuse_all(world);
  fake_pass(world, THIRD_US);
  redlock_time tried_us = world->now_us;
  while (rl_lock_remaining(lock, world->now_us) > 0) {
    redlock_duration left_us = lock->deadline_us - tried_us;
    redlock_duration pause_us = left_us / 4 > 5 * MS ? left_us / 4 : 5 * MS;
    redlock_time due_us = tried_us + (pause_us < left_us ? pause_us : left_us);
    assert_false(rl_lock_is_in_flight(lock));
    assert_int_equal(lock->timer.due_us, due_us);
    while (world->now_us < due_us) { /* The core looks at its connections meanwhile. */
      wait_for_core(world);
    }
    tried_us = due_us;
    tries++;
  }
  assert_true(tries > 15 && tries < 40);
  assert_int_equal(world->now_us, FAKE_START_US + LEASE_US);
  assert_int_equal(extends(world), 0);
}

TEST(recovered_nodes_save_lease) {
  keep(3);
  refuse_all(world);
  while (world->now_us < lock->deadline_us - 50 * MS) {
    wait_for_core(world);
  }
  assert_error(reason_of(world, lock), REDLOCK_E_UNAVAILABLE);
  accept_all(world);
  while (world->now_us < FAKE_START_US + LEASE_US) {
    wait_for_core(world);
    fake_settle(world);
  }
  assert_true(rl_lock_remaining(lock, world->now_us) > 9 * SECONDS);
  assert_error(reason_of(world, lock), REDLOCK_OK);
}

/* ----------------------------------------------------------------------------- max_hold (REN-4) */

TEST(automatic_extend_ends_at_max_hold) {
  redlock_options options = kept();
  options.max_hold_us = 25 * SECONDS;
  open_world_with_lease(3, &options);
  redlock_time end_us = FAKE_START_US + 25 * SECONDS;
  uint64_t last_ms = 0;
  while (rl_lock_remaining(lock, world->now_us) > 0) {
    wait_for_core(world);
    while (world->nodes[0].queued > 0) {
      last_ms = fake_answer(world, 0).ttl_ms;
      assert_true(world->now_us + last_ms * MS <= end_us);
    }
    fake_settle(world);
    assert_true(lock->deadline_us <= end_us);
  }
  /* It lasted until then, less the allowance for drift. */
  assert_true(last_ms < 10000 && world->now_us <= end_us);
  assert_true(world->now_us >= end_us - 102 * MS);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_error(reason_of(world, lock), REDLOCK_E_MAX_HOLD);
  assert_int_equal(since_of(world, lock), world->now_us);
  unsigned before = extends(world);
  for (unsigned i = 0; i < 20; i++) {
    fake_pass(world, SECONDS);
    fake_settle(world);
  }
  assert_int_equal(extends(world), before);
}

/* The result is the same before the timer. */
TEST(expiry_at_max_hold_reports_max_hold) {
  redlock_options options = kept();
  options.max_hold_us = 10 * SECONDS;
  open_world_with_lease(1, &options);
  world->now_us += LEASE_US;
  assert_error(reason_of(world, lock), REDLOCK_E_MAX_HOLD);
  assert_int_equal(since_of(world, lock), FAKE_START_US + LEASE_US);
}

/* The in-flight limit delays it. */
TEST(delayed_extend_asks_for_the_rest_of_max_hold) {
  redlock_options options = kept();
  options.max_hold_us = 12 * SECONDS;
  open_world_with_lease(1, &options);
  world->core.pacer.in_flight_limit = 1;
  world->core.pacer.command_us = REDLOCK_SECONDS;
  rl_lock *other = fake_lock(world, "other", NULL);
  fake_pass(world, THIRD_US - 10 * MS);
  fake_begin_acquire(world, other);
  fake_pass(world, 10 * MS);
  assert_int_equal(lock->phase, RL_PHASE_SEND);
  fake_pass(world, 50 * MS);
  assert_int_equal(fake_answer(world, 0).verb, FAKE_SET);
  fake_command command = fake_answer(world, 0);
  assert_int_equal(command.verb, FAKE_EXTEND);
  redlock_duration left_us = FAKE_START_US + 12 * SECONDS - world->now_us;
  assert_int_equal(command.ttl_ms, left_us / MS);
}

/* --------------------------------------------------------------- operations of the user (REN-3) */

/* The automatic extend is in LAUNCH, or its round is out. */
static void extending(unsigned launched) {
  keep(3);
  world->now_us += THIRD_US;
  if (launched) {
    fake_turn(world);
  } else {
    rl_core_advance(&world->core, world->now_us);
  }
  assert_int_equal(lock->phase, launched ? RL_PHASE_ROUND : RL_PHASE_SEND);
  assert_true(lock->automatic);
  assert_error(rl_lock_result(lock), REDLOCK_OK); /* of the acquire */
  assert_false(rl_lock_is_busy(lock));
}

TEST(release_ends_automatic_extend) {
  for (unsigned launched = 0; launched <= 1; launched++) {
    extending(launched);
    assert_error(rl_lock_release(lock, world->now_us, true), REDLOCK_OK);
    assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
    assert_error(rl_lock_result(lock), REDLOCK_PENDING);
    fake_settle(world);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(fake_keys(world, KEY), 0);
    assert_ptr_equal(rl_core_next_ended(&world->core), lock);
    assert_null(rl_core_next_ended(&world->core));
    assert_int_equal(extends(world), launched ? 3 : 0);
  }
}

TEST(extend_of_user_ends_automatic_extend) {
  for (unsigned launched = 0; launched <= 1; launched++) {
    extending(launched);
    assert_error(rl_lock_extend(lock, world->now_us, 20 * SECONDS, true), REDLOCK_OK);
    assert_error(rl_lock_result(lock), REDLOCK_PENDING);
    fake_turn(world);
    if (launched) {
      /* The answers to the automatic extend do not count for this one. */
      for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake_answer(world, i).ttl_ms, 10000);
      }
      assert_error(rl_lock_result(lock), REDLOCK_PENDING);
      assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
    }
    fake_settle(world);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(lock->deadline_us, world->now_us + 20 * SECONDS - 202 * MS);
    assert_ptr_equal(rl_core_next_ended(&world->core), lock);
  }
}

TEST(cancel_and_wrong_arguments_keep_automatic_extend) {
  for (unsigned launched = 0; launched <= 1; launched++) {
    redlock_options wrong = {.ttl_us = 1};
    char message[512];
    extending(launched);
    rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_error(rl_lock_extend(lock, world->now_us, 1, false), REDLOCK_E_INVALID);
    assert_non_null(strstr(rl_lock_message(lock, message, sizeof message), "ttl_us must be"));
    assert_error(rl_lock_acquire(lock, world->now_us, &wrong, false), REDLOCK_E_HELD);
    fake_settle(world);
    assert_int_equal(lock->deadline_us, world->now_us + LEASE_US);
  }
}

TEST(lock_is_freed_during_automatic_extend) {
  for (unsigned launched = 0; launched <= 1; launched++) {
    extending(launched);
    rl_lock_free(lock, world->now_us);
    fake_settle(world);
    assert_int_equal(fake_keys(world, KEY), 0);
    assert_int_equal(world->core.attempts.live, 0);
    assert_int_equal(rl_core_deadline(&world->core), REDLOCK_NEVER);
  }
}

/* A user's extend fails for a reason; the automatic ones that follow do well. */
TEST(automatic_extend_keeps_result_of_user) {
  char before[512], after[512];
  keep(3);
  begin_extend(0);
  (void)fake_answer(world, 0);
  for (unsigned i = 1; i < 3; i++) {
    (void)fake_reply(world, i, "-OOM command not allowed\r\n");
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  (void)rl_lock_message(lock, before, sizeof before);
  assert_non_null(strstr(before, "OOM"));
  for (unsigned i = 0; i < 3; i++) {
    wait_for_core(world);
    assert_true(lock->automatic);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_string_equal(rl_lock_message(lock, after, sizeof after), before);
    fake_settle(world);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_E_UNAVAILABLE);
    assert_string_equal(rl_lock_message(lock, after, sizeof after), before);
    assert_int_equal(rl_result_votes(lock)[0].vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(rl_result_votes(lock)[1].vote, REDLOCK_VOTE_ERROR);
    assert_string_equal(rl_round_reason(lock, 0), "");
    assert_non_null(strstr(rl_round_reason(lock, 2), "OOM"));
    assert_true(rl_lock_remaining(lock, world->now_us) > 9 * SECONDS);
  }
}

TEST(unfetched_acquire_keeps_its_position_in_queue) {
  redlock_options options = kept();
  world = fake_world_new(3);
  lock = fake_lock(world, KEY, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, true), REDLOCK_OK);
  fake_settle(world);
  fake_pass(world, THIRD_US);
  assert_int_equal(extends(world), 3);
  fake_settle(world);
  assert_ptr_equal(rl_core_next_ended(&world->core), lock);
  assert_null(rl_core_next_ended(&world->core));
  assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_OK);
}

/*
 * EXT-4 holds for automatic extends: a node that has lost the key gets it back, after the majority.
 */
TEST(node_that_lost_key_is_healed) {
  keep(3);
  fake_store_remove(&world->nodes[2].store, KEY);
  fake_pass(world, THIRD_US);
  (void)fake_answer(world, 2);
  assert_int_equal(world->nodes[2].sets, 1);
  (void)fake_answer(world, 0);
  assert_int_equal(world->nodes[2].sets, 1);
  (void)fake_answer(world, 1);
  assert_int_equal(world->nodes[2].sets, 2);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
}

/* -------------------------------------------------------------------------------------- options */

TEST(options_of_an_acquire_turn_auto_extend_on_and_off) {
  redlock_options call = kept(), off = fake_once();
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL);
  assert_null(lock->renewal);
  assert_error(rl_lock_acquire(lock, world->now_us, &call, false), REDLOCK_OK);
  fake_settle(world);
  assert_non_null(lock->renewal);
  wait_for_core(world);
  assert_int_equal(extends(world), 1);
  fake_settle(world);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  off.auto_extend = REDLOCK_NO;
  assert_error(rl_lock_acquire(lock, world->now_us, &off, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(rl_core_deadline(&world->core), REDLOCK_NEVER);
  fake_pass(world, 20 * SECONDS);
  assert_int_equal(extends(world), 1);
  assert_null(rl_loss_next(&world->core, world->now_us));
}

/* ----------------------------------------------------------------------------------------- many */

TEST(ten_thousand_leases_are_extended_in_time) {
  enum { LEASES = 10000 };
  redlock_options options = kept();
  world = fake_world_new(1);
  rl_lock **locks = calloc(LEASES, sizeof *locks);
  assert_non_null(locks);
  for (unsigned i = 0; i < LEASES; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "%u", i);
    locks[i] = fake_lock(world, key, &options);
    world->jitter = i * 0x9e3779b97f4a7c15u;
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    (void)fake_take(world, 0);
    fake_deliver(world, 0, "+OK\r\n");
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
  }
  /* Two ttls. */
  while (world->now_us < FAKE_START_US + 20 * SECONDS) {
    fake_pass(world, 10 * MS);
    while (world->nodes[0].queued > 0) {
      (void)fake_take(world, 0);
      fake_deliver(world, 0, ":1\r\n");
    }
  }
  for (unsigned i = 0; i < LEASES; i++) {
    assert_true(rl_lock_remaining(locks[i], world->now_us) > 6 * SECONDS);
  }
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_true(world->nodes[0].extends >= 5 * LEASES && world->nodes[0].extends <= 8 * LEASES);
  free(locks);
}
