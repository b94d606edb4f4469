/*
 * Releasing by force, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease_world.h"

static const char ONE[] = "1111111111111111111111111111111111111111";
static const char TWO[] = "two of another library";

static void begin_force(const char *token) {
  lock = fake_lock(world, KEY, NULL);
  assert_error(
      rl_lock_ask(lock, world->now_us, RL_OPERATION_FORCE_RELEASE,
                  &(rl_question){.token = token,
                                 .token_length = token == NULL ? REDLOCK_TOKEN_ANY : strlen(token)},
                  true),
      REDLOCK_OK);
  fake_turn(world);
}

static void put(unsigned node, const char *token) {
  fake_store_put(&world->nodes[node].store, KEY, token, REDLOCK_NEVER);
}

TEST(force_release_deletes_only_named_token) {
  world = fake_world_new(5);
  for (unsigned i = 0; i < 4; i++) {
    put(i, i < 2 ? TWO : ONE);
  }
  begin_force(TWO);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_ptr_equal(rl_core_next_ended(&world->core), lock);
  assert_int_equal(fake_holders(world, KEY, TWO), 0);
  assert_int_equal(fake_holders(world, KEY, ONE), 2);
  assert_int_equal(lock->quorum.granted, 2);
  assert_int_equal(lock->quorum.denied, 3);
}

TEST(force_release_of_unheld_token_is_not_held) {
  char message[256];
  world = fake_world_new(3);
  put(0, ONE);
  put(1, ""); /* of another type */
  begin_force(TWO);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_NOT_HELD);
  assert_string_equal(rl_lock_message(lock, message, sizeof message),
                      "'orders:42': no node that answered has such a key: the lock is free or "
                      "has another holder, so inspect it again");
  assert_int_equal(fake_keys(world, KEY), 2);
}

TEST(any_token_deletes_whatever_key_holds) {
  char message[256];
  world = fake_world_new(3);
  put(0, ONE);
  put(1, "");
  begin_force(NULL);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_FORCE_RELEASE,
                           &(rl_question){.token = NULL, .token_length = REDLOCK_TOKEN_ANY}, false),
               REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_NOT_HELD);
  assert_string_equal(rl_lock_message(lock, message, sizeof message),
                      "'orders:42': no node that answered has such a key: the lock is free or "
                      "has another holder, so inspect it again");
}

/* It could meet the key of the next holder. */
TEST(force_release_is_sent_once) {
  for (unsigned any = 0; any <= 1; any++) {
    world = fake_world_new(3);
    begin_force(any ? NULL : ONE);
    fake_break(world, 0, "it was cut");
    fake_reply(world, 1, "-LOADING Redis is loading the dataset in memory\r\n");
    fake_pass(world, 101 * MS); /* The third does not answer. */
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    rl_lock_free(lock, world->now_us);
    put(0, TWO);
    put(1, TWO);
    for (unsigned i = 0; i < 20; i++) {
      fake_pass(world, SECONDS);
      assert_int_equal(world->nodes[0].queued, 0);
      assert_int_equal(world->nodes[1].queued, 0);
    }
    assert_int_equal(fake_holders(world, KEY, TWO), 2);
  }
}

TEST(force_release_waits_for_all_nodes) {
  world = fake_world_new(3);
  put(0, ONE);
  put(1, ONE);
  begin_force(ONE);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 101 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(force_release_of_minority_is_unavailable_and_names_nodes) {
  char message[512];
  world = fake_world_new(3);
  put(0, ONE);
  world->nodes[1].policy = FAKE_REFUSES;
  world->nodes[2].policy = FAKE_HANGS;
  begin_force(ONE);
  fake_settle(world);
  fake_pass(world, 101 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_contains(rl_lock_message(lock, message, sizeof message),
                  "1 of 3 nodes confirmed its release (2 needed)");
  assert_contains(message, "Connection refused");
}

TEST(force_released_lock_can_be_acquired) {
  world = fake_world_new(3);
  for (unsigned i = 0; i < 3; i++) {
    put(i, ONE);
  }
  begin_force(ONE);
  fake_settle(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_FORCE_RELEASE,
                           &(rl_question){.token = ONE, .token_length = strlen(ONE)}, false),
               REDLOCK_E_HELD);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
}
