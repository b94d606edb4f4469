/*
 * Extending, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_round.h"

#include "lease_world.h"

/* An extend shortens no key either, and a healed key lives to the old deadline. */
TEST(extend_never_shortens_lease) {
  open_world_with_lease(3, NULL);
  fake_store_remove(&world->nodes[0].store, KEY);
  assert_error(extend(lock, SECONDS), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(key_expiry(i), FAKE_START_US + 10 * SECONDS);
  }
}

/* For every N: the extend waits for a majority only. */
TEST(majority_decides_extend) {
  for (unsigned count = 1; count <= FAKE_NODES_MAX; count++) {
    open_world_with_lease(count, NULL);
    world->now_us += SECONDS;
    begin_extend(0);
    for (unsigned i = 0; i <= count / 2; i++) {
      assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
      (void)fake_answer(world, i);
    }
    assert_error(rl_lock_result(lock), REDLOCK_OK);
  }
}

TEST(failed_extend_changes_nothing) {
  open_world_with_lease(3, NULL);
  world->now_us += SECONDS;
  begin_extend(0);
  fake_reply(world, 0, "-MISCONF Errors writing to disk\r\n");
  fake_reply(world, 1, "-MISCONF Errors writing to disk\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, lease_token), 3);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].releases, 0);
  }
  world->now_us += SECONDS;
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + 2 * SECONDS + LEASE_US);
  assert_string_equal(rl_attempt_token(lock->lease), lease_token);
}

/* The denials of a majority prove that another client may have the lock. */
TEST(lease_that_majority_denies_ends_at_once) {
  open_world_with_lease(5, NULL);
  let_other_client_hold(3, REDLOCK_NEVER);
  begin_extend(0);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_E_LOST);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, lease_token), 0); /* what was left is released */
  assert_int_equal(fake_holders(world, KEY, OTHER), 3);
  assert_int_equal(world->core.attempts.live, 0);
}

TEST(lost_lock_reports_lost_until_released_or_acquired) {
  char message[256];
  open_world_with_lease(1, NULL);
  fake_store_remove(&world->nodes[0].store, KEY);
  assert_error(extend(lock, 0), REDLOCK_E_LOST);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_LOST);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_LOST);
  assert_string_equal(rl_lock_message(lock, message, sizeof message),
                      "'orders:42' is lost: 1 of 1 nodes no longer have its token: 10.0.0.1:6379");
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_NOT_HELD);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_store_remove(&world->nodes[0].store, KEY);
  assert_error(extend(lock, 0), REDLOCK_E_LOST);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
}

/* Denials after the end of the round still end the lease. */
TEST(late_denials_end_lease) {
  for (unsigned cancelled = 0; cancelled <= 1; cancelled++) {
    char before[256];
    char after[256];
    open_world_with_lease(3, NULL);
    fake_store_remove(&world->nodes[0].store, KEY);
    fake_store_put(&world->nodes[2].store, KEY, OTHER, REDLOCK_NEVER);
    begin_extend(0);
    (void)fake_answer(world, 0);
    if (cancelled) {
      rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
    } else {
      fake_pass(world, 100 * MS);
    }
    int result = rl_lock_result(lock);
    assert_error(result, cancelled ? REDLOCK_E_CANCELLED : REDLOCK_E_UNAVAILABLE);
    (void)rl_lock_message(lock, before, sizeof before);
    assert_true(rl_lock_remaining(lock, world->now_us) > 0);
    (void)fake_answer(world, 2);
    assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
    assert_error(rl_lock_result(lock), result); /* The result stands. */
    assert_string_equal(rl_lock_message(lock, after, sizeof after), before);
    fake_settle(world);
    assert_int_equal(fake_holders(world, KEY, lease_token), 0);
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_LOST);
    assert_string_equal(rl_lock_message(lock, after, sizeof after),
                        "'orders:42' is lost: 2 of 3 nodes no longer have its token: "
                        "10.0.0.1:6379, 10.0.0.3:6379");
  }
}

/* Two nodes deny in round 1, and two more in round 2: no round has a majority of the five. */
TEST(denials_of_two_rounds_do_not_add_up) {
  open_world_with_lease(5, NULL);
  begin_extend(0);
  fake_reply(world, 0, ":0\r\n");
  fake_reply(world, 1, ":0\r\n");
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  begin_extend(0);
  fake_reply(world, 2, ":0\r\n"); /* of round 1 */
  fake_reply(world, 2, ":0\r\n");
  fake_reply(world, 3, ":0\r\n"); /* of round 1 */
  fake_reply(world, 3, ":0\r\n");
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
}

TEST(key_of_another_type_is_denied) {
  open_world_with_lease(1, NULL);
  fake_store_put(&world->nodes[0].store, KEY, "", REDLOCK_NEVER);
  begin_extend(0);
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_E_LOST);
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_TAKEN);
}

/* ----------------------------------------------------------------------------- the old deadline */

TEST(majority_at_old_deadline_does_not_count) {
  for (unsigned late = 0; late <= 1; late++) {
    redlock_options options = fake_once();
    options.node_timeout_us = 5 * SECONDS;
    open_world_with_lease(3, &options);
    world->now_us = lock->deadline_us - 10 * MS;
    begin_extend(0);
    (void)fake_answer(world, 0);
    world->now_us = FAKE_START_US + LEASE_US - 1 + late;
    fake_reply(world, 1, ":1\r\n");
    if (late) {
      assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
      assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
      assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
    } else {
      assert_error(rl_lock_result(lock), REDLOCK_OK);
      assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US - 10 * MS + LEASE_US);
    }
  }
}

TEST(round_of_extend_ends_at_old_deadline) {
  open_world_with_lease(3, NULL);
  world->now_us = lock->deadline_us - 10 * MS;
  begin_extend(0);
  fake_pass(world, 10 * MS - 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
}

TEST(confirmations_after_round_revive_no_lease) {
  open_world_with_lease(3, NULL);
  world->now_us = lock->deadline_us - 10 * MS;
  begin_extend(0);
  fake_pass(world, 10 * MS);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
  assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
}

TEST(expired_lease_is_not_extended) {
  open_world_with_lease(1, NULL);
  world->now_us = lock->deadline_us;
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_EXPIRED);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
  fake_turn(world);
  assert_int_equal(world->nodes[0].extends, 0);
}

TEST(lease_that_expires_before_the_round_is_not_extended) {
  open_world_with_lease(1, NULL);
  world->now_us = lock->deadline_us - 1;
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  world->now_us++;
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
  assert_int_equal(world->nodes[0].extends, 0);
}

TEST(extend_needs_lease) {
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_NOT_HELD);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_extend(lock, world->now_us, 999, false), REDLOCK_E_INVALID);
  assert_error(rl_lock_extend(lock, world->now_us, REDLOCK_NEVER, false), REDLOCK_E_INVALID);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_NOT_HELD);
}

/* ----------------------------------------------------------------------------------- the rounds */

TEST(late_confirmation_does_not_count_in_next_round) {
  open_world_with_lease(3, NULL);
  world->now_us += SECONDS;
  begin_extend(0);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  begin_extend(0);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(fake_answer(world, i).verb, FAKE_EXTEND); /* of round 1 */
  }
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(lock->quorum.granted, 0);
  assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
  assert_error(let_majority_answer(), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + 1100 * MS + LEASE_US);
}

TEST(late_confirmation_does_not_revive_failed_extend) {
  open_world_with_lease(3, NULL);
  world->now_us += SECONDS;
  begin_extend(0);
  fake_pass(world, 100 * MS);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_UNKNOWN);
}

TEST(extend_keeps_drift_and_lock_delay_of_its_acquire) {
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL);
  redlock_options options = fake_once();
  options.drift_factor = 0.2;
  options.lock_delay_us = 30 * SECONDS;
  assert_error(rl_lock_acquire(lock, world->now_us, &options, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 8 * SECONDS - 2 * MS);
  assert_error(rl_lock_extend(lock, world->now_us, 100 * SECONDS, false), REDLOCK_OK);
  fake_turn(world);
  fake_command command = fake_answer(world, 0);
  assert_int_equal(command.verb, FAKE_EXTEND);
  assert_int_equal(command.ttl_ms, 130000);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 80 * SECONDS - 2 * MS);
}

/* The error makes the core send the script; the second reply comes before that. */
TEST(reply_that_precedes_its_command_is_no_vote) {
  open_world_with_lease(1, NULL);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  redlock_duration left_us = rl_lock_remaining(lock, world->now_us);
  assert_error(rl_lock_extend(lock, world->now_us, 100 * SECONDS, false), REDLOCK_OK);
  fake_turn(world);
  fake_command command = fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n:1\r\n");
  assert_false(command.by_text);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), left_us);
}

/*
 * Lets the node answer with |text|, byte by byte: silence would end its connection. Returns the
 * rest of the text after that time.
 */
static const char *trickle(const char *text, redlock_duration duration_us) {
  redlock_time end_us = world->now_us + duration_us;
  while (world->now_us + 2900 * MS < end_us) {
    char part[] = {*text++, '\0'};
    assert_int_not_equal(part[0], '\r');
    fake_pass(world, 2900 * MS);
    fake_deliver(world, 0, part);
  }
  fake_pass(world, end_us - world->now_us);
  return text;
}

/* The last command for the key was on its way for as long as the node was silent. */
TEST(late_extend_as_text_leaves_no_key) {
  world = fake_world_new(1);
  redlock_options options = fake_once();
  options.ttl_us = 100 * SECONDS;
  options.node_timeout_us = 100 * SECONDS;
  lock = fake_lock(world, KEY, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(fake_next(world, 0), FAKE_EXTEND);
  (void)fake_take(world, 0);
  fake_deliver(world, 0,
               trickle("-NOSCRIPT No matching script. Please use EVAL.\r\n", 95 * SECONDS));
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  fake_pass(world, 30 * SECONDS); /* past what the first extend could have made of it */
  assert_int_equal(fake_keys(world, KEY), 1);
  world->nodes[0].policy = FAKE_SILENT;
  fake_break(world, 0, "the node closed the connection");
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(extend_read_after_its_connection_broke_leaves_no_key) {
  world = fake_world_new(1);
  redlock_options options = fake_once();
  char reply[FAKE_REPLY_MAX];
  options.ttl_us = 100 * SECONDS;
  lock = fake_lock(world, KEY, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_pass(world, 10 * SECONDS);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  (void)trickle("-ERR it takes longer than the client waits", 85 * SECONDS);
  (void)fake_execute(world, 0, reply);
  world->nodes[0].policy = FAKE_SILENT;
  fake_break(world, 0, "the node closed the connection");
  fake_pass(world, 30 * SECONDS);
  assert_int_equal(fake_keys(world, KEY), 1);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_pass(world, 2 * SECONDS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* -------------------------------------------------------------------------------------- healing */

TEST(lost_key_is_healed_only_after_majority) {
  open_world_with_lease(3, NULL);
  fake_store_remove(&world->nodes[0].store, KEY);
  begin_extend(0);
  (void)fake_answer(world, 0); /* 0: it has no such key */
  assert_int_equal(world->nodes[0].sets, 1);
  (void)fake_answer(world, 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, 1);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->nodes[0].sets, 2);
  fake_command set = fake_answer(world, 0);
  assert_int_equal(set.verb, FAKE_SET);
  assert_string_equal(set.token, rl_attempt_token(lock->lease));
  assert_int_equal(set.ttl_ms, 10000);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
  assert_int_equal(world->nodes[1].sets + world->nodes[2].sets, 2);
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_TAKEN); /* the heal is no vote */
}

TEST(node_that_denies_after_decision_is_healed) {
  open_world_with_lease(3, NULL);
  fake_store_remove(&world->nodes[2].store, KEY);
  begin_extend(0);
  assert_error(let_majority_answer(), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(world->nodes[2].sets, 2);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
}

TEST(failed_extend_heals_no_key) {
  open_world_with_lease(3, NULL);
  fake_store_remove(&world->nodes[0].store, KEY);
  begin_extend(0);
  (void)fake_answer(world, 0);
  fake_reply(world, 1, "-OOM\r\n");
  fake_reply(world, 2, "-OOM\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  assert_int_equal(world->nodes[0].sets, 1);
}

TEST(node_with_error_is_not_healed) {
  open_world_with_lease(3, NULL);
  begin_extend(0);
  fake_reply(world, 0, "-OOM\r\n");
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->nodes[0].sets, 1);
}

TEST(ended_lease_heals_no_key) {
  redlock_options options = fake_once();
  options.ttl_us = 100 * MS; /* a lease of 97 ms */
  open_world_with_lease(3, &options);
  fake_store_remove(&world->nodes[2].store, KEY);
  begin_extend(0);
  assert_error(let_majority_answer(), REDLOCK_OK);
  world->now_us = lock->deadline_us;
  (void)fake_answer(world, 2);
  assert_int_equal(lock->votes[2].vote, REDLOCK_VOTE_TAKEN);
  assert_int_equal(world->nodes[2].sets, 1);
}

TEST(healed_key_is_released_on_node_without_first_set) {
  world = fake_world_new(3);
  lock = fake_lock(world, KEY, NULL);
  world->nodes[2].policy = FAKE_REFUSES;
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(lock->lease->sent, 1 | 2);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, SECONDS);
  assert_int_equal(world->nodes[2].connections, 1);
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(refused_acquire_does_not_stop_a_heal) {
  open_world_with_lease(3, NULL);
  fake_store_remove(&world->nodes[2].store, KEY);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_HELD);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
}

/* ------------------------------------------------------------------------------------ by script */

/* From then on the node is known to know the script. */
static void teach(void) {
  assert_error(extend(lock, 0), REDLOCK_OK);
}

TEST(script_that_denied_has_run) {
  open_world_with_lease(1, NULL);
  fake_store_remove(&world->nodes[0].store, KEY);
  begin_extend(0);
  assert_true(fake_answer(world, 0).by_text);
  assert_error(rl_lock_result(lock), REDLOCK_E_LOST);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  begin_extend(0);
  assert_false(fake_answer(world, 0).by_text);
}

TEST(error_proves_nothing_about_script) {
  for (unsigned taught = 0; taught <= 1; taught++) {
    open_world_with_lease(1, NULL);
    if (taught) {
      teach();
    }
    for (unsigned i = 0; i < 2; i++) {
      begin_extend(0);
      assert_int_equal(fake_reply(world, 0, "-LOADING Redis is loading\r\n").by_text, !taught);
    }
  }
}

TEST(forgotten_script_is_sent_by_text_once) {
  open_world_with_lease(1, NULL);
  teach();
  world->nodes[0].store.forgot_extend = true;
  begin_extend(7 * SECONDS);
  assert_false(fake_answer(world, 0).by_text);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_command text = fake_answer(world, 0);
  assert_true(text.by_text);
  assert_int_equal(text.ttl_ms, 7000);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(noscript_to_text_is_error) {
  open_world_with_lease(1, NULL);
  begin_extend(0);
  fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->nodes[0].extends, 1);
  assert_string_equal(rl_round_reason(lock, 0), "NOSCRIPT No matching script.");
}

TEST(noscript_after_round_sends_nothing) {
  open_world_with_lease(1, NULL);
  teach();
  begin_extend(0);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_int_equal(world->nodes[0].extends, 2);
  teach();
  begin_extend(0);
  fake_pass(world, 100 * MS);
  begin_extend(0); /* the NOSCRIPT of one round is ignored in the next */
  assert_int_equal(world->nodes[0].extends, 5);
  fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_int_equal(world->nodes[0].extends, 5);
}

TEST(noscript_after_lease_sends_nothing) {
  for (unsigned kind = 0; kind < 3; kind++) {
    open_world_with_lease(3, NULL);
    teach();
    world->nodes[2].store.forgot_extend = true;
    begin_extend(0);
    assert_error(let_majority_answer(), REDLOCK_OK);
    unsigned before = world->nodes[2].extends;
    if (kind == 0) {
      world->now_us = lock->deadline_us - 1;
    } else if (kind == 1) {
      world->now_us = lock->deadline_us;
    } else { /* The round of a release is another one. */
      assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
    }
    fake_reply(world, 2, "-NOSCRIPT No matching script.\r\n");
    assert_int_equal(world->nodes[2].extends, before + (kind == 0));
  }
}

TEST(noscript_after_free_sends_nothing) {
  open_world_with_lease(1, NULL);
  teach();
  begin_extend(0);
  rl_lock_free(lock, world->now_us);
  fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_int_equal(world->nodes[0].extends, 2);
  assert_int_equal(fake_answer(world, 0).verb, FAKE_RELEASE);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_int_equal(world->core.attempts.live, 0);
}

TEST(reconnection_repeats_no_extend) {
  redlock_options options = fake_once();
  options.node_timeout_us = SECONDS;
  open_world_with_lease(3, &options);
  begin_extend(0);
  fake_break(world, 0, "Connection reset by peer");
  assert_int_equal(world->nodes[0].connections, 2);
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_UNKNOWN);
  assert_int_equal(world->nodes[0].extends, 1);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->nodes[0].extends, 1);
}

TEST(only_integer_1_confirms_extend) {
  static const struct {
    const char *reply;
    redlock_vote vote;
  } cases[] = {{":1\r\n", REDLOCK_VOTE_GRANTED},         {":0\r\n", REDLOCK_VOTE_TAKEN},
               {":2\r\n", REDLOCK_VOTE_ERROR},           {":-1\r\n", REDLOCK_VOTE_ERROR},
               {"+OK\r\n", REDLOCK_VOTE_ERROR},          {"$1\r\n1\r\n", REDLOCK_VOTE_ERROR},
               {"$-1\r\n", REDLOCK_VOTE_ERROR},          {"-LOADING\r\n", REDLOCK_VOTE_ERROR},
               {"-WRONGTYPE x\r\n", REDLOCK_VOTE_TAKEN}, {":4294967297\r\n", REDLOCK_VOTE_ERROR}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    open_world_with_lease(2, NULL);
    begin_extend(0);
    fake_reply(world, 0, cases[i].reply);
    assert_int_equal(lock->votes[0].vote, cases[i].vote);
  }
}

TEST(extend_without_ttl_uses_ttl_of_acquire) {
  redlock_options call = fake_once();
  call.ttl_us = 20 * SECONDS;
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL); /* Its own ttl is 10 s. */
  assert_error(rl_lock_acquire(lock, world->now_us, &call, false), REDLOCK_OK);
  fake_settle(world);
  world->now_us += 5 * SECONDS;
  begin_extend(0);
  assert_int_equal(fake_answer(world, 0).ttl_ms, 20000);
  begin_extend(30 * SECONDS); /* 0 still means the ttl of the acquire */
  assert_int_equal(fake_answer(world, 0).ttl_ms, 30000);
  begin_extend(0);
  assert_int_equal(fake_answer(world, 0).ttl_ms, 20000);
}
