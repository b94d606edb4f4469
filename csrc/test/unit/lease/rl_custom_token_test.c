/*
 * A token that the caller gives, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include <time.h>

#include "lease/rl_custom_token.h"

#include "lease_world.h"

static const char MINE[] = "a token that two programs know";

static rl_lock *lock_with_token(const redlock_options *options) {
  lock = fake_lock(world, KEY, options);
  assert_error(rl_custom_token_set(lock, MINE, strlen(MINE)), REDLOCK_OK);
  return lock;
}

TEST(custom_token_serves_one_acquire) {
  world = fake_world_new(3);
  lock = lock_with_token(NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, MINE), 3);
  assert_string_equal(rl_attempt_token(lock->lease), MINE);
  assert_int_equal(lock->lease->token_length, strlen(MINE));
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(lock->lease->token_length, REDLOCK_TOKEN_LENGTH);
}

/* A second attempt with the same token could lose its key to the release of the first. */
TEST(acquire_with_custom_token_is_tried_once) {
  redlock_options often = {.retry_count = 100};
  world = fake_world_new(3);
  let_other_client_hold(2, REDLOCK_NEVER);
  lock = lock_with_token(&often);
  assert_error(fake_acquire(world, lock), REDLOCK_E_TAKEN);
  fake_pass(world, 5 * SECONDS);
  fake_settle(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].sets, 1);
  }
  assert_int_equal(fake_holders(world, KEY, MINE), 0);
}

/* Another client with the same token keeps its key where the SET was refused. */
TEST(node_with_same_custom_token_is_not_released) {
  world = fake_world_new(3);
  for (unsigned i = 0; i < 3; i++) {
    fake_store_put(&world->nodes[i].store, KEY, MINE, REDLOCK_NEVER);
  }
  lock = lock_with_token(NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_E_TAKEN);
  rl_lock_free(lock, world->now_us);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, MINE), 3);
}

/* Ways in which an acquire ends before its nodes have answered. */
static void by_time(void) {
  fake_pass(world, 101 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_pass(world, 200 * MS); /* A failed attempt waits no longer for answers. */
}
static void by_broken_connections(void) {
  for (unsigned i = 0; i < world->count; i++) {
    fake_break(world, i, "Connection reset by peer");
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}
static void by_errors(void) {
  for (unsigned i = 0; i < world->count; i++) {
    (void)fake_reply(world, i, "-ERR the proxy lost its patience\r\n");
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

static void (*const ends[])(void) = {cancel_operation,      free_lock, close_core, by_time,
                                     by_broken_connections, by_errors};

/* A key of another client with the same token looks like our own, unless the SET was answered. */
TEST(unanswered_acquire_spares_same_token_of_another_client) {
  redlock_options once = fake_once();
  for (unsigned i = 0; i < COUNT_OF(ends); i++) {
    world = fake_world_new(3);
    for (unsigned k = 0; k < 3; k++) {
      fake_store_put(&world->nodes[k].store, KEY, MINE, REDLOCK_NEVER);
    }
    lock = lock_with_token(&once);
    fake_begin_acquire(world, lock);
    ends[i]();
    for (unsigned k = 0; k < 20; k++) {
      fake_settle(world);
      fake_pass(world, SECONDS);
    }
    assert_int_equal(fake_holders(world, KEY, MINE), 3);
    assert_int_equal(world->core.attempts.live, 0);
  }
}

/* The same without another client: keys that were certainly set are released, late ones, too. */
TEST(failed_acquire_releases_keys_it_certainly_set) {
  redlock_options once = fake_once();
  for (unsigned i = 0; i < 4; i++) { /* the ways that leave the connections alone */
    world = fake_world_new(3);
    lock = lock_with_token(&once);
    fake_begin_acquire(world, lock);
    (void)fake_answer(world, 0);
    ends[i]();
    fake_settle(world);
    assert_int_equal(fake_keys(world, KEY), 0);
    assert_int_equal(world->core.attempts.live, 0);
  }
}

TEST(node_that_lost_key_is_healed_by_automatic_extend) {
  world = fake_world_new(3);
  lock = lock_with_token(NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_store_remove(&world->nodes[2].store, KEY);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, MINE), 3);
}

TEST(refused_acquire_uses_token_up) {
  open_world_with_lease(1, NULL);
  assert_error(rl_custom_token_set(lock, MINE, strlen(MINE)), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_HELD);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(lock->lease->token_length, REDLOCK_TOKEN_LENGTH);
}

TEST(acquire_that_ends_before_sending_uses_token_up) {
  for (unsigned cancelled = 0; cancelled <= 1; cancelled++) {
    world = fake_world_new(1);
    lock = lock_with_token(NULL);
    world->core.options.ttl_us = cancelled ? 10 * SECONDS : 2 * MS;
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
    if (cancelled) {
      rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
    }
    fake_turn(world); /* Of 2 ms nothing is left after the drift. */
    assert_error(rl_lock_result(lock), cancelled ? REDLOCK_E_CANCELLED : REDLOCK_E_EXPIRED);
    assert_int_equal(world->nodes[0].sets, 0);
    assert_int_equal(world->core.attempts.live, 0);
    assert_null(lock->attempt);
  }
}

TEST(second_custom_token_replaces_first) {
  world = fake_world_new(1);
  lock = lock_with_token(NULL);
  rl_lock *third = fake_lock(world, "third", NULL);
  rl_lock *other = fake_lock(world, "other", NULL);
  assert_error(rl_custom_token_set(other, OTHER, strlen(OTHER)), REDLOCK_OK);
  assert_error(rl_custom_token_set(lock, "x", 1), REDLOCK_OK);
  assert_error(fake_acquire(world, third), REDLOCK_OK);
  assert_int_equal(third->lease->token_length, REDLOCK_TOKEN_LENGTH);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_string_equal(rl_attempt_token(lock->lease), "x");
  assert_error(fake_acquire(world, other), REDLOCK_OK);
  assert_string_equal(rl_attempt_token(other->lease), OTHER);
}

TEST(freed_lock_and_forked_child_drop_custom_token) {
  for (unsigned forked = 0; forked <= 1; forked++) {
    world = fake_world_new(1);
    lock = lock_with_token(NULL);
    if (forked) {
      rl_core_reset(&world->core);
    } else {
      rl_lock_free(lock, world->now_us);
    }
    assert_true(forked == 0 || lock->extension->custom_token == NULL);
    assert_int_equal(world->core.attempts.live, 0);
  }
}

/* Returns the processor time of setting tokens and freeing locks beside |others| with a token. */
static double time_beside(unsigned others) {
  world = fake_world_new(1);
  for (unsigned i = 0; i < others; i++) {
    assert_error(rl_custom_token_set(fake_lock(world, KEY, NULL), "x", 1), REDLOCK_OK);
  }
  clock_t begun = clock();
  for (unsigned i = 0; i < 2000; i++) {
    lock = fake_lock(world, KEY, NULL);
    if (i % 2 == 0) {
      assert_error(rl_custom_token_set(lock, "x", 1), REDLOCK_OK);
    }
    rl_lock_free(lock, world->now_us);
  }
  clock_t ended = clock();
  assert_true(fake_world_end(world));
  return (double)(ended - begun) / CLOCKS_PER_SEC;
}

/* Each lock with a token must not search the other ones. */
TEST(ten_thousand_tokens_of_others_cost_a_lock_nothing) {
  double alone = time_beside(1);
  assert_true(time_beside(10000) < 10 * alone + 0.01);
}
