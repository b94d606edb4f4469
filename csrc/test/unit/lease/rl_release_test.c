/*
 * Releasing: the release of a lease, and the keys that attempts leave: on which nodes a release is
 * due, when, and for how long.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_round.h"

#include "lease_world.h"

TEST(lease_ends_before_first_byte_of_release) {
  open_world_with_lease(3, NULL);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_null(lock->lease);
  for (unsigned i = 0; i < 3; i++) {
    size_t length;
    assert_null(rl_core_output(&world->core, i, &length));
    assert_int_equal(world->nodes[i].releases, 0);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(majority_of_nodes_decides_release) {
  for (unsigned count = 1; count <= FAKE_NODES_MAX; count++) {
    open_world_with_lease(count, NULL);
    begin_release();
    for (unsigned i = 0; i < count; i++) {
      assert_int_equal(world->nodes[i].releases, 1);
      if (i <= count / 2) {
        assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
      } else {
        assert_error(rl_lock_result(lock), REDLOCK_OK);
      }
      (void)fake_answer(world, i);
    }
    assert_int_equal(fake_keys(world, KEY), 0);
  }
}

TEST(release_deletes_only_own_key) {
  open_world_with_lease(3, NULL);
  fake_store_put(&world->nodes[2].store, KEY, OTHER, REDLOCK_NEVER);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, OTHER), 1);
}

TEST(release_of_lost_lock_reports_lost) {
  open_world_with_lease(3, NULL);
  let_other_client_hold(1, REDLOCK_NEVER);
  fake_store_remove(&world->nodes[1].store, KEY);
  assert_error(release(lock), REDLOCK_E_LOST);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(release_of_unheld_lock_is_not_held) {
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(expired_lease_is_released_once) {
  for (unsigned gone = 0; gone <= 1; gone++) {
    open_world_with_lease(3, NULL);
    world->now_us = lock->deadline_us + (gone ? 200 * MS : 0); /* then the keys are gone, too */
    assert_error(release(lock), gone ? REDLOCK_E_EXPIRED : REDLOCK_OK);
    assert_error(release(lock), REDLOCK_E_NOT_HELD);
  }
}

TEST(deleting_and_denying_nodes_make_released_lock) {
  open_world_with_lease(3, NULL);
  begin_release();
  fake_reply(world, 0, ":1\r\n");
  fake_reply(world, 1, ":0\r\n");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING); /* it may still be either */
  fake_reply(world, 2, "-ERR x\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(node_that_refused_set_has_no_key) {
  world = fake_world_new(3);
  fake_store_put(&world->nodes[2].store, KEY, OTHER, REDLOCK_NEVER);
  lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  begin_release();
  fake_reply(world, 0, ":1\r\n");
  fake_reply(world, 1, "-ERR x\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK); /* deleted on one, never on another */
  assert_int_equal(world->nodes[2].releases, 0);
}

TEST(nodes_without_set_have_no_key) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_REFUSES;
  lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  begin_release();
  assert_string_equal(rl_round_reason(lock, 2), "nothing was sent to it");
  assert_true(lock->votes[2].settled);
  fake_reply(world, 0, ":1\r\n");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_reply(world, 1, "-ERR x\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK); /* deleted on one, never on another */
  assert_int_equal(world->nodes[2].releases, 0);
}

/* -------------------------------------------------------------------------------- not confirmed */

TEST(unavailable_release_can_be_repeated) {
  open_world_with_lease(3, NULL);
  begin_release();
  for (unsigned i = 0; i < 3; i++) {
    fake_reply(world, i, "-LOADING Redis is loading\r\n");
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_null(lock->attempt);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_int_equal(fake_holders(world, KEY, lease_token), 3);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(repeated_release_counts_former_confirmations) {
  open_world_with_lease(3, NULL);
  lock->lease->may_set = 1; /* A connection has broken. The release shows that it had the key. */
  begin_release();
  fake_reply(world, 0, ":1\r\n");
  fake_reply(world, 1, "-LOADING\r\n");
  fake_reply(world, 2, "-LOADING\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  begin_release();
  assert_int_equal(world->nodes[0].releases, 1);
  assert_int_equal(world->nodes[1].releases, 2);
  fake_reply(world, 1, ":1\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* The first release succeeded, with late replies. The second must not report a loss. */
TEST(late_reply_to_first_release_counts_in_repeated_release) {
  open_world_with_lease(1, NULL);
  begin_release();
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  begin_release();
  fake_settle(world); /* 1 to the first, 0 to the second */
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* redlock.h: "the client goes on trying on its own while the key can still live". */
TEST(freed_lock_releases_token_after_error) {
  for (unsigned again = 0; again <= 1; again++) {
    open_world_with_lease(1, NULL);
    begin_release();
    fake_reply(world, 0, "-LOADING Redis is loading\r\n");
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    fake_pass(world, SECONDS);
    if (again) {
      assert_error(fake_acquire(world, lock), REDLOCK_OK); /* not taken by itself */
    } else {
      rl_lock_free(lock, world->now_us);
      fake_settle(world);
      assert_int_equal(fake_keys(world, KEY), 0);
    }
  }
}

TEST(failed_release_is_repeated) {
  open_world_with_lease(1, NULL);
  begin_release();
  fake_reply(world, 0, "-BUSY Redis is busy running a script\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->nodes[0].releases, 1);
  fake_pass(world, 500 * MS - 1);
  assert_int_equal(world->nodes[0].releases, 1);
  fake_pass(world, 1);
  assert_int_equal(world->nodes[0].releases, 2);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->core.releases->count, 0);
}

TEST(postponed_release_is_sent_on_a_new_connection) {
  open_world_with_lease(1, NULL);
  begin_release();
  fake_reply(world, 0, "-BUSY Redis is busy running a script\r\n");
  assert_int_equal(world->nodes[0].releases, 1);
  fake_break(world, 0, "Connection reset by peer");
  assert_int_equal(world->nodes[0].connections, 2);
  assert_int_equal(world->nodes[0].releases, 2);
}

TEST(forbidden_release_is_not_repeated) {
  static const char *const errors[] = {"-NOPERM x\r\n", "-NOAUTH x\r\n"};
  for (unsigned i = 0; i < COUNT_OF(errors); i++) {
    open_world_with_lease(1, NULL);
    begin_release();
    fake_reply(world, 0, errors[i]);
    fake_pass(world, SECONDS);
    assert_int_equal(world->nodes[0].releases, 1);
  }
}

TEST(release_ends_at_its_deadline) {
  open_world_with_lease(3, NULL);
  begin_release();
  fake_pass(world, 100 * MS - 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

TEST(reconnection_repeats_release_and_no_set) {
  open_world_with_lease(3, NULL);
  begin_release();
  fake_break(world, 0, "Connection reset by peer");
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_UNKNOWN);
  assert_int_equal(lock->votes[0].latency_us, RL_VOTE_NO_LATENCY);
  assert_int_equal(world->nodes[0].connections, 2);
  assert_int_equal(world->nodes[0].releases, 2);
  assert_int_equal(world->nodes[0].sets, 1);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(release_waits_for_node_that_is_down) {
  open_world_with_lease(3, NULL);
  take_down(0);
  assert_error(release(lock), REDLOCK_OK);
  assert_string_equal(rl_round_reason(lock, 0), "Connection refused");
  assert_int_equal(fake_keys(world, KEY), 1);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_pass(world, 2 * SECONDS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(release_of_expired_key_is_not_sent) {
  open_world_with_lease(1, NULL);
  take_down(0);
  begin_release();
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->core.releases->count, 1);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_pass(world, 13 * SECONDS); /* the ttl, a tenth of it, and a second */
  assert_int_equal(world->nodes[0].connections, 2);
  assert_int_equal(world->nodes[0].releases, 0);
  assert_int_equal(world->core.releases->count, 0);
  assert_int_equal(world->core.nodes[0]->due_count, 0);
}

TEST(release_goes_on_while_key_can_live) {
  open_world_with_lease(1, NULL);
  take_down(0);
  begin_release();
  world->now_us = FAKE_START_US + 11 * SECONDS; /* a slow clock may have kept it */
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_turn(world);
  assert_int_equal(world->nodes[0].releases, 1);
}

TEST(node_that_comes_up_after_expiry_gets_no_release) {
  for (unsigned gone = 0; gone <= 1; gone++) {
    redlock_options options = fake_once();
    options.node_timeout_us = 60 * SECONDS;
    open_world_with_lease(1, &options);
    redlock_time expired_us = lock->lease->expired_us;
    assert_int_equal(expired_us, FAKE_START_US + 12 * SECONDS);
    world->now_us = expired_us - SECONDS;
    world->nodes[0].policy = FAKE_SILENT;
    fake_break(world, 0, "Connection reset by peer");
    begin_release();
    assert_int_equal(lock->awaited, 1);
    world->now_us = expired_us - 1 + gone;
    fake_reply(world, 0, "+OK\r\n"); /* the handshake */
    assert_int_equal(world->nodes[0].releases, gone ? 0 : 1);
    assert_string_equal(rl_round_reason(lock, 0), gone ? "its key has expired" : "");
    assert_error(rl_lock_result(lock), gone ? REDLOCK_E_UNAVAILABLE : REDLOCK_PENDING);
  }
}

/* The lock is held, and its node has run the release before. */
static void taught(void) {
  open_world_with_lease(1, NULL);
  begin_release();
  assert_true(fake_answer(world, 0).by_text);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

TEST(forgotten_script_is_sent_by_text_after_the_round) {
  taught();
  world->nodes[0].store.forgot_release = true;
  begin_release();
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_false(fake_answer(world, 0).by_text);
  assert_true(fake_answer(world, 0).by_text);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(noscript_to_text_is_error) {
  taught();
  begin_release();
  assert_int_equal(world->nodes[0].releases, 2);
  fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].releases, 3);
  fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->nodes[0].releases, 3);
}

/* The lock is freed before the node has answered: the release must do its work all the same. */
TEST(fire_and_forget_release_is_sent_once) {
  open_world_with_lease(1, NULL);
  world->nodes[0].store.forgot_release = true;
  rl_lock_free(lock, world->now_us);
  fake_turn(world);
  assert_true(fake_answer(world, 0).by_text);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_int_equal(world->nodes[0].releases, 1);
}

TEST(key_of_another_type_is_denied) {
  open_world_with_lease(1, NULL);
  fake_store_put(&world->nodes[0].store, KEY, "", REDLOCK_NEVER);
  assert_error(release(lock), REDLOCK_E_LOST);
}

/* Two nodes refuse heals, and have the key again after fail-overs. */
TEST(release_deletes_restored_keys_after_refused_heals) {
  open_world_with_lease(5, NULL);
  for (unsigned restored = 0; restored < 2; restored++) {
    for (unsigned i = 0; i < 2; i++) {
      fake_store_put(&world->nodes[i].store, KEY, restored ? rl_attempt_token(lock->lease) : OTHER,
                     REDLOCK_NEVER);
    }
    assert_error(extend(lock, 0), REDLOCK_OK);
  }
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_GRANTED);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* The release went out before the SET was answered; both are answered alike. */
TEST(release_of_refused_set_is_not_repeated) {
  redlock_options once = fake_once();
  world = fake_world_new(1);
  lock = fake_lock(world, "orders:42", &once);
  fake_begin_acquire(world, lock);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(fake_reply(world, 0, "-MISCONF Errors writing to disk\r\n").verb, FAKE_SET);
  unsigned releases = world->nodes[0].releases;
  while (world->nodes[0].queued > 0) {
    (void)fake_reply(world, 0, "-MISCONF Errors writing to disk\r\n");
  }
  fake_pass(world, 4 * RL_RELEASE_RETRY_US);
  assert_int_equal(world->nodes[0].releases, releases);
  assert_int_equal(world->core.attempts.live, 0);
}

TEST(release_of_an_expired_lease_without_majority_is_expired) {
  open_world_with_lease(3, NULL);
  world->now_us += 9950 * MS; /* past the deadline, before the keys' end */
  fake_store_remove(&world->nodes[1].store, KEY);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
}

TEST(release_does_not_wait_for_unsent_commands) {
  world = fake_world_new(3);
  redlock_options options = fake_once();
  options.ttl_us = 10 * SECONDS;
  options.node_timeout_us = 60 * SECONDS;
  lock = fake_lock(world, KEY, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_pass(world, 11 * SECONDS);
  for (unsigned i = 1; i < 3; i++) {
    world->nodes[i].policy = FAKE_SILENT;
    fake_break(world, i, "the node closed the connection");
  }
  fake_pass(world, 500 * MS);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, SECONDS); /* The key has expired. */
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  world->nodes[1].policy = FAKE_ACCEPTS;
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 1), "its key has expired");
}

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
TEST(answer_of_an_ended_connection_is_not_waited_for) {
  open_world_and_begin_single_attempt(3);
  fake_break(world, 0, "Connection reset by peer");
  fake_pass(world, 50 * MS);
  (void)fake_reply(world, 1, "$-1\r\n");
  (void)fake_reply(world, 2, "$-1\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_int_equal(world->nodes[0].releases, 1);
}

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
  let_other_client_hold(2, REDLOCK_NEVER);
  begin_acquire_of_new_lock(&options);
  assert_error(let_majority_answer(), REDLOCK_E_TAKEN);
  fake_pass(world, 2 * SECONDS);
  unsigned releases = world->nodes[2].releases;
  (void)fake_reply(world, 2, ":7\r\n");
  fake_settle(world);
  assert_true(world->nodes[2].releases > releases);
}

/* A node has refused a release with -LOADING: its repetition is due in half a second. */
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

TEST(unreadable_answer_to_an_extend_prolongs_life_of_key) {
  open_world_with_lease(1, NULL);
  begin_extend(0);
  redlock_time expired_us = lock->lease->expired_us;
  world->now_us += 50 * MS;
  (void)fake_reply(world, 0, "$3\r\nodd\r\n");
  assert_int_equal(lock->lease->expired_us, expired_us + 50 * MS);
}

TEST(unreadable_answer_to_a_hold_may_have_kept_the_key) {
  open_world_with_lease(3, NULL);
  lock->lease->keep_until_us = (world->now_us + 5 * SECONDS) & RL_ATTEMPT_KEEP_MAX_US;
  lock->lease->confirmed = 0;
  begin_release();
  redlock_time expired_us = lock->attempt->expired_us;
  (void)fake_reply(world, 0, ":1\r\n");
  world->now_us += 50 * MS;
  (void)fake_reply(world, 1, "$3\r\nodd\r\n");
  (void)fake_reply(world, 2, "-LOADING Redis is loading\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(lock->unreleased->confirmed, 1);
  assert_int_equal(lock->unreleased->may_prolong, 2);
  assert_int_equal(lock->unreleased->expired_us, expired_us + 50 * MS);
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

TEST(set_answered_with_garbage_leaves_no_key) {
  world = fake_world_new(1);
  redlock_options options = fake_once();
  char reply[FAKE_REPLY_MAX];
  options.ttl_us = SECONDS;
  lock = fake_lock(world, KEY, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, 2500 * MS); /* past what a SET that is read at once could live */
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  (void)fake_execute(world, 0, reply);
  fake_deliver(world, 0, ":7\r\n");
  assert_int_equal(fake_keys(world, KEY), 1);
  fake_pass(world, 100 * MS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}
