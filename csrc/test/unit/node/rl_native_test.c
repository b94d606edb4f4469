/*
 * Native commands and nodes without scripts, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "keys.h"
#include "lease/rl_custom_token.h"
#include "lock/rl_round.h"
#include "node/rl_native.h"
#include "world_steps.h"

static fake_world *native_world(unsigned count, unsigned native) {
  fake_world *world = fake_world_new(count);
  fake_enable_native(world, native);
  return world;
}

static fake_world *scriptless_world(unsigned count, unsigned native) {
  fake_world *world = native_world(count, native);
  for (unsigned i = 0; i < count; i++) {
    world->nodes[i].store.runs_none = true;
  }
  return world;
}

static void acquire_and_release(fake_world *world, rl_lock *lock) {
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* A lock that was acquired and released |pairs| times: two, and its nodes' commands are known. */
static rl_lock *used_lock(fake_world *world, unsigned pairs) {
  rl_lock *lock = fake_lock(world, KEY, NULL);
  for (unsigned i = 0; i < pairs; i++) {
    acquire_and_release(world, lock);
  }
  return lock;
}

static rl_native native_of(const fake_world *world, unsigned node) {
  return world->core.nodes[node]->link.native;
}

/* Begins a release, and returns its command on node 0, which is not answered. */
static fake_command begin_release(fake_world *world, rl_lock *lock) {
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_begin_release(world, lock);
  return world->nodes[0].queue[0];
}

TEST(first_release_of_connection_tries_nothing) {
  fake_world *world = native_world(3, RL_NATIVE_DELIFEQ);
  (void)used_lock(world, 1);
  assert_int_equal(world->nodes[0].releases, 1);
  assert_int_equal(native_of(world, 0), RL_NATIVE_WANTED);
}

TEST(second_release_is_followed_by_tries_of_the_same_key_and_token) {
  fake_world *world = native_world(1, RL_NATIVE_DELEX);
  rl_lock *lock = used_lock(world, 1);
  fake_command release = begin_release(world, lock);
  assert_int_equal(world->nodes[0].queued, 1);
  assert_int_equal(release.native, 0);
  (void)fake_answer(world, 0);
  assert_int_equal(world->nodes[0].queued, 2);
  for (unsigned i = 0; i < 2; i++) {
    const fake_command *try = &world->nodes[0].queue[i];
    assert_int_equal(try->native, i == 0 ? RL_NATIVE_DELIFEQ : RL_NATIVE_DELEX);
    assert_string_equal(try->key, KEY);
    assert_string_equal(try->token, release.token);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(native_of(world, 0), RL_NATIVE_DELEX);
}

/* The tries would delete the key before the text of the script does. */
TEST(release_by_unknown_script_is_not_lost) {
  fake_world *world = native_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = used_lock(world, 1);
  world->nodes[0].store.forgot_release = true;
  acquire_and_release(world, lock);
  assert_int_equal(native_of(world, 0), RL_NATIVE_DELIFEQ);
}

TEST(each_node_is_released_by_the_command_that_it_knows) {
  fake_world *world = native_world(3, RL_NATIVE_DELIFEQ);
  world->nodes[1].store.native = RL_NATIVE_DELEX;
  world->nodes[2].store.native = 0;
  rl_lock *lock = used_lock(world, 2);
  (void)begin_release(world, lock);
  static const unsigned known[] = {RL_NATIVE_DELIFEQ, RL_NATIVE_DELEX, 0};
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].queued, 1);
    assert_int_equal(world->nodes[i].queue[0].native, known[i]);
  }
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* A proxy answers for the server, and deletes nothing. */
TEST(try_that_claims_to_have_deleted_the_key_is_no_proof) {
  fake_world *world = native_world(1, 0);
  rl_lock *lock = used_lock(world, 1);
  (void)begin_release(world, lock);
  (void)fake_answer(world, 0);
  (void)fake_reply(world, 0, ":1\r\n");
  (void)fake_reply(world, 0, ":1\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(native_of(world, 0), RL_NATIVE_NONE);
  acquire_and_release(world, lock);
}

TEST(node_that_hangs_up_on_tries_gets_none_again) {
  fake_world *world = native_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = used_lock(world, 1);
  (void)begin_release(world, lock);
  (void)fake_answer(world, 0);
  fake_break(world, 0, "reset by peer");
  for (unsigned i = 0; i < 3; i++) {
    acquire_and_release(world, lock);
  }
  assert_int_equal(native_of(world, 0), RL_NATIVE_OFF);
}

TEST(release_with_callers_token_is_not_followed_by_tries) {
  fake_world *world = native_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = used_lock(world, 1);
  assert_error(rl_custom_token_set(lock, "mine", 4), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_begin_release(world, lock);
  (void)fake_answer(world, 0);
  assert_int_equal(world->nodes[0].queued, 0);
}

TEST(native_release_that_is_unknown_again_is_repeated_by_script) {
  fake_world *world = native_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = used_lock(world, 2);
  world->nodes[0].store.native = 0; /* A proxy leads to another server now. */
  acquire_and_release(world, lock);
  assert_int_equal(native_of(world, 0), RL_NATIVE_NONE);
  acquire_and_release(world, lock);
}

/* An administrator has taken the right away, while the connection lasts. */
TEST(native_release_without_right_is_repeated_by_script) {
  static const unsigned natives[] = {RL_NATIVE_DELIFEQ, RL_NATIVE_DELEX};
  static const char *const errors[] = {
      "-NOPERM User app has no permissions to run the 'delifeq' command\r\n",
      "-NOPERM User app has no permissions to run the 'delex' command\r\n"};
  for (unsigned i = 0; i < 2; i++) {
    fake_world *world = native_world(1, natives[i]);
    rl_lock *lock = used_lock(world, 2);
    assert_int_equal(begin_release(world, lock).native, natives[i]);
    (void)fake_reply(world, 0, errors[i]);
    fake_settle(world);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(fake_keys(world, KEY), 0);
    assert_int_equal(native_of(world, 0), RL_NATIVE_NONE);
  }
}

/* The user has the right to DELIFEQ again, but no longer that to EVAL. */
TEST(refused_native_command_is_tried_again_without_scripts) {
  fake_world *world = native_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = used_lock(world, 2);
  world->nodes[0].store.native = 0;
  acquire_and_release(world, lock);
  assert_int_equal(native_of(world, 0), RL_NATIVE_NONE);
  world->nodes[0].store.runs_none = true;
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(fake_release(world, lock), REDLOCK_E_UNAVAILABLE);
  fake_store_remove(&world->nodes[0].store, KEY);
  world->nodes[0].store.native = RL_NATIVE_DELIFEQ;
  fake_pass(world, RL_NATIVE_NO_SCRIPTS_US);
  acquire_and_release(world, lock);
}

TEST(unanswered_native_release_is_repeated) {
  fake_world *world = native_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = used_lock(world, 2);
  assert_int_equal(begin_release(world, lock).native, RL_NATIVE_DELIFEQ);
  fake_break(world, 0, "reset by peer");
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(native_release_keeps_key_of_another_client) {
  fake_world *world = native_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = used_lock(world, 2);
  (void)begin_release(world, lock);
  fake_store_put(&world->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_LOST);
  assert_int_equal(fake_keys(world, KEY), 1);
}

/* --------------------------------------------------------------------------- without scripts */

TEST(node_without_scripts_grants_extends_and_releases) {
  static const unsigned natives[] = {RL_NATIVE_DELIFEQ, RL_NATIVE_DELEX};
  for (unsigned i = 0; i < 2; i++) {
    fake_world *world = scriptless_world(3, natives[i]);
    rl_lock *lock = fake_lock(world, KEY, NULL);
    for (unsigned k = 0; k < 3; k++) {
      assert_error(fake_acquire(world, lock), REDLOCK_OK);
      fake_pass(world, SECONDS);
      assert_error(fake_extend(world, lock, 0), REDLOCK_OK);
      assert_int_equal(rl_lock_remaining(lock, world->now_us), 9898 * MS);
      assert_error(fake_release(world, lock), REDLOCK_OK);
      assert_int_equal(fake_keys(world, KEY), 0);
    }
    assert_contains(world->core.nodes[0]->error, "it runs no scripts");
  }
}

TEST(node_with_neither_script_nor_native_command_names_both) {
  fake_world *world = scriptless_world(1, 0);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(fake_extend(world, lock, 0), REDLOCK_E_UNAVAILABLE);
  assert_contains(rl_round_reason(lock, 0), "it runs no scripts, and knows no SET IFEQ");
  assert_error(fake_release(world, lock), REDLOCK_E_UNAVAILABLE);
  assert_contains(rl_round_reason(lock, 0), "neither DELIFEQ nor DELEX");
  assert_int_equal(fake_keys(world, KEY), 1);
}

TEST(vote_of_node_without_scripts_names_what_needs_them) {
  static const char *const keys[] = {"a", "b"};
  fake_world *world = scriptless_world(1, RL_NATIVE_DELIFEQ);
  redlock_options once = fake_once();
  rl_lock *several = fake_lock_many(world, keys, 2, &once);
  assert_error(fake_acquire(world, several), REDLOCK_E_UNAVAILABLE);
  assert_contains(rl_round_reason(several, 0), "it runs no scripts, which a lock with several");
  once.fence = REDLOCK_YES;
  rl_lock *fenced = fake_lock(world, KEY, &once);
  assert_error(fake_acquire(world, fenced), REDLOCK_E_UNAVAILABLE);
  assert_contains(rl_round_reason(fenced, 0), "it runs no scripts, which a lock with several");
}

/* The user gets the right to run scripts. The node knows no native command. */
TEST(node_that_runs_a_script_again_releases_by_script) {
  fake_world *world = scriptless_world(1, 0);
  redlock_options once = fake_once();
  once.fence = REDLOCK_YES;
  rl_lock *lock = fake_lock(world, KEY, &once);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  world->nodes[0].store.runs_none = false;
  acquire_and_release(world, lock);
  assert_string_equal(world->core.nodes[0]->error, "");
}

TEST(native_extend_with_shorter_ttl_keeps_end_of_key) {
  fake_world *world = scriptless_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  redlock_time end_us = fake_store_expiry(&world->nodes[0].store, world->now_us, KEY);
  fake_pass(world, SECONDS);
  assert_error(fake_extend(world, lock, 2 * SECONDS), REDLOCK_OK);
  assert_true(fake_store_expiry(&world->nodes[0].store, world->now_us, KEY) >= end_us);
}

/* A lease on a node that runs no scripts. */
static rl_lock *scriptless_lease(fake_world *world) {
  rl_lock *lock = used_lock(world, 1);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  return lock;
}

/* The node of a lease may still execute an extend for |ttl_us|. */
static void leave_extend_unanswered(fake_world *world, rl_lock *lock, redlock_duration ttl_us) {
  fake_begin_extend(world, lock, ttl_us);
  assert_int_equal(world->nodes[0].queue[0].native, RL_NATIVE_DELIFEQ);
  fake_break(world, 0, "reset by peer");
  fake_settle(world);
}

TEST(extend_never_grows_after_an_unanswered_native_one) {
  for (unsigned by_script = 0; by_script <= 1; by_script++) {
    fake_world *world = scriptless_world(1, RL_NATIVE_DELIFEQ);
    rl_lock *lock = scriptless_lease(world);
    leave_extend_unanswered(world, lock, 20 * SECONDS);
    world->nodes[0].store.runs_none = !by_script; /* The user may have the right again. */
    assert_error(fake_extend(world, lock, 30 * SECONDS), REDLOCK_E_UNAVAILABLE);
    assert_error(fake_extend(world, lock, 20 * SECONDS), REDLOCK_OK);
  }
}

/* The proxy's connection to the server may be slow, or another one. */
TEST(native_extend_never_grows_after_an_error_of_a_proxy) {
  static const char *const errors[] = {"-ERR upstream timed out\r\n", "-ERR syntax error\r\n",
                                       "-NOPERM no permissions to run the 'set' command\r\n"};
  for (unsigned i = 0; i < COUNT_OF(errors); i++) {
    fake_world *world = scriptless_world(1, RL_NATIVE_DELIFEQ);
    rl_lock *lock = scriptless_lease(world);
    fake_begin_extend(world, lock, 20 * SECONDS);
    (void)fake_reply(world, 0, errors[i]);
    fake_settle(world);
    fake_break(world, 0, "reset by peer");
    fake_settle(world);
    assert_error(fake_extend(world, lock, 30 * SECONDS),
                 i == 0 ? REDLOCK_E_UNAVAILABLE : REDLOCK_OK);
  }
}

TEST(node_that_may_shorten_its_key_gets_none_again) {
  fake_world *world = scriptless_world(3, RL_NATIVE_DELIFEQ);
  rl_lock *lock = scriptless_lease(world);
  leave_extend_unanswered(world, lock, 10 * SECONDS);
  assert_error(fake_extend(world, lock, 30 * SECONDS), REDLOCK_OK);
  assert_contains(rl_round_reason(lock, 0), "may still execute an earlier extend");
  fake_store_remove(&world->nodes[0].store, KEY);
  world->nodes[0].store.runs_none = false;
  assert_error(fake_extend(world, lock, 5 * SECONDS),
               REDLOCK_OK); /* The node denies the key, but a heal would last for 30 s. */
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 2);
}

TEST(backfill_skips_a_node_that_may_shorten_its_key) {
  fake_world *world = scriptless_world(3, RL_NATIVE_DELIFEQ);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  world->nodes[0].policy = FAKE_SILENT;
  fake_begin_acquire(world, lock);
  (void)fake_answer(world, 1);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  fake_begin_extend(world, lock, 0);
  (void)fake_reply(world, 0, "+OK\r\n"); /* the handshake */
  (void)fake_answer(world, 0);           /* It runs no scripts. */
  assert_int_equal(world->nodes[0].queue[0].native, RL_NATIVE_DELIFEQ);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_break(world, 0, "reset by peer");
  fake_settle(world);
  assert_error(fake_extend(world, lock, 30 * SECONDS), REDLOCK_OK);
  fake_pass(world, 2 * SECONDS);
  fake_settle(world);
  assert_true(world->nodes[0].connected);
  assert_int_equal(world->nodes[0].sets, 0);
}

TEST(lease_with_callers_token_is_not_extended_natively) {
  fake_world *world = scriptless_world(1, RL_NATIVE_DELIFEQ);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_custom_token_set(lock, "mine", 4), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  for (unsigned i = 0; i < 2; i++) {
    assert_error(fake_extend(world, lock, 0), REDLOCK_E_UNAVAILABLE);
    assert_contains(rl_round_reason(lock, 0), "it runs no scripts, which this extend needs");
  }
}

TEST(refusals_of_scripts_are_recognised) {
  static const char *const refusals[] = {
      "NOPERM this user has no permissions to run the 'eval' command or its subcommand",
      "NOPERM User lock has no permissions to run the 'evalsha' command",
      "ERR unknown command 'EVAL', with args beginning with: 'x'",
      "ERR unknown command `EVALSHA`, with args beginning with: `x`",
      "ERR unknown command 'evalsha'", /* of a proxy */
      "ERR Could not find scripting engine 'lua'"};
  static const char *const different[] = {
      "NOPERM this user has no permissions to access one of the keys used as arguments",
      "ERR Error running script: NOPERM this user has no permissions to run the 'del' command",
      "ERR unknown command 'DELIFEQ', with args beginning with: 'EVAL'",
      "ERR unknown command",
      "NOSCRIPT No matching script. Please use EVAL.",
      ""};
  for (unsigned i = 0; i < COUNT_OF(refusals); i++) {
    assert_true(rl_native_refuses_scripts(refusals[i]));
  }
  for (unsigned i = 0; i < COUNT_OF(different); i++) {
    assert_false(rl_native_refuses_scripts(different[i]));
  }
}
