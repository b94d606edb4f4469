/*
 * Locks on several resources, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_round.h"

#include "lease_world.h"

static const char *const AB[] = {"a", "b"};
static const char *const CB[] = {"c", "b"};
static const char *const BC[] = {"b", "c"};
static const char *const ABC[] = {"a", "b", "c"};

static int once(rl_lock *self) {
  redlock_options options = fake_once();
  int error = rl_lock_acquire(self, world->now_us, &options, false);
  fake_turn(world);
  return error;
}

static int try_once(rl_lock *self) {
  int error = once(self);
  fake_settle(world);
  return error != REDLOCK_OK ? error : rl_lock_result(self);
}

/* A world whose lock on a and b is held on all nodes since FAKE_START_US. */
static void hold_ab(unsigned count) {
  world = fake_world_new(count);
  lock = fake_lock_many(world, AB, 2, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

/* ------------------------------------------------------------------------------------ acquiring */

TEST(acquire_sends_one_command_for_all_resources) {
  world = fake_world_new(3);
  lock = fake_lock_many(world, AB, 2, NULL);
  assert_error(once(lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    fake_command command = fake_answer(world, i);
    assert_int_equal(command.verb, FAKE_SET);
    assert_int_equal(command.count, 2);
    assert_string_equal(command.names[0].bytes, "a");
    assert_string_equal(command.names[1].bytes, "b");
    assert_int_equal(command.ttl_ms, 10000);
    assert_int_equal(world->nodes[i].sets, 1);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
  assert_int_equal(fake_holders(world, "a", rl_attempt_token(lock->lease)), 3);
  assert_int_equal(fake_holders(world, "b", rl_attempt_token(lock->lease)), 3);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
  assert_int_equal(world->nodes[0].releases, 1);
}

/* A single lock writes the same, so that each of the keys excludes it. */
TEST(overlapping_resources_exclude_each_other_in_any_order) {
  hold_ab(3);
  rl_lock *first = lock;
  rl_lock *others[] = {fake_lock_many(world, CB, 2, NULL), fake_lock_many(world, BC, 2, NULL),
                       fake_lock_many(world, ABC, 3, NULL), fake_lock(world, "a", NULL),
                       fake_lock(world, "b", NULL)};
  for (unsigned i = 0; i < COUNT_OF(others); i++) {
    assert_error(try_once(others[i]), REDLOCK_E_TAKEN);
    assert_int_equal(fake_keys(world, "c"), 0);
  }
  assert_error(release(first), REDLOCK_OK);
  for (unsigned i = 0; i < COUNT_OF(others); i++) {
    assert_error(try_once(others[i]), REDLOCK_OK);
    bool holds_b = i != 3;
    rl_lock *second = fake_lock_many(world, holds_b ? CB : AB, 2, NULL);
    assert_error(try_once(second), REDLOCK_E_TAKEN);
    rl_lock_free(second, world->now_us);
    assert_error(release(others[i]), REDLOCK_OK);
  }
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b") + fake_keys(world, "c"), 0);
}

TEST(node_with_one_taken_key_sets_nothing) {
  world = fake_world_new(3);
  lock = fake_lock_many(world, ABC, 3, NULL);
  fake_store_put(&world->nodes[0].store, "c", OTHER, REDLOCK_NEVER);
  fake_store_put(&world->nodes[1].store, "b", OTHER, REDLOCK_NEVER);
  assert_error(try_once(lock), REDLOCK_E_TAKEN);
  assert_int_equal(world->nodes[0].releases, 0);
  assert_int_equal(world->nodes[1].releases, 0);
  assert_int_equal(world->nodes[2].releases, 1);
  assert_int_equal(fake_keys(world, "a"), 0);
  assert_int_equal(fake_keys(world, "b") + fake_keys(world, "c"), 2);
}

TEST(message_names_the_taken_resource_and_its_nodes) {
  world = fake_world_new(5);
  lock = fake_lock_many(world, ABC, 3, NULL);
  fake_store_put(&world->nodes[0].store, "c", OTHER, REDLOCK_NEVER);
  fake_store_put(&world->nodes[1].store, "b", "", REDLOCK_NEVER); /* of another type */
  fake_store_put(&world->nodes[3].store, "c", OTHER, REDLOCK_NEVER);
  assert_error(try_once(lock), REDLOCK_E_TAKEN);
  assert_message(lock, "the lock on 'a' and 2 more is taken: 3 of 5 nodes hold one of them for "
                       "another client: 'b' on 10.0.0.2:6379; 'c' on 10.0.0.1:6379, 10.0.0.4:6379");
  world->nodes[2].policy = world->nodes[4].policy = FAKE_REFUSES;
  fake_break(world, 2, "gone");
  fake_break(world, 4, "gone");
  fake_store_remove(&world->nodes[3].store, "c");
  fake_store_put(&world->nodes[0].store, "a", OTHER, REDLOCK_NEVER);
  assert_error(try_once(lock), REDLOCK_E_TAKEN);
  assert_message(lock, "the lock on 'a' and 2 more is taken: 2 of 5 nodes hold one of them for "
                       "another client: 'a' on 10.0.0.1:6379; 'b' on 10.0.0.2:6379; without a "
                       "vote: "
                       "10.0.0.3:6379: Connection refused; 10.0.0.5:6379: Connection refused");
}

TEST(unavailable_message_names_the_resource) {
  world = fake_world_new(3);
  lock = fake_lock_many(world, AB, 2, NULL);
  fake_store_put(&world->nodes[0].store, "b", OTHER, REDLOCK_NEVER);
  world->nodes[1].policy = world->nodes[2].policy = FAKE_HANGS;
  assert_error(try_once(lock), REDLOCK_PENDING);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_message(lock, "the lock on 'a' and 1 more: 0 of 3 nodes granted it (2 needed): "
                       "10.0.0.1:6379: 'b' is held by another client; 10.0.0.2:6379: no connection "
                       "within 100 ms; 10.0.0.3:6379: no connection within 100 ms");
}

TEST(single_resource_uses_plain_set) {
  world = fake_world_new(1);
  lock = fake_lock_many(world, AB, 1, NULL);
  assert_error(once(lock), REDLOCK_OK);
  fake_command command = fake_answer(world, 0);
  assert_int_equal(command.verb, FAKE_SET);
  assert_int_equal(command.count, 0);
  assert_string_equal(command.key, "a");
}

TEST(reply_with_an_unknown_key_number_ends_the_connection) {
  static const char *const replies[] = {":0\r\n", ":3\r\n", ":-1\r\n", "$-1\r\n", "+QUEUED\r\n"};
  for (unsigned i = 0; i < COUNT_OF(replies); i++) {
    world = fake_world_new(1);
    lock = fake_lock_many(world, AB, 2, NULL);
    assert_error(once(lock), REDLOCK_OK);
    (void)fake_reply(world, 0, replies[i]);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_int_equal(world->nodes[0].connections, 2);
  }
}

/* -------------------------------------------------------------------------------------- scripts */

/* A world whose nodes have run the scripts, and forgotten them since. */
static void forgetful(unsigned count) {
  hold_ab(count);
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_OK);
  for (unsigned i = 0; i < count; i++) {
    world->nodes[i].store.forgot_several = true;
    world->nodes[i].sets = world->nodes[i].releases = 0;
  }
}

TEST(known_script_is_called_by_its_hash) {
  world = fake_world_new(1);
  lock = fake_lock_many(world, AB, 2, NULL);
  for (unsigned i = 0; i < 2; i++) {
    assert_error(once(lock), REDLOCK_OK);
    assert_int_equal(fake_answer(world, 0).by_text, i == 0);
    assert_error(release(lock), REDLOCK_OK);
  }
}

TEST(forgotten_script_is_sent_as_text_in_the_same_round) {
  forgetful(3);
  assert_error(once(lock), REDLOCK_OK);
  world->now_us += 30 * MS;
  for (unsigned i = 0; i < 3; i++) {
    assert_false(fake_answer(world, i).by_text);
  }
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  fake_command command = fake_answer(world, 0);
  assert_true(command.by_text);
  assert_int_equal(command.ttl_ms, 9970); /* It ends with the others. */
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, world->now_us - 30 * MS + LEASE_US);
  fake_settle(world);
  assert_int_equal(fake_holders(world, "b", rl_attempt_token(lock->lease)), 3);
}

TEST(forgotten_script_is_sent_as_text_after_the_decision) {
  forgetful(3);
  world->nodes[0].store.forgot_several = world->nodes[1].store.forgot_several = false;
  assert_error(once(lock), REDLOCK_OK);
  assert_error(let_majority_answer(), REDLOCK_OK);
  world->now_us += 4 * SECONDS;
  assert_false(fake_answer(world, 2).by_text);
  fake_command command = fake_answer(world, 2);
  assert_true(command.by_text);
  assert_int_equal(command.ttl_ms, 6000);
  assert_int_equal(fake_holders(world, "b", rl_attempt_token(lock->lease)), 3);
}

TEST(ended_attempt_sends_no_text) {
  forgetful(3);
  assert_error(once(lock), REDLOCK_OK);
  (void)fake_reply(world, 0, ":1\r\n");
  (void)fake_reply(world, 1, ":2\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  (void)fake_answer(world, 2);
  fake_settle(world);
  assert_int_equal(world->nodes[2].sets, 1);
  assert_int_equal(world->nodes[2].releases, 0);
  assert_int_equal(world->core.releases->count, 0);
}

TEST(released_lock_sends_no_text) {
  forgetful(3);
  world->nodes[0].store.forgot_several = world->nodes[1].store.forgot_several = false;
  assert_error(once(lock), REDLOCK_OK);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(world->nodes[2].sets, 1);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
}

/* The answer was read after a pause, before the round has been ended for it. */
TEST(expired_round_sends_no_text) {
  forgetful(3);
  assert_error(once(lock), REDLOCK_OK);
  world->now_us += 100 * MS;
  assert_false(fake_answer(world, 0).by_text);
  assert_int_equal(world->nodes[0].sets, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

/* ------------------------------------------------------------------------- extending, releasing */

TEST(extend_prolongs_all_keys) {
  hold_ab(3);
  world->now_us += 4 * SECONDS;
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + 4 * SECONDS + LEASE_US);
  for (unsigned i = 0; i < 3; i++) {
    for (unsigned k = 0; k < 2; k++) {
      assert_int_equal(fake_store_expiry(&world->nodes[i].store, world->now_us, AB[k]),
                       FAKE_START_US + 14 * SECONDS);
    }
  }
}

TEST(node_that_lost_one_key_is_healed) {
  for (unsigned lost = 0; lost < 2; lost++) {
    hold_ab(3);
    fake_store_remove(&world->nodes[1].store, AB[lost]);
    world->now_us += 4 * SECONDS;
    assert_error(extend(lock, 0), REDLOCK_OK);
    assert_int_equal(lock->votes[1].vote, REDLOCK_VOTE_TAKEN);
    for (unsigned k = 0; k < 2; k++) {
      assert_int_equal(fake_holders(world, AB[k], rl_attempt_token(lock->lease)), 3);
      assert_int_equal(fake_store_expiry(&world->nodes[1].store, world->now_us, AB[k]),
                       FAKE_START_US + 14 * SECONDS);
    }
    assert_error(release(lock), REDLOCK_OK);
    assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
  }
}

/* A heal sets no key that lives long enough, such as one that a replica has got from its master. */
TEST(heal_does_not_prove_that_a_replica_writes) {
  hold_ab(3);
  world->core.nodes[1]->read_only = true;
  begin_extend(0);
  (void)fake_reply(world, 1, ":0\r\n");
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_reply(world, 1, "+OK\r\n").verb, FAKE_SET);
  assert_true(world->core.nodes[1]->read_only);
}

TEST(lock_is_lost_when_a_majority_lost_one_key) {
  hold_ab(3);
  fake_store_remove(&world->nodes[0].store, "b");
  fake_store_put(&world->nodes[1].store, "a", OTHER, REDLOCK_NEVER);
  assert_error(extend(lock, 0), REDLOCK_E_LOST);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_message(lock, "the lock on 'a' and 1 more is lost: 2 of 3 nodes no longer have its token: "
                       "10.0.0.1:6379, 10.0.0.2:6379");
  assert_int_equal(fake_keys(world, "a"), 1); /* the other's */
  assert_int_equal(fake_keys(world, "b"), 0);
}

/* A heal that is refused tells nothing of the keys that the node has kept. */
TEST(refused_heal_releases_the_remaining_keys) {
  static const char *const types[] = {"ffffffffffffffffffffffffffffffffffffffff", ""};
  for (unsigned i = 0; i < 2; i++) {
    hold_ab(3);
    fake_store_put(&world->nodes[1].store, "a", types[i], REDLOCK_NEVER);
    assert_error(extend(lock, 0), REDLOCK_OK);
    assert_int_equal(fake_holders(world, "b", rl_attempt_token(lock->lease)), 3);
    assert_error(release(lock), REDLOCK_OK);
    assert_int_equal(world->nodes[1].releases, 1);
    assert_int_equal(fake_keys(world, "a"), 1); /* the other's */
    assert_int_equal(fake_keys(world, "b"), 0);
  }
}

TEST(heal_without_the_script_leaves_the_keys_to_the_release) {
  hold_ab(3);
  fake_store_remove(&world->nodes[1].store, "a");
  assert_error(extend(lock, 0), REDLOCK_OK); /* heals, by the text */
  fake_store_remove(&world->nodes[1].store, "a");
  begin_extend(0);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  world->nodes[1].store.forgot_several = true;
  fake_settle(world);
  assert_int_equal(fake_keys(world, "a"), 2); /* The next extend will see. */
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a"), 3);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
}

TEST(release_deletes_only_keys_with_its_token) {
  static const char *const others[] = {"ffffffffffffffffffffffffffffffffffffffff", ""};
  for (unsigned i = 0; i < 4; i++) {
    hold_ab(3);
    for (unsigned node = 0; node < 2; node++) {
      fake_store_put(&world->nodes[node].store, AB[i % 2], others[i / 2], REDLOCK_NEVER);
    }
    assert_error(release(lock), REDLOCK_E_LOST);
    assert_int_equal(fake_keys(world, AB[i % 2]), 2);
    assert_int_equal(fake_keys(world, AB[1 - i % 2]), 0);
  }
}

TEST(free_releases_all_resources) {
  hold_ab(3);
  rl_lock_free(lock, world->now_us);
  fake_settle(world);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
  assert_int_equal(world->core.attempts.live, 0);
}

TEST(backfill_sets_all_keys_for_the_rest_of_the_ttl) {
  world = fake_world_new(3);
  lock = fake_lock_many(world, AB, 2, NULL);
  world->nodes[2].policy = FAKE_REFUSES;
  assert_error(try_once(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a"), 2);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, 3 * SECONDS);
  fake_settle(world);
  for (unsigned k = 0; k < 2; k++) {
    assert_int_equal(fake_holders(world, AB[k], rl_attempt_token(lock->lease)), 3);
    assert_int_equal(fake_store_expiry(&world->nodes[2].store, world->now_us, AB[k]),
                     FAKE_START_US + 10 * SECONDS);
  }
}

TEST(lease_of_several_resources_is_auto_extended) {
  redlock_options options = {0};
  options.auto_extend = REDLOCK_YES;
  world = fake_world_new(3);
  lock = fake_lock_many(world, AB, 2, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  for (unsigned second = 0; second < 60; second++) {
    fake_pass(world, SECONDS);
    fake_settle(world);
    assert_true(rl_lock_remaining(lock, world->now_us) > 0);
    assert_int_equal(fake_holders(world, "b", rl_attempt_token(lock->lease)), 3);
  }
}

TEST(inspection_asks_about_each_resource) {
  world = fake_world_new(1);
  lock = fake_lock_many(world, AB, 2, NULL);
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_INSPECT, NULL, false),
               REDLOCK_E_INVALID);
  assert_message(lock, "the lock on 'a' and 1 more: use a lock for each resource alone");
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_FORCE_RELEASE,
                           &(rl_question){.token = "t", .token_length = 1}, false),
               REDLOCK_E_INVALID);
  assert_int_equal(world->core.attempts.live, 0);
}
