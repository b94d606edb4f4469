/*
 * Minimum hold, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "lease/rl_attach.h"
#include "lease/rl_reentry.h"
#include "lease/rl_release.h"
#include "lifecycle/rl_detach.h"
#include "options/rl_options.h"
#include "waiting_world.h"

#include "lease_world.h"

#define HOLD_US (30 * SECONDS)

static redlock_options holding(redlock_duration hold_us) {
  redlock_options options = fake_once();
  options.hold_at_least_us = hold_us;
  return options;
}

/* Returns when the keys must end of a lease that was granted at FAKE_START_US. */
static redlock_time end_of(redlock_duration hold_us) {
  redlock_options given = holding(hold_us);
  rl_options options;
  rl_options_default(&options);
  assert_null(rl_options_read(&options, &given));
  return FAKE_START_US + rl_options_hold_us(&options);
}

static void hold_at_least(unsigned count, redlock_duration hold_us) {
  redlock_options options = holding(hold_us);
  open_world_with_lease(count, &options);
}

/* The key ends at |end_us| on all nodes, to the millisecond. */
static void assert_ends(redlock_time end_us) {
  for (unsigned i = 0; i < world->count; i++) {
    assert_in_range(key_expiry(i), end_us, end_us + MS);
  }
}

/* HLD-1, HLD-2 */
TEST(release_keeps_key_until_hold_at_least_is_over) {
  hold_at_least(3, HOLD_US); /* longer than the ttl */
  fake_pass(world, 1500 * MS);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_null(lock->unreleased);
  assert_ends(end_of(HOLD_US));
  assert_true(end_of(HOLD_US) >= FAKE_START_US + HOLD_US);
  assert_true(end_of(HOLD_US) <= FAKE_START_US + HOLD_US + HOLD_US / 98 + 3 * MS);
}

TEST(release_shortens_key_that_would_last_longer) {
  hold_at_least(3, 2 * SECONDS); /* shorter than the ttl */
  fake_pass(world, SECONDS);
  assert_error(release(lock), REDLOCK_OK);
  assert_ends(end_of(2 * SECONDS));
}

TEST(release_after_hold_at_least_deletes_key) {
  hold_at_least(3, 2 * SECONDS);
  fake_pass(world, end_of(2 * SECONDS) - world->now_us);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(kept_key_is_not_extended) {
  redlock_options options = holding(HOLD_US);
  options.auto_extend = REDLOCK_YES;
  open_world_with_lease(3, &options);
  fake_pass(world, SECONDS);
  assert_error(release(lock), REDLOCK_OK);
  unsigned before = world->nodes[0].extends;
  for (unsigned i = 0; i < 20; i++) {
    fake_pass(world, SECONDS);
    fake_settle(world);
  }
  assert_int_equal(world->nodes[0].extends, before);
  assert_ends(end_of(HOLD_US));
  assert_int_equal(world->core.stats.lost_expired + world->core.stats.lost_denied, 0);
}

TEST(second_lock_gets_resource_after_hold_at_least) {
  hold_at_least(3, 2 * SECONDS);
  redlock_options once = fake_once();
  rl_lock *other = fake_lock(world, KEY, &once);
  assert_error(release(lock), REDLOCK_OK);
  fake_pass(world, 2 * SECONDS);
  assert_error(fake_acquire(world, other), REDLOCK_E_TAKEN);
  assert_error(fake_acquire(world, lock), REDLOCK_E_TAKEN); /* the same holds for its own client */
  fake_pass(world, end_of(2 * SECONDS) + MS - world->now_us);
  assert_error(fake_acquire(world, other), REDLOCK_OK);
}

/* HLD-2 */
TEST(late_node_gets_rest_of_time) {
  hold_at_least(3, 5 * SECONDS);
  world->nodes[2].policy = FAKE_REFUSES;
  fake_break(world, 2, "it was cut");
  assert_error(release(lock), REDLOCK_OK);
  assert_in_range(key_expiry(2), FAKE_START_US + 10 * SECONDS, FAKE_START_US + 11 * SECONDS);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, 3 * SECONDS);
  fake_settle(world);
  assert_ends(end_of(5 * SECONDS));
}

TEST(node_that_returns_after_hold_at_least_deletes_key) {
  hold_at_least(3, 2 * SECONDS);
  world->nodes[2].policy = FAKE_REFUSES;
  fake_break(world, 2, "it was cut");
  assert_error(release(lock), REDLOCK_OK);
  fake_pass(world, 3 * SECONDS);
  fake_settle(world);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, 2 * SECONDS);
  fake_settle(world);
  assert_int_equal(key_expiry(2), 0);
}

/* HLD-4 */
TEST(key_that_late_command_prolongs_is_deleted_in_time) {
  hold_at_least(3, 5 * SECONDS);
  begin_extend(0);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  fake_break(world, 2, "Connection reset by peer");
  fake_settle(world);
  assert_error(release(lock), REDLOCK_OK);
  assert_ends(end_of(5 * SECONDS));
  /* The node reads the extend of the old connection now. */
  fake_store_put(&world->nodes[2].store, KEY, lease_token, world->now_us + 60 * SECONDS);
  fake_pass(world, end_of(5 * SECONDS) - world->now_us);
  fake_settle(world);
  assert_int_equal(key_expiry(2), 0);
  assert_int_equal(world->nodes[0].releases, 1);
}

/* Releases a lock. Node 2 executes the release |late_us| later than the other nodes. */
static void released_late(redlock_duration hold_us, redlock_duration late_us) {
  hold_at_least(3, hold_us);
  begin_release();
  assert_error(let_majority_answer(), REDLOCK_OK);
  fake_pass(world, late_us);
  (void)fake_answer(world, 2);
  assert_in_range(key_expiry(2), end_of(hold_us) + late_us - MS, end_of(hold_us) + late_us + MS);
}

TEST(key_that_late_release_prolongs_is_deleted_in_time) {
  released_late(8 * SECONDS, 2 * SECONDS);
  fake_pass(world, end_of(8 * SECONDS) - MS - world->now_us);
  fake_settle(world);
  assert_int_not_equal(key_expiry(2), 0);
  fake_pass(world, MS);
  fake_settle(world);
  assert_int_equal(key_expiry(2), 0);
  assert_int_equal(world->nodes[0].releases, 1);
}

TEST(key_kept_after_hold_at_least_is_deleted_at_once) {
  released_late(SECONDS, 2 * SECONDS);
  fake_settle(world);
  assert_int_equal(key_expiry(2), 0);
  assert_int_equal(world->nodes[0].releases, 1);
}

TEST(unanswered_release_is_repeated_with_rest_of_time) {
  hold_at_least(3, HOLD_US);
  begin_release();
  (void)fake_take(world, 2); /* lost on the way */
  fake_break(world, 2, "Connection reset by peer");
  assert_error(let_majority_answer(), REDLOCK_OK);
  fake_pass(world, 4 * SECONDS);
  fake_settle(world);
  assert_ends(end_of(HOLD_US));
}

/* REL-3 */
TEST(release_of_lost_keys_reports_loss) {
  hold_at_least(3, HOLD_US);
  fake_store_remove(&world->nodes[0].store, KEY);
  fake_store_remove(&world->nodes[1].store, KEY);
  assert_error(release(lock), REDLOCK_E_LOST);
  assert_in_range(key_expiry(2), end_of(HOLD_US), end_of(HOLD_US) + MS);
}

TEST(repeated_release_keeps_key_for_rest_of_time) {
  hold_at_least(3, HOLD_US);
  for (unsigned i = 0; i < 3; i++) {
    take_down(i);
  }
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_pass(world, 4 * SECONDS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].policy = FAKE_ACCEPTS;
  }
  fake_pass(world, 2 * SECONDS);
  assert_error(release(lock), REDLOCK_OK);
  assert_ends(end_of(HOLD_US));
}

/* The first release reached one node. The keys of the other nodes have expired since. */
TEST(repeated_release_of_expired_keys_reports_loss) {
  hold_at_least(3, HOLD_US);
  for (unsigned i = 1; i < 3; i++) {
    take_down(i);
  }
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  fake_pass(world, 4 * SECONDS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_pass(world, 8 * SECONDS);
  for (unsigned i = 1; i < 3; i++) {
    world->nodes[i].policy = FAKE_ACCEPTS;
  }
  fake_pass(world, 2 * SECONDS);
  fake_settle(world); /* They deny the key. */
  assert_error(release(lock), REDLOCK_E_LOST);
}

TEST(node_without_script_gets_text_of_hold) {
  hold_at_least(3, HOLD_US);
  for (unsigned i = 0; i < 3; i++) {
    world->core.nodes[i]->link.knows[RL_SCRIPT_HOLD] = true;
    world->nodes[i].store.forgot_release = true;
  }
  assert_error(release(lock), REDLOCK_OK);
  assert_ends(end_of(HOLD_US));
}

static void by_sending(void) {
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
}

TEST(release_whose_result_no_caller_awaits_keeps_key) {
  static void (*const ways[])(void) = {free_lock, close_core, by_sending};
  for (unsigned i = 0; i < COUNT_OF(ways); i++) {
    hold_at_least(3, HOLD_US);
    ways[i]();
    fake_settle(world);
    assert_ends(end_of(HOLD_US));
  }
}

TEST(failed_acquire_deletes_its_keys_at_once) {
  world = fake_world_new(3);
  redlock_options options = holding(HOLD_US);
  lock = fake_lock(world, KEY, &options);
  let_other_take(world, 3, REDLOCK_NEVER);
  assert_error(fake_acquire(world, lock), REDLOCK_E_TAKEN);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 2);
}

/* A grant that its caller learns of too late is a failed acquire. */
TEST(acquire_reported_as_expired_deletes_its_keys) {
  redlock_options options = holding(HOLD_US);
  options.lock_delay_us = 20 * SECONDS; /* The keys last longer than the lease. */
  open_world_with_lease(3, &options);
  fake_pass(world, 10 * SECONDS);
  assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_E_EXPIRED);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(several_keys_are_kept_together) {
  static const char *const names[] = {"a", "b"};
  world = fake_world_new(3);
  redlock_options options = holding(HOLD_US);
  options.fence = REDLOCK_YES;
  lock = fake_lock_many(world, names, 2, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    fake_store *store = &world->nodes[i].store;
    assert_in_range(fake_store_expiry(store, world->now_us, "a"), end_of(HOLD_US),
                    end_of(HOLD_US) + MS);
    assert_in_range(fake_store_expiry(store, world->now_us, "b"), end_of(HOLD_US),
                    end_of(HOLD_US) + MS);
  }
}

/* FEN-5: a counter lives a week longer than its key. */
TEST(counter_outlives_kept_key_by_a_week) {
  const redlock_duration days_us = 30 * (redlock_duration)86400 * SECONDS;
  redlock_options options = holding(days_us);
  options.fence = REDLOCK_YES;
  open_world_with_lease(3, &options);
  assert_error(release(lock), REDLOCK_OK);
  redlock_time end_us = key_expiry(0);
  assert_true(end_us >= FAKE_START_US + days_us);
  redlock_time week_us = 7 * (redlock_duration)86400 * SECONDS;
  assert_true(fake_store_counter(&world->nodes[0].store, end_us + week_us - MS, KEY) > 0);
}

/* HLD-5. The lock with the longest time is released first, or last. */
TEST(last_release_of_owner_keeps_key_for_longest_time) {
  for (unsigned longest = 0; longest < 2; longest++) {
    rl_lock *locks[2];
    world = fake_world_new(3);
    for (unsigned i = 0; i < 2; i++) {
      redlock_options options = holding(i == longest ? HOLD_US : 5 * SECONDS);
      locks[i] = fake_lock(world, KEY, &options);
      assert_error(rl_reentry_set_owner(locks[i], world->now_us, "me", 2), REDLOCK_OK);
      assert_error(fake_acquire(world, locks[i]), REDLOCK_OK);
    }
    assert_error(release(locks[longest]), REDLOCK_OK);
    assert_ends(FAKE_START_US + 10 * SECONDS); /* Nothing was sent. */
    assert_error(release(locks[1 - longest]), REDLOCK_OK);
    assert_ends(end_of(HOLD_US));
  }
}

/* Node 2 is node 0 under another name: its key is the same one. */
TEST(twin_that_keeps_key_counts_once) {
  world = fake_world_new(3);
  redlock_options options = holding(HOLD_US);
  lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  (void)fake_answer(world, 0);
  (void)fake_reply(world, 2, "$-1\r\n");
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  lock->lease->enqueued = 4; /* A release goes to node 2, too: it would dequeue there. */
  fake_store_remove(&world->nodes[1].store, KEY);
  begin_release();
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  if (rl_lock_result(lock) == REDLOCK_PENDING) {
    (void)fake_reply(world, 2, ":1\r\n");
  }
  assert_true(rl_lock_result(lock) != REDLOCK_OK);
  fake_settle(world);
}

/* Node 4 is node 0 under another name, and holds the key. Node 0 refused it, as did node 1. */
TEST(repeated_release_counts_no_twin_as_loss) {
  world = fake_world_new(5);
  redlock_options options = holding(HOLD_US);
  lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  (void)fake_reply(world, 0, "$-1\r\n");
  (void)fake_reply(world, 1, "$-1\r\n");
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  world->core.nodes[4]->twins = 1;
  assert_error(release(lock), REDLOCK_E_UNAVAILABLE);
  assert_error(release(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(lock->votes[4].vote, REDLOCK_VOTE_ERROR);
  fake_pass(world, end_of(HOLD_US) - world->now_us);
  assert_error(release(lock), REDLOCK_OK);
}

/* ----------------------------------------------------------------------------------- hand-over */

static char text[REDLOCK_HANDOVER_MAX];

/* Detaches the lease, lets |pass_us| go by, and returns a lock that is to attach it. */
static rl_lock *to_attach(rl_lock *self, redlock_duration pass_us) {
  rl_handover handover;
  assert_error(rl_lock_describe_lease(self, world->now_us, &handover), REDLOCK_OK);
  size_t length = rl_handover_length(&handover);
  rl_handover_write(&handover, text);
  rl_lock_detach(self);
  fake_pass(world, pass_us);
  assert_error(rl_handover_read(&handover, text, length), REDLOCK_OK);
  rl_lock *attached = fake_lock(world, KEY, NULL);
  assert_error(rl_attach_set(attached, &handover), REDLOCK_OK);
  rl_handover_free(&handover);
  return attached;
}

/* Detaches the lease, lets |pass_us| go by, and attaches it with |options|. */
static rl_lock *hand_over(rl_lock *self, redlock_duration pass_us, const redlock_options *options) {
  rl_lock *attached = to_attach(self, pass_us);
  assert_error(acquire(attached, options), REDLOCK_OK);
  return attached;
}

/* ATT-9 */
TEST(attached_lease_keeps_key_until_its_own_time) {
  hold_at_least(3, HOLD_US);
  for (unsigned i = 0; i < 3; i++) {
    lock = hand_over(lock, 4 * SECONDS, NULL);
    assert_memory_equal(text, "redlock3.", 9);
  }
  fake_pass(world, SECONDS);
  assert_error(release(lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) { /* Each hand-over rounds to a millisecond. */
    assert_in_range(key_expiry(i), end_of(HOLD_US), end_of(HOLD_US) + 10 * MS);
  }
}

TEST(lease_attached_after_hold_at_least_deletes_key) {
  hold_at_least(3, 3 * SECONDS);
  lock = hand_over(lock, 4 * SECONDS, NULL);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/*
 * ATT-10. An extend that reached a minority leaves a key that says nothing about the time in
 * between. In a chain of such leases each time in between lengthens the hold, and no hand-over
 * lengthens the rest.
 */
TEST(chain_of_attaches_lengthens_hold_by_times_between) {
  hold_at_least(3, HOLD_US);
  for (unsigned i = 1; i <= 5; i++) {
    redlock_duration rest_us = lock->lease->keep_until_us - world->now_us;
    fake_store_put(&world->nodes[0].store, KEY, rl_attempt_token(lock->lease),
                   world->now_us + 60 * SECONDS);
    lock = hand_over(lock, 4 * SECONDS, NULL);
    assert_true(lock->lease->keep_until_us - world->now_us <= rest_us);
    assert_true(lock->lease->keep_until_us >= end_of(HOLD_US));
    assert_true(lock->lease->keep_until_us <= end_of(HOLD_US) + i * (4 * SECONDS + MS));
  }
  assert_error(release(lock), REDLOCK_OK);
  assert_true(key_expiry(1) <= end_of(HOLD_US) + 5 * (4 * SECONDS + MS));
}

TEST(option_of_attach_replaces_that_of_text) {
  redlock_options none = {.hold_at_least_us = REDLOCK_DURATION_NONE};
  hold_at_least(3, HOLD_US);
  lock = hand_over(lock, SECONDS, &none);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(refused_attach_does_not_end_hold_of_text) {
  redlock_options options = {.hold_at_least_us = SECONDS, .fence = REDLOCK_YES};
  hold_at_least(3, HOLD_US);
  lock = to_attach(lock, SECONDS);
  assert_error(rl_lock_acquire(lock, world->now_us, &options, false), REDLOCK_E_INVALID);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(release(lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_in_range(key_expiry(i), end_of(HOLD_US), end_of(HOLD_US) + 10 * MS);
  }
}

TEST(lease_without_hold_at_least_is_detached_as_before) {
  hold_at_least(3, 0);
  lock = hand_over(lock, SECONDS, NULL);
  assert_memory_equal(text, "redlock1.", 9);
  assert_int_equal(lock->lease->keep_until_us, 0);
}

/* ------------------------------------------------------------------------------------- waiters */

/* HLD-3 */
TEST(kept_release_notifies_head_and_dequeues_its_ticket) {
  world = world_with_subscribers(3);
  redlock_options options = patient_options();
  options.hold_at_least_us = 5 * SECONDS;
  let_other_take(world, 7, FAKE_START_US + 60 * SECONDS);
  lock = begin_acquire_of(world, KEY, &options);
  for (unsigned i = 0; i < 3; i++) {
    let_other_release(world, i);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  enqueue_other(world);
  assert_error(release(lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_true(other_is_notified(world, i));
    assert_entry_at(world, i, 0, OTHERS_ENTRY);
    assert_null(fake_queue_at(&world->nodes[i].store, KEY, 1));
  }
  assert_int_equal(fake_keys(world, KEY), 3);
}

/* The holder's ttl is longer: a waiter must learn that the key ends sooner now. */
TEST(waiter_gets_lock_when_hold_at_least_is_over) {
  world = world_with_subscribers(3);
  redlock_options options = holding(SECONDS);
  options.ttl_us = 60 * SECONDS;
  lock = fake_lock(world, KEY, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  redlock_time end_us = lock->lease->keep_until_us;
  rl_lock *waiter = begin_waiter(world);
  pass(world, 100 * MS);
  assert_error(release(lock), REDLOCK_OK);
  fake_settle(world);
  unsigned sets = world->nodes[0].sets;
  pass_until(world, end_us - MS);
  assert_error(rl_lock_result(waiter), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, sets); /* It knows when the key ends. */
  pass_until(world, end_us + 5 * MS);
  assert_error(rl_lock_result(waiter), REDLOCK_OK);
}

/* WAIT-4 lets a waiter of the client try right behind its release. */
TEST(waiter_of_same_client_does_not_try_behind_kept_release) {
  hold_at_least(3, 5 * SECONDS);
  redlock_options waits = {
      .wait_us = 60 * SECONDS, .retry_delay_us = SECONDS, .retry_jitter_us = REDLOCK_DURATION_NONE};
  rl_lock *waiter = fake_lock(world, KEY, &waits);
  assert_error(rl_lock_acquire(waiter, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  unsigned sets = world->nodes[0].sets;
  assert_error(release(lock), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(world->nodes[0].sets, sets);
}
