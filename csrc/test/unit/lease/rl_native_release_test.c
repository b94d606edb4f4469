/*
 * The waiters flag behind a native release, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_custom_token.h"
#include "lifecycle/rl_grace.h"
#include "node/rl_native.h"
#include "waiting_world.h"

static fake_world *native_world(unsigned count) {
  fake_world *world = fake_world_new_notifying(count);
  fake_enable_native(world, RL_NATIVE_DELIFEQ);
  rl_lock *lock = fake_lock(world, "warm", NULL);
  for (unsigned i = 0; i < 2; i++) {
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
    fake_settle(world);
  }
  assert_int_equal(world->core.nodes[0]->link.native, RL_NATIVE_DELIFEQ);
  return world;
}

/* Begins the release of a held lock; its commands are not answered. */
static rl_lock *begin_release(fake_world *world) {
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[0].queue[0].native, RL_NATIVE_DELIFEQ);
  return lock;
}

static void wait_for_key(fake_world *world) {
  for (unsigned i = 0; i < world->count; i++) {
    fake_queue_put(&world->nodes[i].store, KEY, OTHERS_ENTRY);
    fake_queue_subscribe(&world->nodes[i].store, 1, OTHERS_CHANNEL);
  }
}

static unsigned messages(const fake_world *world, unsigned node) {
  return world->nodes[node].store.message_count;
}

TEST(release_without_waiters_is_two_commands) {
  fake_world *world = native_world(3);
  rl_lock *lock = begin_release(world);
  assert_int_equal(world->nodes[0].queued, 2);
  assert_int_equal(world->nodes[0].queue[1].verb, FAKE_FLAG);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->core.nodes[0]->link.outstanding_count, 0);
}

TEST(release_with_waiters_notifies_the_first_ticket) {
  fake_world *world = native_world(3);
  wait_for_key(world);
  rl_lock *lock = begin_release(world);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i);
    assert_int_equal(messages(world, i), 0);
    (void)fake_answer(world, i);
    assert_int_equal(fake_next(world, i), FAKE_RELEASE); /* the script, which notifies */
    (void)fake_answer(world, i);
    assert_int_equal(messages(world, i), 1);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* SCRIPT FLUSH between the flag and the notification. */
TEST(notification_is_sent_as_text_to_node_that_forgot_its_script) {
  fake_world *world = native_world(1);
  wait_for_key(world);
  (void)begin_release(world);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 0);
  assert_false(world->nodes[0].queue[0].by_text);
  world->nodes[0].store.forgot_release = true;
  (void)fake_answer(world, 0);
  assert_int_equal(messages(world, 0), 0);
  assert_true(world->nodes[0].queue[0].by_text);
  fake_settle(world);
  assert_int_equal(messages(world, 0), 1);
}

TEST(flag_stays_for_holder_that_took_the_key_in_between) {
  fake_world *world = native_world(1);
  wait_for_key(world);
  (void)begin_release(world);
  (void)fake_answer(world, 0);
  fake_store_put(&world->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  fake_settle(world);
  assert_int_equal(messages(world, 0), 0);
  assert_non_null(fake_queue_at(&world->nodes[0].store, KEY, 0));
  let_other_release(world, 0);
  assert_int_equal(messages(world, 0), 1);
}

TEST(denied_native_release_names_the_nodes) {
  fake_world *world = native_world(3);
  rl_lock *lock = begin_release(world);
  char message[1024];
  for (unsigned i = 0; i < 3; i++) {
    fake_store_put(&world->nodes[i].store, KEY, OTHER, REDLOCK_NEVER);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_LOST);
  assert_non_null(strstr(rl_lock_message(lock, message, sizeof message),
                         "is lost: 2 of 3 nodes no longer have its token: 10.0.0.1:6379, "));
}

TEST(broken_native_release_is_repeated_by_the_script_that_notifies) {
  fake_world *world = native_world(1);
  char reply[FAKE_REPLY_MAX];
  wait_for_key(world);
  (void)begin_release(world);
  (void)fake_execute(world, 0, reply); /* It deletes the key, and the reply is lost. */
  fake_break(world, 0, "reset by peer");
  fake_settle(world);
  assert_int_equal(messages(world, 0), 1);
}

TEST(release_that_no_caller_awaits_uses_the_script) {
  fake_world *world = native_world(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[0].queue[0].native, 0);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(refused_flag_ends_native_releases) {
  fake_world *world = native_world(1);
  (void)begin_release(world);
  (void)fake_answer(world, 0);
  (void)fake_reply(world, 0,
                   "-NOPERM this user has no permissions to run the 'exists' command\r\n");
  assert_int_equal(world->core.nodes[0]->link.native, RL_NATIVE_NONE);
}

/* A proxy may send the replies one by one, and the program may make its next call much later. */
TEST(blocking_release_waits_for_the_flag_of_a_node_that_has_released) {
  fake_world *world = native_world(3);
  wait_for_key(world);
  rl_lock *lock = begin_release(world);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(rl_grace_until(lock, world->now_us), world->now_us + 100 * MS);
  (void)fake_answer(world, 0);
  assert_int_equal(fake_next(world, 0), FAKE_RELEASE);
  assert_true(rl_grace_until(lock, world->now_us) > world->now_us);
  (void)fake_answer(world, 1);
  assert_int_equal(fake_next(world, 1), FAKE_RELEASE);
  assert_true(rl_grace_until(lock, world->now_us) <= world->now_us); /* Node 2 may be slow. */
  fake_settle(world);
}

TEST(denied_notification_is_not_repeated_with_each_release) {
  static const char *const answers[] = {
      ":3\r\n", "-NOPERM User app has no permissions to run the 'evalsha' command\r\n"};
  for (unsigned i = 0; i < COUNT_OF(answers); i++) {
    fake_world *world = native_world(1);
    wait_for_key(world);
    (void)begin_release(world);
    (void)fake_answer(world, 0);
    (void)fake_answer(world, 0);
    assert_int_equal(fake_next(world, 0), FAKE_RELEASE);
    (void)fake_reply(world, 0, answers[i]);
    fake_settle(world);
    rl_lock *lock = begin_release(world);
    assert_int_equal(world->nodes[0].queued, 1); /* It does not ask for the flag. */
    fake_settle(world);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    fake_pass(world, RL_SUBSCRIBER_REFUSED_US);
    (void)begin_release(world);
    assert_int_equal(world->nodes[0].queued, 2);
    fake_settle(world);
  }
}

/* The script that notifies would delete the key of another client with that token. */
TEST(release_with_callers_token_uses_the_script) {
  fake_world *world = native_world(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_custom_token_set(lock, "mine", 4), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  wait_for_key(world);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[0].queue[0].native, 0);
  assert_int_equal(world->nodes[0].queued, 1);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(messages(world, 0), 1);
}
