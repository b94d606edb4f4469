/*
 * Twins: one server under two names has one vote.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_round.h"

#include "lease_world.h"

/* ------------------------------------------------------------------ three proxies of one server */

/* All SETs go to the store of node 0: it grants the first, and denies the rest. */
static void start_at_one_server(const redlock_options *options) {
  begin_acquire_of_new_lock(options);
  fake_answer(world, 0);
  (void)fake_reply(world, 1, "$-1\r\n");
  (void)fake_reply(world, 2, "$-1\r\n");
}

TEST(twin_nodes_are_named_in_the_error) {
  char message[1024];
  redlock_options once = fake_once();
  world = fake_world_new(3);
  start_at_one_server(&once);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].releases, 0); /* The key stays until it is known. */
  assert_int_equal(fake_reply(world, 1, ":1\r\n").verb, FAKE_RELEASE);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(fake_reply(world, 2, ":0\r\n").verb, FAKE_RELEASE); /* Node 1 deleted it. */
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_non_null(strstr(
      rl_lock_message(lock, message, sizeof message),
      "10.0.0.2:6379: it is the same server as 10.0.0.1:6379; each node must be a server of its "
      "own"));
  assert_int_equal(world->core.nodes[1]->twins, 1);
  fake_settle(world);
  /* Now it is known before a SET is sent. */
  unsigned sets = world->nodes[1].sets;
  fake_begin_acquire(world, lock);
  assert_int_equal(world->nodes[1].sets, sets);
  assert_int_equal(lock->votes[1].vote, REDLOCK_VOTE_ERROR);
  fake_answer(world, 0);
  (void)fake_reply(world, 2, "$-1\r\n");
  assert_int_equal(fake_reply(world, 2, ":1\r\n").verb, FAKE_RELEASE);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->core.nodes[2]->twins, 1);
  fake_settle(world);
}

TEST(twin_is_forgotten_with_either_connection) {
  for (unsigned broken = 0; broken <= 1; broken++) {
    redlock_options once = fake_once();
    world = fake_world_new(3);
    start_at_one_server(&once);
    (void)fake_reply(world, 1, ":1\r\n");
    assert_int_equal(world->core.nodes[1]->twins, 1);
    fake_break(world, broken, "Connection reset by peer");
    assert_int_equal(world->core.nodes[1]->twins, 0);
    assert_string_equal(world->core.nodes[1]->error, "");
    fake_settle(world);
  }
}

/* A twin gets no backfill; its next connection may lead to a server of its own. */
TEST(former_twin_gets_the_key_of_a_lease) {
  redlock_options once = fake_once();
  world = fake_world_new(3);
  start_at_one_server(&once);
  (void)fake_reply(world, 1, ":1\r\n");
  (void)fake_reply(world, 2, ":0\r\n");
  fake_settle(world);
  assert_int_equal(world->core.nodes[1]->twins, 1);
  assert_error(fake_acquire(world, lock), REDLOCK_OK); /* Nodes 0 and 2 grant it. */
  fake_pass(world, SECONDS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 2);
  fake_break(world, 1, "Connection reset by peer");
  fake_pass(world, SECONDS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 3);
}

/* Node 0 granted one lease and node 1 refused it; with another lease it was the other way round. */
TEST(server_under_two_names_has_one_vote) {
  world = fake_world_new(3);
  redlock_options once = fake_once();
  rl_lock *locks[2];
  for (unsigned i = 0; i < 2; i++) {
    locks[i] = fake_lock(world, i == 0 ? KEY : "another", &once);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    fake_answer(world, i);
    (void)fake_reply(world, 1 - i, "$-1\r\n");
    fake_answer(world, 2);
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
  }
  for (unsigned i = 0; i < 2; i++) {
    assert_error(rl_lock_extend(locks[i], world->now_us, 0, false), REDLOCK_OK);
    fake_turn(world);
    (void)fake_reply(world, 1 - i, ":1\r\n");
    fake_answer(world, 2);
    if (i == 0) {
      fake_answer(world, 0);
    }
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
  }
  assert_int_equal(world->core.nodes[1]->twins, 5);
  assert_int_equal(world->core.nodes[0]->twins, 0);
  fake_settle(world);
}

/* Node 1 has voted for lease 1 before lease 0 shows that it is node 0. */
TEST(round_counts_one_name_of_a_server) {
  world = fake_world_new(3);
  redlock_options once = fake_once();
  rl_lock *locks[2];
  for (unsigned i = 0; i < 2; i++) {
    locks[i] = fake_lock(world, i == 0 ? KEY : "another", &once);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    fake_answer(world, i);
    (void)fake_reply(world, 1 - i, "$-1\r\n");
    fake_answer(world, 2);
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
  }
  for (unsigned i = 2; i-- > 0;) {
    assert_error(rl_lock_extend(locks[i], world->now_us, 0, false), REDLOCK_OK);
    fake_turn(world);
    (void)fake_reply(world, 1, ":1\r\n");
  }
  assert_int_equal(world->core.nodes[1]->twins, 5);
  (void)fake_reply(world, 0, ":1\r\n");
  assert_int_equal(rl_lock_result(locks[1]), REDLOCK_PENDING);
  assert_int_equal(locks[1]->votes[0].vote, REDLOCK_VOTE_ERROR);
  fake_answer(world, 2);
  assert_error(rl_lock_result(locks[1]), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(world->core.nodes[0]->twins, 0);
}

/* It was not connected when the lock was taken, so that it was not asked. */
TEST(extend_names_a_twin_that_was_not_asked_for_the_lock) {
  open_world_and_begin_single_attempt(3);
  fake_answer(world, 0);
  fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  (void)fake_reply(world, 1, "$-1\r\n");
  lock->lease->sent &= ~2u; /* As if it had not been connected. */
  lock->lease->refused = 0;
  begin_extend(0);
  assert_int_equal(fake_reply(world, 1, ":1\r\n").verb, FAKE_EXTEND);
  assert_int_equal(world->core.nodes[1]->twins, 5);
  fake_answer(world, 0);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  fake_settle(world);
}

/* Node 1 loses its key to another client, and has it again after a fail-over: no twin gave it. */
TEST(node_with_restored_key_is_no_twin) {
  redlock_options once = fake_once();
  open_world_with_lease(3, &once);
  const char *token = rl_attempt_token(lock->lease);
  fake_store_put(&world->nodes[1].store, KEY, "another", REDLOCK_NEVER);
  for (unsigned i = 0; i < 2; i++) {
    begin_extend(0);
    assert_int_equal(fake_answer(world, 1).verb, FAKE_EXTEND);
    fake_settle(world); /* Node 1 refuses the heal. */
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(lock->votes[1].vote, i == 0 ? REDLOCK_VOTE_TAKEN : REDLOCK_VOTE_GRANTED);
    fake_store_put(&world->nodes[1].store, KEY, token, REDLOCK_NEVER);
  }
  assert_int_equal(world->nodes[1].sets, 2);
  assert_int_equal(world->core.nodes[1]->twins, 0);
}

/*
 * Nodes 0 and 1 are one server. When another client holds it, a test with the key of node 2 alone
 * finds nothing. The next attempt is granted through node 0, and tests again.
 */
TEST(twin_test_is_repeated_for_each_node_that_grants) {
  open_world_and_begin_single_attempt(3);
  fake_answer(world, 2);
  (void)fake_reply(world, 0, "$-1\r\n");
  (void)fake_reply(world, 1, "$-1\r\n");
  assert_int_equal(fake_reply(world, 0, ":0\r\n").verb, FAKE_RELEASE);
  assert_int_equal(fake_reply(world, 1, ":0\r\n").verb, FAKE_RELEASE);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  fake_settle(world);
  fake_begin_acquire(world, lock);
  fake_answer(world, 0);
  (void)fake_reply(world, 1, "$-1\r\n");
  (void)fake_reply(world, 2, "$-1\r\n");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(fake_reply(world, 1, ":1\r\n").verb, FAKE_RELEASE);
  assert_int_equal(fake_reply(world, 2, ":0\r\n").verb, FAKE_RELEASE);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->core.nodes[1]->twins, 1);
  fake_settle(world);
}

/* A split vote between two clients begins in the same way. */
TEST(twin_test_runs_once_on_a_connection) {
  redlock_options once = fake_once();
  world = fake_world_new(3);
  for (unsigned i = 0; i < 2; i++) {
    start_at_one_server(&once);
    if (i == 0) {
      (void)fake_reply(world, 1, ":0\r\n");
      fake_break(world, 2, "Connection reset by peer");
    }
    assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
    fake_settle(world);
    world->core.nodes[2]->link.compared = UINT32_MAX;
  }
  assert_int_equal(world->core.nodes[1]->twins, 0);
}

TEST(twin_test_without_reply_ends_with_the_attempt) {
  redlock_options once = fake_once();
  world = fake_world_new(3);
  start_at_one_server(&once);
  fake_pass(world, 99 * MS);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}
