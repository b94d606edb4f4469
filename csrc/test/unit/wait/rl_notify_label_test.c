/*
 * The label of the holder in the message of a waiter (NTF-1 of rl_notify.c).
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait/rl_notify.h"
#include "waiting_world.h"

#define DIGITS "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"

static redlock_options labelled(void) {
  redlock_options options = patient_options();
  options.wait_us = 5 * SECONDS;
  options.label = "waiter";
  return options;
}

static void hold(fake_world *world, unsigned node, const char *token) {
  fake_store_put(&world->nodes[node].store, KEY, token, world->now_us + 600 * SECONDS);
}

static void hold_all(fake_world *world, const char *token) {
  for (unsigned i = 0; i < world->count; i++) {
    hold(world, i, token);
  }
}

static const char *message_of(const rl_lock *lock) {
  static char message[1024];
  (void)rl_lock_message(lock, message, sizeof message);
  assert_null(strstr(message, "aaaa"));
  return message;
}

/* Lets the budget end. */
static const char *taken(fake_world *world, const rl_lock *lock) {
  pass(world, 6 * SECONDS);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  return message_of(lock);
}

TEST(waiter_with_a_label_names_the_holder) {
  redlock_options options = labelled();
  fake_world *world = world_with_subscribers(3);
  hold_all(world, DIGITS ":host a, pid 7, n\xc3\xa4"
                         "chtlich");
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  assert_string_equal(taken(world, lock),
                      "'orders:42' is taken, held by 'host a, pid 7, n\xc3\xa4"
                      "chtlich': 2 of 3 "
                      "nodes hold it for another client: 10.0.0.1:6379, 10.0.0.2:6379");
  /* The next acquire tries once, and learns of no holder. */
  redlock_options once = {.wait_us = REDLOCK_DURATION_NONE};
  assert_error(rl_lock_acquire(lock, world->now_us, &once, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_null(strstr(message_of(lock), "held by"));
}

/* Other programs, and clients without a label; and a waiter without one. */
TEST(token_without_a_valid_label_names_no_holder) {
  static const char *const tokens[] = {
      DIGITS,
      DIGITS ":",
      DIGITS "a:label",
      DIGITS ";label",
      "label",
      DIGITS ":line\nbreak",
      DIGITS ":\x1b[2J",
      DIGITS ":\xff",
      DIGITS ":\xc2\x9b",
      DIGITS ":host a",
  };
  for (unsigned i = 0; i < COUNT_OF(tokens); i++) {
    redlock_options options = i + 1 < COUNT_OF(tokens) ? labelled() : patient_options();
    fake_world *world = world_with_subscribers(3);
    hold_all(world, tokens[i]);
    options.wait_us = 5 * SECONDS;
    rl_lock *lock = begin_acquire_of(world, KEY, &options);
    assert_contains(taken(world, lock), "'orders:42' is taken: ");
  }
}

TEST(label_of_a_minority_is_not_named) {
  redlock_options options = labelled();
  fake_world *world = world_with_subscribers(5);
  for (unsigned i = 0; i < 5; i++) {
    hold(world, i, i < 2 ? DIGITS ":host a" : i < 4 ? DIGITS ":host b" : DIGITS);
  }
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  assert_null(strstr(taken(world, lock), "held by"));
}

TEST(label_of_a_bare_majority_is_named) {
  redlock_options options = labelled();
  fake_world *world = world_with_subscribers(3);
  for (unsigned i = 0; i < 3; i++) {
    hold(world, i, i < 2 ? DIGITS ":host a" : DIGITS);
  }
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  assert_contains(taken(world, lock), ", held by 'host a': ");
}

TEST(message_names_the_last_reported_holder) {
  redlock_options options = labelled();
  fake_world *world = world_with_subscribers(3);
  hold_all(world, DIGITS ":host a");
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  remove_keys_unnoticed(world);
  hold_all(world, DIGITS ":host b");
  assert_contains(taken(world, lock), ", held by 'host b': ");
}

TEST(queued_waiter_names_the_holder_too) {
  redlock_options options = labelled();
  fake_world *world = world_with_subscribers(3);
  hold_all(world, DIGITS ":host a");
  rl_lock *head = begin_acquire_of(world, KEY, &options);
  options.wait_us = 3 * SECONDS;
  rl_lock *queued = begin_acquire_of(world, KEY, &options);
  assert_ptr_equal(queued->waitlist, head->waitlist);
  assert_int_equal(queued->phase, RL_PHASE_QUEUED);
  pass(world, 4 * SECONDS);
  assert_error(rl_lock_result(queued), REDLOCK_E_TAKEN);
  assert_contains(message_of(queued), ", held by 'host a': ");
  assert_contains(taken(world, head), ", held by 'host a': ");
}

/* A granted waiter, and its next acquire, know nothing of the former holder. */
TEST(granted_waiter_forgets_the_holder) {
  redlock_options options = labelled();
  fake_world *world = world_with_subscribers(3);
  hold_all(world, DIGITS ":host a");
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  remove_keys_unnoticed(world);
  pass(world, 4 * SECONDS);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_string_equal(message_of(lock), "");
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(forgotten_script_is_sent_as_text) {
  redlock_options options = labelled();
  fake_world *world = world_with_subscribers(3);
  hold_all(world, DIGITS ":host a");
  rl_lock *first = begin_acquire_of(world, KEY, &options);
  assert_contains(taken(world, first), "held by 'host a'");
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].store.forgot_queue_scripts = true;
  }
  rl_lock *second = begin_acquire_of(world, KEY, &options);
  assert_contains(taken(world, second), "held by 'host a'");
  assert_int_equal(world->core.notify->refused, 0);
}

/* A string is an answer only to the script that asks for a label. */
TEST(malformed_answer_is_refused) {
  static const char *const answers[] = {
      "$8\r\n4000;abc\r\n", "$4\r\n4000\r\n",
      "$4\r\n:abc\r\n",     "$25\r\n1234567890123456789012:ab\r\n",
      "$0\r\n\r\n",         "$5\r\n-1:ab\r\n",
  };
  for (unsigned i = 0; i < COUNT_OF(answers); i++) {
    redlock_options options = labelled();
    fake_world *world = world_with_subscribers(1);
    hold_all(world, DIGITS ":host a");
    rl_lock *lock = fake_lock(world, KEY, &options);
    fake_begin_acquire(world, lock);
    (void)fake_answer(world, 0); /* SET */
    assert_int_equal(fake_reply(world, 0, answers[i]).verb, FAKE_ENQUEUE);
    assert_int_equal(world->core.notify->refused, 1);
  }
}
