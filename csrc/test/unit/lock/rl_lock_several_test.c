/*
 * Locks on several resources, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"
#include "lock/rl_round.h"
#include "rl_test.h"

#define LEASE_US (9898 * MS)

static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";
static const char *const AB[] = {"a", "b"};
static const char *const CB[] = {"c", "b"};
static const char *const BC[] = {"b", "c"};
static const char *const ABC[] = {"a", "b", "c"};

static int once(fake_world *world, rl_lock *lock) {
  redlock_options options = fake_once();
  int error = rl_lock_acquire(lock, world->now_us, &options, false);
  fake_turn(world);
  return error;
}

static int try_once(fake_world *world, rl_lock *lock) {
  int error = once(world, lock);
  fake_settle(world);
  return error != REDLOCK_OK ? error : rl_lock_result(lock);
}

/* A world whose lock on a and b is held on all nodes since FAKE_START_US. */
static fake_world *held(unsigned count, rl_lock **lock) {
  fake_world *world = fake_world_new(count);
  *lock = fake_lock_many(world, AB, 2, NULL);
  assert_error(fake_hold(world, *lock), REDLOCK_OK);
  return world;
}

static int extend(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  return rl_lock_result(lock);
}

static int release(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  return rl_lock_result(lock);
}

static void assert_message(const rl_lock *lock, const char *text) {
  char message[512];
  assert_string_equal(rl_lock_message(lock, message, sizeof message), text);
}

/* ---------------------------------------------------------------------------------- acquiring */

static void a_node_is_asked_for_all_of_them_by_one_command(void **state) {
  (void)state;
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock_many(world, AB, 2, NULL);
  assert_error(once(world, lock), REDLOCK_OK);
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
  assert_error(release(world, lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
  assert_int_equal(world->nodes[0].releases, 1);
  assert_true(fake_world_end(world));
}

/* A single lock writes the same, so that each of the keys excludes it. */
static void any_overlap_excludes_in_whatever_order(void **state) {
  (void)state;
  rl_lock *first;
  fake_world *world = held(3, &first);
  rl_lock *others[] = {fake_lock_many(world, CB, 2, NULL), fake_lock_many(world, BC, 2, NULL),
                       fake_lock_many(world, ABC, 3, NULL), fake_lock(world, "a", NULL),
                       fake_lock(world, "b", NULL)};
  for (unsigned i = 0; i < COUNT_OF(others); i++) {
    assert_error(try_once(world, others[i]), REDLOCK_E_TAKEN);
    assert_int_equal(fake_keys(world, "c"), 0);
  }
  assert_error(release(world, first), REDLOCK_OK);
  for (unsigned i = 0; i < COUNT_OF(others); i++) {
    assert_error(try_once(world, others[i]), REDLOCK_OK);
    bool holds_b = i != 3;
    rl_lock *second = fake_lock_many(world, holds_b ? CB : AB, 2, NULL);
    assert_error(try_once(world, second), REDLOCK_E_TAKEN);
    rl_lock_free(second, world->now_us);
    assert_error(release(world, others[i]), REDLOCK_OK);
  }
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b") + fake_keys(world, "c"), 0);
  assert_true(fake_world_end(world));
}

static void where_one_is_taken_nothing_is_set_and_nothing_has_to_be_released(void **state) {
  (void)state;
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock_many(world, ABC, 3, NULL);
  fake_store_put(&world->nodes[0].store, "c", OTHER, REDLOCK_NEVER);
  fake_store_put(&world->nodes[1].store, "b", OTHER, REDLOCK_NEVER);
  assert_error(try_once(world, lock), REDLOCK_E_TAKEN);
  assert_int_equal(world->nodes[0].releases, 0);
  assert_int_equal(world->nodes[1].releases, 0);
  assert_int_equal(world->nodes[2].releases, 1);
  assert_int_equal(fake_keys(world, "a"), 0);
  assert_int_equal(fake_keys(world, "b") + fake_keys(world, "c"), 2);
  assert_true(fake_world_end(world));
}

static void the_message_names_the_resource_that_stood_in_the_way_and_the_nodes(void **state) {
  (void)state;
  fake_world *world = fake_world_new(5);
  rl_lock *lock = fake_lock_many(world, ABC, 3, NULL);
  fake_store_put(&world->nodes[0].store, "c", OTHER, REDLOCK_NEVER);
  fake_store_put(&world->nodes[1].store, "b", "", REDLOCK_NEVER); /* of another type */
  fake_store_put(&world->nodes[3].store, "c", OTHER, REDLOCK_NEVER);
  assert_error(try_once(world, lock), REDLOCK_E_TAKEN);
  assert_message(lock, "the lock on 'a' and 2 more is taken: 3 of 5 nodes hold one of them for "
                       "another client: 'b' on 10.0.0.2:6379; 'c' on 10.0.0.1:6379, 10.0.0.4:6379");
  world->nodes[2].policy = world->nodes[4].policy = FAKE_REFUSES;
  fake_break(world, 2, "gone");
  fake_break(world, 4, "gone");
  fake_store_remove(&world->nodes[3].store, "c");
  fake_store_put(&world->nodes[0].store, "a", OTHER, REDLOCK_NEVER);
  assert_error(try_once(world, lock), REDLOCK_E_TAKEN);
  assert_message(lock, "the lock on 'a' and 2 more is taken: 2 of 5 nodes hold one of them for "
                       "another client: 'a' on 10.0.0.1:6379; 'b' on 10.0.0.2:6379; without a "
                       "vote: "
                       "10.0.0.3:6379: Connection refused; 10.0.0.5:6379: Connection refused");
  assert_true(fake_world_end(world));
}

static void too_few_votes_name_the_resource_as_well(void **state) {
  (void)state;
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock_many(world, AB, 2, NULL);
  fake_store_put(&world->nodes[0].store, "b", OTHER, REDLOCK_NEVER);
  world->nodes[1].policy = world->nodes[2].policy = FAKE_HANGS;
  assert_error(try_once(world, lock), REDLOCK_PENDING);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_message(lock, "the lock on 'a' and 1 more: 0 of 3 nodes granted it (2 needed): "
                       "10.0.0.1:6379: 'b' is held by another client; 10.0.0.2:6379: no connection "
                       "within 100 ms; 10.0.0.3:6379: no connection within 100 ms");
  assert_true(fake_world_end(world));
}

static void one_resource_goes_as_a_plain_set(void **state) {
  (void)state;
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock_many(world, AB, 1, NULL);
  assert_error(once(world, lock), REDLOCK_OK);
  fake_command command = fake_answer(world, 0);
  assert_int_equal(command.verb, FAKE_SET);
  assert_int_equal(command.count, 0);
  assert_string_equal(command.key, "a");
  assert_true(fake_world_end(world));
}

static void a_reply_that_names_no_key_of_ours_ends_the_connection(void **state) {
  (void)state;
  static const char *const replies[] = {":0\r\n", ":3\r\n", ":-1\r\n", "$-1\r\n", "+QUEUED\r\n"};
  for (unsigned i = 0; i < COUNT_OF(replies); i++) {
    fake_world *world = fake_world_new(1);
    rl_lock *lock = fake_lock_many(world, AB, 2, NULL);
    assert_error(once(world, lock), REDLOCK_OK);
    (void)fake_reply(world, 0, replies[i]);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_int_equal(world->nodes[0].connections, 2);
    assert_true(fake_world_end(world));
  }
}

/* ------------------------------------------------------------------------------------ scripts */

/* A world whose nodes have run the scripts, and forgotten them since. */
static fake_world *forgetful(unsigned count, rl_lock **lock) {
  fake_world *world = held(count, lock);
  assert_error(extend(world, *lock), REDLOCK_OK);
  assert_error(release(world, *lock), REDLOCK_OK);
  for (unsigned i = 0; i < count; i++) {
    world->nodes[i].store.forgot_several = true;
    world->nodes[i].sets = world->nodes[i].releases = 0;
  }
  return world;
}

static void a_node_that_has_run_the_script_is_asked_by_its_name(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = fake_world_new(1);
  lock = fake_lock_many(world, AB, 2, NULL);
  for (unsigned i = 0; i < 2; i++) {
    assert_error(once(world, lock), REDLOCK_OK);
    assert_int_equal(fake_answer(world, 0).by_text, i == 0);
    assert_error(release(world, lock), REDLOCK_OK);
  }
  assert_true(fake_world_end(world));
}

static void a_node_that_has_forgotten_the_script_is_sent_its_text_in_the_same_round(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = forgetful(3, &lock);
  assert_error(once(world, lock), REDLOCK_OK);
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
  assert_true(fake_world_end(world));
}

static void it_is_sent_the_text_after_the_decision_too_while_the_lease_lasts(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = forgetful(3, &lock);
  world->nodes[0].store.forgot_several = world->nodes[1].store.forgot_several = false;
  assert_error(once(world, lock), REDLOCK_OK);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  world->now_us += 4 * SECONDS;
  assert_false(fake_answer(world, 2).by_text);
  fake_command command = fake_answer(world, 2);
  assert_true(command.by_text);
  assert_int_equal(command.ttl_ms, 6000);
  assert_int_equal(fake_holders(world, "b", rl_attempt_token(lock->lease)), 3);
  assert_true(fake_world_end(world));
}

static void no_text_follows_an_attempt_that_is_over_and_nothing_is_left_to_release(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = forgetful(3, &lock);
  assert_error(once(world, lock), REDLOCK_OK);
  (void)fake_reply(world, 0, ":1\r\n");
  (void)fake_reply(world, 1, ":2\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  (void)fake_answer(world, 2);
  fake_settle(world);
  assert_int_equal(world->nodes[2].sets, 1);
  assert_int_equal(world->nodes[2].releases, 0);
  assert_int_equal(world->core.releases->count, 0);
  assert_true(fake_world_end(world));
}

static void no_text_follows_for_a_lock_that_was_released_meanwhile(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = forgetful(3, &lock);
  world->nodes[0].store.forgot_several = world->nodes[1].store.forgot_several = false;
  assert_error(once(world, lock), REDLOCK_OK);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->nodes[2].sets, 1);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
  assert_true(fake_world_end(world));
}

/* The answer was read after a pause, before the round has been ended for it. */
static void no_text_follows_when_the_rounds_time_is_up(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = forgetful(3, &lock);
  assert_error(once(world, lock), REDLOCK_OK);
  world->now_us += 100 * MS;
  assert_false(fake_answer(world, 0).by_text);
  assert_int_equal(world->nodes[0].sets, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_true(fake_world_end(world));
}

/* ------------------------------------------------------------------------ extending, releasing */

static void an_extend_prolongs_all_of_them(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = held(3, &lock);
  world->now_us += 4 * SECONDS;
  assert_error(extend(world, lock), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + 4 * SECONDS + LEASE_US);
  for (unsigned i = 0; i < 3; i++) {
    for (unsigned k = 0; k < 2; k++) {
      assert_int_equal(fake_store_expiry(&world->nodes[i].store, world->now_us, AB[k]),
                       FAKE_START_US + 14 * SECONDS);
    }
  }
  assert_true(fake_world_end(world));
}

static void a_node_that_has_lost_any_of_them_does_not_extend_and_is_healed(void **state) {
  (void)state;
  for (unsigned lost = 0; lost < 2; lost++) {
    rl_lock *lock;
    fake_world *world = held(3, &lock);
    fake_store_remove(&world->nodes[1].store, AB[lost]);
    world->now_us += 4 * SECONDS;
    assert_error(extend(world, lock), REDLOCK_OK);
    assert_int_equal(lock->votes[1].vote, REDLOCK_VOTE_TAKEN);
    for (unsigned k = 0; k < 2; k++) {
      assert_int_equal(fake_holders(world, AB[k], rl_attempt_token(lock->lease)), 3);
      assert_int_equal(fake_store_expiry(&world->nodes[1].store, world->now_us, AB[k]),
                       FAKE_START_US + 14 * SECONDS);
    }
    assert_error(release(world, lock), REDLOCK_OK);
    assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
    assert_true(fake_world_end(world));
  }
}

static void lost_is_a_lock_of_which_a_majority_has_lost_one_and_the_rest_is_released(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = held(3, &lock);
  fake_store_remove(&world->nodes[0].store, "b");
  fake_store_put(&world->nodes[1].store, "a", OTHER, REDLOCK_NEVER);
  assert_error(extend(world, lock), REDLOCK_E_LOST);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_message(lock, "the lock on 'a' and 1 more is lost: 2 of 3 nodes no longer have its token: "
                       "10.0.0.1:6379, 10.0.0.2:6379");
  assert_int_equal(fake_keys(world, "a"), 1); /* the other's */
  assert_int_equal(fake_keys(world, "b"), 0);
  assert_true(fake_world_end(world));
}

/* A heal that is refused tells nothing of the keys that the node has kept. */
static void keys_that_a_node_kept_are_released_where_a_heal_was_refused(void **state) {
  (void)state;
  static const char *const types[] = {"ffffffffffffffffffffffffffffffffffffffff", ""};
  for (unsigned i = 0; i < 2; i++) {
    rl_lock *lock;
    fake_world *world = held(3, &lock);
    fake_store_put(&world->nodes[1].store, "a", types[i], REDLOCK_NEVER);
    assert_error(extend(world, lock), REDLOCK_OK);
    assert_int_equal(fake_holders(world, "b", rl_attempt_token(lock->lease)), 3);
    assert_error(release(world, lock), REDLOCK_OK);
    assert_int_equal(world->nodes[1].releases, 1);
    assert_int_equal(fake_keys(world, "a"), 1); /* the other's */
    assert_int_equal(fake_keys(world, "b"), 0);
    assert_true(fake_world_end(world));
  }
}

static void a_heal_whose_script_is_forgotten_leaves_the_rest_to_the_release(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = held(3, &lock);
  fake_store_remove(&world->nodes[1].store, "a");
  assert_error(extend(world, lock), REDLOCK_OK); /* heals, by the text */
  fake_store_remove(&world->nodes[1].store, "a");
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  world->nodes[1].store.forgot_several = true;
  fake_settle(world);
  assert_int_equal(fake_keys(world, "a"), 2); /* The next extend will see. */
  assert_error(extend(world, lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a"), 3);
  assert_error(release(world, lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
  assert_true(fake_world_end(world));
}

static void a_release_deletes_each_that_is_ours_and_no_other(void **state) {
  (void)state;
  static const char *const others[] = {"ffffffffffffffffffffffffffffffffffffffff", ""};
  for (unsigned i = 0; i < 4; i++) {
    rl_lock *lock;
    fake_world *world = held(3, &lock);
    for (unsigned node = 0; node < 2; node++) {
      fake_store_put(&world->nodes[node].store, AB[i % 2], others[i / 2], REDLOCK_NEVER);
    }
    assert_error(release(world, lock), REDLOCK_E_LOST);
    assert_int_equal(fake_keys(world, AB[i % 2]), 2);
    assert_int_equal(fake_keys(world, AB[1 - i % 2]), 0);
    assert_true(fake_world_end(world));
  }
}

static void a_freed_lock_leaves_none_of_them(void **state) {
  (void)state;
  rl_lock *lock;
  fake_world *world = held(3, &lock);
  rl_lock_free(lock, world->now_us);
  fake_settle(world);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
  assert_int_equal(world->core.attempts.live, 0);
  assert_true(fake_world_end(world));
}

static void a_node_that_comes_up_late_gets_all_of_them_for_what_is_left(void **state) {
  (void)state;
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock_many(world, AB, 2, NULL);
  world->nodes[2].policy = FAKE_REFUSES;
  assert_error(try_once(world, lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a"), 2);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, 3 * SECONDS);
  fake_settle(world);
  for (unsigned k = 0; k < 2; k++) {
    assert_int_equal(fake_holders(world, AB[k], rl_attempt_token(lock->lease)), 3);
    assert_int_equal(fake_store_expiry(&world->nodes[2].store, world->now_us, AB[k]),
                     FAKE_START_US + 10 * SECONDS);
  }
  assert_true(fake_world_end(world));
}

static void it_keeps_itself(void **state) {
  (void)state;
  redlock_options options = {0};
  options.auto_extend = REDLOCK_YES;
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock_many(world, AB, 2, &options);
  assert_error(fake_hold(world, lock), REDLOCK_OK);
  for (unsigned second = 0; second < 60; second++) {
    fake_pass(world, SECONDS);
    fake_settle(world);
    assert_true(rl_lock_remaining(lock, world->now_us) > 0);
    assert_int_equal(fake_holders(world, "b", rl_attempt_token(lock->lease)), 3);
  }
  assert_true(fake_world_end(world));
}

static void operators_ask_about_each_by_itself(void **state) {
  (void)state;
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock_many(world, AB, 2, NULL);
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_INSPECT, NULL, false),
               REDLOCK_E_INVALID);
  assert_message(lock, "the lock on 'a' and 1 more: inspect each resource by itself");
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_FORCE_RELEASE,
                           &(rl_question){.token = "t", .token_length = 1}, false),
               REDLOCK_E_INVALID);
  assert_int_equal(world->core.attempts.live, 0);
  assert_true(fake_world_end(world));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_node_is_asked_for_all_of_them_by_one_command),
      cmocka_unit_test(any_overlap_excludes_in_whatever_order),
      cmocka_unit_test(where_one_is_taken_nothing_is_set_and_nothing_has_to_be_released),
      cmocka_unit_test(the_message_names_the_resource_that_stood_in_the_way_and_the_nodes),
      cmocka_unit_test(too_few_votes_name_the_resource_as_well),
      cmocka_unit_test(one_resource_goes_as_a_plain_set),
      cmocka_unit_test(a_reply_that_names_no_key_of_ours_ends_the_connection),
      cmocka_unit_test(a_node_that_has_run_the_script_is_asked_by_its_name),
      cmocka_unit_test(a_node_that_has_forgotten_the_script_is_sent_its_text_in_the_same_round),
      cmocka_unit_test(it_is_sent_the_text_after_the_decision_too_while_the_lease_lasts),
      cmocka_unit_test(no_text_follows_an_attempt_that_is_over_and_nothing_is_left_to_release),
      cmocka_unit_test(no_text_follows_for_a_lock_that_was_released_meanwhile),
      cmocka_unit_test(no_text_follows_when_the_rounds_time_is_up),
      cmocka_unit_test(an_extend_prolongs_all_of_them),
      cmocka_unit_test(a_node_that_has_lost_any_of_them_does_not_extend_and_is_healed),
      cmocka_unit_test(lost_is_a_lock_of_which_a_majority_has_lost_one_and_the_rest_is_released),
      cmocka_unit_test(keys_that_a_node_kept_are_released_where_a_heal_was_refused),
      cmocka_unit_test(a_heal_whose_script_is_forgotten_leaves_the_rest_to_the_release),
      cmocka_unit_test(a_release_deletes_each_that_is_ours_and_no_other),
      cmocka_unit_test(a_freed_lock_leaves_none_of_them),
      cmocka_unit_test(a_node_that_comes_up_late_gets_all_of_them_for_what_is_left),
      cmocka_unit_test(it_keeps_itself),
      cmocka_unit_test(operators_ask_about_each_by_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
