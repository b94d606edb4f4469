/*
 * Fencing tokens, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_fence.h"

#include "lease/rl_attach.h"
#include "lifecycle/rl_detach.h"
#include "lock/rl_round.h"
#include "lock/rl_steps.h"

#include "lease_world.h"

static const char *const AB[] = {"a", "b"};

#define EPOCH_US (1700000000 * SECONDS) /* of the nodes' clocks; the test's counts from 0 */
#define MAX ((uint64_t)9007199254740991)

static const redlock_options FENCED = {.fence = REDLOCK_YES, .retry_count = REDLOCK_RETRIES_NONE};

static void open_world(unsigned count) {
  world = fake_world_new(count);
  for (unsigned i = 0; i < count; i++) {
    world->nodes[i].store.ahead_us = EPOCH_US;
  }
}

static uint64_t clock_of(void) {
  return world->now_us + EPOCH_US;
}

/* A world with a lock whose acquire is on its way to the nodes. */
static void acquiring(unsigned count) {
  open_world(count);
  lock = fake_lock(world, KEY, &FENCED);
  fake_begin_acquire(world, lock);
}

static void hold_fenced(unsigned count) {
  open_world(count);
  lock = fake_lock(world, KEY, &FENCED);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

static uint64_t token_of(const rl_lock *self) {
  return rl_lock_remaining(self, self->core->now_us) > 0 ? rl_fence_token(self) : 0;
}

static void set_counter(unsigned node, const char *key, uint64_t value) {
  fake_store_count(&world->nodes[node].store, key, value, REDLOCK_NEVER);
}

static uint64_t counter(unsigned node) {
  return fake_store_counter(&world->nodes[node].store, world->now_us, KEY);
}

/* ------------------------------------------------------------------------------------ one round */

TEST(first_proposal_without_clock_is_1) {
  acquiring(3);
  assert_true(world->nodes[2].queue[0].fence == 1);
  fake_settle(world);
  assert_true(token_of(lock) == (clock_of() - SECONDS) / RL_FENCE_TICK_US);
}

/* A program with a correct wall clock needs no second round for its first grant. */
TEST(first_proposal_uses_clock_of_program) {
  open_world(3);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].store.ahead_us = EPOCH_US + (redlock_duration)i * 300;
  }
  assert_true(
      rl_node_clock_note(&world->core.wall, clock_of() + 5000, world->now_us, world->now_us));
  lock = fake_lock(world, KEY, &FENCED);
  world->now_us += SECONDS;
  fake_begin_acquire(world, lock);
  assert_true(world->nodes[2].queue[0].fence == (clock_of() + 5000) / RL_FENCE_TICK_US);
  assert_error(let_majority_answer(), REDLOCK_OK);
  assert_true(token_of(lock) == (clock_of() + 5000) / RL_FENCE_TICK_US);
  assert_error(release(lock), REDLOCK_OK);
  world->now_us += SECONDS; /* From now on it goes by theirs. */
  fake_begin_acquire(world, lock);
  assert_true(world->nodes[2].queue[0].fence == (clock_of() + 300) / RL_FENCE_TICK_US);
  fake_settle(world);
}

TEST(next_proposal_is_median_of_clocks) {
  open_world(3);
  world->nodes[0].store.ahead_us = EPOCH_US + 7000;
  world->nodes[1].store.ahead_us = EPOCH_US - 9000;
  world->nodes[2].store.ahead_us = EPOCH_US + 300;
  lock = fake_lock(world, KEY, &FENCED);
  rl_lock *other = fake_lock(world, "other", &FENCED);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_pass(world, 5 * SECONDS);
  fake_begin_acquire(world, other);
  for (unsigned i = 0; i < 3; i++) {
    assert_true(world->nodes[i].queue[0].fence == (clock_of() + 300) / RL_FENCE_TICK_US);
  }
  fake_settle(world);
  assert_true(token_of(other) == (clock_of() + 300) / RL_FENCE_TICK_US);
}

TEST(proposal_exceeds_each_token_seen) {
  hold_fenced(3);
  uint64_t seen = clock_of() + 500; /* The nodes' clocks will be behind that. */
  assert_error(release(lock), REDLOCK_OK);
  set_counter(1, KEY, seen - 1);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_true(token_of(lock) == seen);
  assert_error(release(lock), REDLOCK_OK);
  fake_begin_acquire(world, lock);
  assert_true(world->nodes[0].queue[0].fence == seen + 1);
  fake_settle(world);
  assert_true(token_of(lock) == seen + 1);
}

TEST(acquire_without_fence_has_no_token) {
  redlock_options off = {.fence = REDLOCK_NO};
  hold_fenced(3);
  rl_lock *plain = fake_lock(world, "plain", NULL);
  assert_error(release(lock), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, &off, false), REDLOCK_OK);
  fake_begin_acquire(world, plain);
  for (unsigned i = 0; i < 2; i++) {
    assert_false(world->nodes[0].queue[i].watched);
  }
  fake_settle(world);
  assert_true(token_of(lock) == 0);
  assert_true(token_of(plain) == 0);
  assert_null(plain->extension);
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_true(token_of(lock) == 0);
}

/* ----------------------------------------------------------------------------------- two rounds */

TEST(majority_confirms_greatest_number) {
  acquiring(3);
  uint64_t ahead = clock_of() + 7;
  set_counter(1, KEY, ahead - 1);
  assert_error(let_majority_answer(), REDLOCK_PENDING);
  assert_true(rl_lock_remaining(lock, world->now_us) == 0);
  assert_int_equal(fake_next(world, 1), FAKE_OTHER); /* It has said it. */
  assert_int_equal(fake_next(world, 0), FAKE_CONFIRM);
  assert_true(world->nodes[0].queue[0].fence == ahead);
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_true(token_of(lock) == ahead);
  assert_true(counter(0) == ahead);
}

TEST(later_grant_above_highest_does_not_confirm) {
  acquiring(3);
  uint64_t ahead = clock_of() + 7;
  set_counter(1, KEY, ahead - 1);
  set_counter(2, KEY, ahead + 100);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(fake_next(world, 2), FAKE_OTHER);
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_true(token_of(lock) == ahead);
  assert_string_equal(rl_round_reason(lock, 2), "");
}

/* The rival's token would be the same one else. */
TEST(node_without_key_does_not_confirm) {
  acquiring(3);
  world->nodes[2].policy = FAKE_REFUSES;
  fake_break(world, 2, "gone");
  set_counter(1, KEY, clock_of() + 6);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  let_other_client_hold(1, REDLOCK_NEVER);
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_message(lock,
                 "'orders:42': 2 of 3 nodes granted it, but no majority confirmed its fencing "
                 "token: 10.0.0.1:6379: it has lost the key; 10.0.0.3:6379: gone");
  assert_true(token_of(lock) == 0);
  assert_true(counter(0) < clock_of());
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 1); /* The rival's. */
}

TEST(late_confirmation_is_none) {
  acquiring(3);
  set_counter(1, KEY, clock_of() + 6);
  (void)fake_take(world, 2);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  fake_pass(world, 99 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_message(lock,
                 "'orders:42': 2 of 3 nodes granted it, but no majority confirmed its fencing "
                 "token: 10.0.0.1:6379: no confirmation within 100 ms; 10.0.0.3:6379: no "
                 "reply within 100 ms");
  assert_int_equal(fake_next(world, 0), FAKE_CONFIRM);
  (void)fake_answer(world, 0); /* Too late. */
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(broken_connection_does_not_confirm_fencing_token) {
  acquiring(3);
  set_counter(1, KEY, clock_of() + 6);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  fake_break(world, 0, "it broke");
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(node_whose_connection_broke_is_not_asked_to_confirm) {
  redlock_options options = FENCED;
  options.node_timeout_us = SECONDS;
  open_world(3);
  lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  set_counter(1, KEY, clock_of() + 6);
  set_counter(2, KEY, clock_of() + 60);
  (void)fake_answer(world, 0);
  world->nodes[0].policy = FAKE_REFUSES;
  fake_break(world, 0, "it broke");
  (void)fake_answer(world, 1);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_pass(world, 500 * MS);
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_UP);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_message(
      lock,
      "'orders:42': 3 of 3 nodes granted it, but no majority confirmed its fencing "
      "token: 10.0.0.1:6379: Connection refused; 10.0.0.3:6379: its counter of fencing tokens "
      "differs");
}

/* The attempt has left the lock at that time. */
TEST(a_connection_that_breaks_after_the_second_round_was_given_up_changes_nothing) {
  acquiring(3);
  set_counter(1, KEY, clock_of() + 6);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  fake_break(world, 0, "it broke");
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_CANCELLED);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(confirmation_is_not_repeated_after_round) {
  acquiring(3);
  set_counter(1, KEY, clock_of() + 6);
  (void)fake_take(world, 2);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_int_equal(fake_next(world, 0), FAKE_CONFIRM);
  fake_pass(world, 100 * MS);
  (void)fake_take(world, 0);
  while (fake_next(world, 0) != FAKE_OTHER) { /* Its release, too. */
    (void)fake_take(world, 0);
  }
  world->core.nodes[0]->link.outstanding[world->core.nodes[0]->link.outstanding_head].by_text = 0;
  fake_deliver(world, 0, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  assert_int_equal(fake_next(world, 0), FAKE_OTHER);
}

/* A ttl so short that the second round ends after the validity. */
TEST(token_confirmed_after_deadline_grants_nothing) {
  redlock_options options = FENCED;
  options.ttl_us = 50 * MS;
  options.node_timeout_us = 100 * MS;
  open_world(3);
  lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  set_counter(1, KEY, clock_of() + 6);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  fake_pass(world, 47500);
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
  assert_true(token_of(lock) == 0);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(operation_ended_during_confirmation_leaves_nothing) {
  static void (*const ways[])(void) = {cancel_operation, free_lock, close_core};
  for (unsigned i = 0; i < COUNT_OF(ways); i++) {
    acquiring(3);
    set_counter(1, KEY, clock_of() + 6);
    (void)fake_answer(world, 0);
    (void)fake_answer(world, 1);
    assert_int_equal(fake_next(world, 0), FAKE_CONFIRM);
    ways[i]();
    fake_settle(world);
    assert_int_equal(fake_keys(world, KEY), 0);
  }
}

TEST(forked_child_drops_confirmations) {
  acquiring(3);
  set_counter(1, KEY, clock_of() + 6);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  rl_core_reset(&world->core);
  assert_error(rl_lock_result(lock), REDLOCK_E_CANCELLED);
  assert_true(token_of(lock) == 0);
}

/* ------------------------------------------------------------------------- replies of all kinds */

TEST(node_at_last_number_answers_error) {
  open_world(3);
  lock = fake_lock(world, KEY, &FENCED);
  for (unsigned i = 0; i < 3; i++) {
    set_counter(i, KEY, MAX - 1);
  }
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_true(token_of(lock) == MAX);
  assert_error(release(lock), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  assert_message(lock, "'orders:42': 0 of 3 nodes granted it (2 needed): 10.0.0.1:6379: ERR no "
                       "fencing token is left; 10.0.0.2:6379: ERR no fencing token is left");
}

TEST(malformed_answer_ends_connection) {
  static const char *const replies[] = {
      "+OK\r\n",
      ":1\r\n",
      "$-1\r\n",
      "$2\r\nOK\r\n",
      "$4\r\nOK 5\r\n",
      "$5\r\nOK 5 \r\n",
      "$6\r\nOK  56\r\n",
      "$8\r\nOK 5 6 7\r\n",
      "$7\r\nOK 5 -6\r\n",
      "$6\r\nOK x 6\r\n",
      "$6\r\nOK 5 x\r\n",
      "$6\r\nno 5 6\r\n", /* is none of TAKE's */
      "$5\r\n2 5 0\r\n",  /* there is one key */
      "$5\r\n0 5 0\r\n",
      "$12\r\nOKOKOKOK 5 6\r\n",
      "$21\r\nOK 9007199254740992 5\r\n",
      "$21\r\nOK 5 9007199254740992\r\n",
      "$25\r\nOK 5 99999999999999999999\r\n",
  };
  for (unsigned i = 0; i < COUNT_OF(replies); i++) {
    acquiring(3);
    world->nodes[0].policy = FAKE_REFUSES;
    (void)fake_reply(world, 0, replies[i]);
    assert_false(world->nodes[0].connected);
    assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_ERROR);
  }
}

TEST(each_reply_reports_clock_of_node) {
  hold_fenced(3);
  const rl_node_clock *clock = &world->core.nodes[1]->link.clock;
  assert_true(clock->known);
  assert_true(clock->offset_us == (int64_t)EPOCH_US);
  world->nodes[1].store.ahead_us += 5;
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_true(clock->offset_us == (int64_t)EPOCH_US + 5);
  world->nodes[1].policy = FAKE_REFUSES;
  fake_break(world, 1, "another server may be there next");
  world->nodes[1].policy = FAKE_ACCEPTS;
  fake_pass(world, 5 * SECONDS);
  assert_false(clock->known);
}

TEST(refused_text_repeats_scripts_behind_it) {
  open_world(1);
  rl_lock *b = fake_lock(world, "b", &FENCED);
  rl_lock *a = fake_lock(world, "a", &FENCED); /* The newest is sent first when a node comes up. */
  assert_error(rl_lock_acquire(a, world->now_us, NULL, false), REDLOCK_OK);
  fake_begin_acquire(world, b);
  (void)fake_reply(world, 0, "-LOADING Redis is loading the dataset in memory\r\n");
  assert_error(rl_lock_result(a), REDLOCK_E_UNAVAILABLE);
  assert_false(world->nodes[0].queue[0].by_text);
  (void)fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_int_equal(fake_next(world, 0), FAKE_SET);
  assert_true(world->nodes[0].queue[0].by_text);
  fake_settle(world);
  assert_error(rl_lock_result(b), REDLOCK_OK);
  assert_error(release(b), REDLOCK_OK);
  fake_begin_acquire(world, a);
  assert_false(world->nodes[0].queue[0].by_text);
  (void)fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  (void)fake_reply(world, 0, "-BUSY Redis is busy running a script.\r\n"); /* It never ran. */
  fake_begin_acquire(world, b);
  assert_true(world->nodes[0].queue[0].by_text);
  fake_settle(world);
}

TEST(node_without_script_gets_its_text) {
  hold_fenced(3);
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_OK);
  set_counter(1, KEY, clock_of() + 6); /* CONFIRM is known from then on. */
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].store.forgot_watched = true;
  }
  set_counter(1, KEY, clock_of() + 60);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < 2; i++) {
    assert_false(world->nodes[i].queue[0].by_text);
    (void)fake_answer(world, i);
    assert_true(world->nodes[i].queue[0].by_text);
    (void)fake_answer(world, i);
  }
  assert_int_equal(fake_next(world, 0), FAKE_CONFIRM);
  assert_false(world->nodes[0].queue[0].by_text);
  (void)fake_answer(world, 0);
  assert_int_equal(fake_next(world, 0), FAKE_CONFIRM);
  assert_true(world->nodes[0].queue[0].by_text);
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_true(token_of(lock) == clock_of() + 61);
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_int_equal(rl_quorum_count(lock->lease->confirmed), 3);
}

/* -------------------------------------------------------------- extend, heal, backfill, release */

TEST(extend_raises_counters_of_all_nodes) {
  hold_fenced(3);
  uint64_t token = token_of(lock);
  fake_pass(world, SECONDS);
  set_counter(0, KEY, 5); /* It has lost it, and not the key. */
  set_counter(1, KEY, token + 50);
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_true(counter(0) == token);
  assert_true(counter(1) == token + 50); /* It never goes back. */
  assert_true(counter(2) == token);
}

TEST(healed_node_gets_counter) {
  hold_fenced(3);
  uint64_t token = token_of(lock);
  fake_store_remove(&world->nodes[2].store, KEY);
  set_counter(2, KEY, 5);
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_true(counter(2) == token);
}

TEST(backfilled_node_gets_counter) {
  open_world(3);
  world->nodes[2].policy = FAKE_REFUSES;
  lock = fake_lock(world, KEY, &FENCED);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  uint64_t token = token_of(lock);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, 3 * SECONDS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_true(counter(2) == token);
  assert_true(token_of(lock) == token);
}

TEST(counter_outlives_key_by_a_week) {
  hold_fenced(3);
  uint64_t token = token_of(lock);
  redlock_duration week_us = (redlock_duration)7 * 86400 * SECONDS;
  assert_error(release(lock), REDLOCK_OK);
  assert_true(fake_store_counter(&world->nodes[0].store, world->now_us + week_us, KEY) == token);
  assert_true(
      fake_store_counter(&world->nodes[0].store, world->now_us + week_us + 11 * SECONDS, KEY) == 0);
}

TEST(several_resources_share_token_above_all_counters) {
  open_world(3);
  lock = fake_lock_many(world, AB, 2, &FENCED);
  for (unsigned i = 0; i < 3; i++) {
    set_counter(i, "a", clock_of() + 10);
    set_counter(i, "b", clock_of() + 40);
  }
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_true(token_of(lock) == clock_of() + 41);
  for (unsigned i = 0; i < 3; i++) {
    assert_true(fake_store_counter(&world->nodes[i].store, world->now_us, "a") == token_of(lock));
    assert_true(fake_store_counter(&world->nodes[i].store, world->now_us, "b") == token_of(lock));
  }
  fake_store_remove(&world->nodes[1].store, "b");
  assert_error(extend(lock, 0), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "b"), 3);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a") + fake_keys(world, "b"), 0);
}

/* ---------------------------------------------------------------- other locks of the same lease */

static rl_lock *owned(const redlock_options *options) {
  lock = fake_lock(world, KEY, options);
  assert_error(rl_reentry_set_owner(lock, world->now_us, "me", 2), REDLOCK_OK);
  return lock;
}

TEST(locks_of_one_owner_share_fencing_token) {
  open_world(3);
  rl_lock *outer = owned(&FENCED);
  rl_lock *inner = owned(NULL); /* It need not ask for it. */
  assert_error(fake_acquire(world, outer), REDLOCK_OK);
  uint64_t token = token_of(outer);
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, false), REDLOCK_OK);
  assert_true(rl_fence_token(rl_ring_owner(inner)) == token);
  assert_error(release(outer), REDLOCK_OK); /* Now the other one has the lease. */
  assert_true(token_of(inner) == token);
  assert_error(extend(inner, 0), REDLOCK_OK);
  assert_true(counter(0) == token);
  assert_error(release(inner), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* Of a majority that granted it, one knows more than that it was taken before. */
TEST(unconfirmed_attempt_at_end_of_budget_has_message) {
  redlock_options options = {.fence = REDLOCK_YES, .wait_us = SECONDS, .node_timeout_us = SECONDS};
  open_world(3);
  lock = fake_lock(world, KEY, &options);
  let_other_client_hold(3, world->now_us + 100 * MS);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(lock->phase, RL_PHASE_DELAY);
  fake_pass(world, 400 * MS);
  set_counter(1, KEY, clock_of() + 6);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_int_equal(fake_next(world, 0), FAKE_CONFIRM);
  fake_pass(world, 600 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
}

/* The first lease is deleted by force, so a lock that waits for a token gets a lease beside it. */
TEST(lock_acquired_again_shares_its_former_lease) {
  redlock_options options = {.fence = REDLOCK_YES, .retry_count = 1};
  open_world(3);
  rl_lock *outer = owned(NULL);
  rl_lock *inner = owned(NULL);
  rl_lock *waits = owned(&options);
  rl_lock *remover = fake_lock(world, KEY, NULL);
  let_other_client_hold(3, world->now_us + 50 * MS);
  assert_error(rl_lock_acquire(waits, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  fake_pass(world, 60 * MS);
  assert_error(fake_acquire(world, outer), REDLOCK_OK);
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_ask(remover, world->now_us, RL_OPERATION_FORCE_RELEASE,
                           &(rl_question){.token = NULL, .token_length = REDLOCK_TOKEN_ANY}, false),
               REDLOCK_OK);
  fake_settle(world);
  fake_pass(world, SECONDS);
  fake_settle(world);
  assert_error(rl_lock_result(waits), REDLOCK_OK);
  assert_true(rl_lock_remaining(waits, world->now_us) > rl_lock_remaining(outer, world->now_us));
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_outcome(inner, world->now_us), REDLOCK_OK);
  assert_ptr_equal(rl_ring_owner(inner), outer);
  redlock_options fenced = FENCED; /* Only the other one has a token. */
  assert_error(rl_lock_acquire(inner, world->now_us, &fenced, false), REDLOCK_E_HELD);
  assert_error(extend(inner, 0), REDLOCK_E_LOST); /* The nodes report the loss. */
  assert_error(rl_lock_release(inner, world->now_us, false), REDLOCK_E_LOST);
  assert_error(rl_lock_release(inner, world->now_us, false), REDLOCK_E_LOST);
  assert_error(rl_lock_release(outer, world->now_us, false), REDLOCK_E_LOST);
  assert_true(token_of(waits) > 0);
  assert_error(release(waits), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(attached_lease_keeps_fencing_token) {
  static char text[REDLOCK_HANDOVER_MAX];
  rl_handover handover, read;
  open_world(3);
  for (unsigned i = 0; i < 3; i++) {
    set_counter(i, KEY, clock_of() + 900 * MS);
  }
  lock = fake_lock(world, KEY, &FENCED);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  uint64_t token = token_of(lock);
  assert_true(token == clock_of() + 900 * MS + 1);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_OK);
  rl_handover_write(&handover, text);
  rl_lock_detach(lock);
  assert_true(token_of(lock) == 0);
  assert_error(rl_handover_read(&read, text, strlen(text)), REDLOCK_OK);
  assert_true(read.fence == token);
  rl_lock *heir = fake_lock(world, KEY, &FENCED);
  assert_error(rl_attach_set(heir, &read), REDLOCK_OK);
  rl_handover_free(&read);
  redlock_options off = {.fence = REDLOCK_NO}; /* It is the lease's, whatever is asked for. */
  assert_error(acquire(heir, &off), REDLOCK_OK);
  assert_true(token_of(heir) == token);
  assert_error(extend(heir, 0), REDLOCK_OK);
  assert_true(counter(2) == token);
  assert_error(release(heir), REDLOCK_OK);
  fake_begin_acquire(world, heir);
  assert_true(world->nodes[0].queue[0].fence == token + 1); /* It has seen it. */
  fake_settle(world);
  assert_true(token_of(heir) > token);
}

TEST(taken_resource_of_several_is_named) {
  open_world(3);
  lock = fake_lock_many(world, AB, 2, &FENCED);
  for (unsigned i = 0; i < 2; i++) {
    fake_store_put(&world->nodes[i].store, "b", OTHER, REDLOCK_NEVER);
  }
  assert_error(fake_acquire(world, lock), REDLOCK_E_TAKEN);
  assert_message(
      lock,
      "the lock on 'a' and 1 more is taken: 2 of 3 nodes hold one of them for another client: 'b' "
      "on 10.0.0.1:6379, 10.0.0.2:6379");
  fake_settle(world);
  assert_int_equal(fake_keys(world, "a"), 0);
}
