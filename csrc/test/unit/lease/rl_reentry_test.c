/*
 * Re-entrance, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include <time.h>

#include "kept.h"
#include "lease/rl_attach.h"
#include "lease/rl_custom_token.h"
#include "lease/rl_lease_end.h"
#include "lease/rl_reentry.h"
#include "lifecycle/rl_detach.h"
#include "operator/rl_inspect.h"

#include "lease_world.h"

static rl_lock *outer, *inner;

static void own(rl_lock *self, const char *owner) {
  assert_error(rl_reentry_set_owner(self, world->now_us, owner, strlen(owner)), REDLOCK_OK);
}

/* Returns a lock of |owner|. */
static rl_lock *owned(const char *resource, const char *owner) {
  redlock_options options = fake_once();
  rl_lock *self = fake_lock(world, resource, &options);
  own(self, owner);
  return self;
}

static unsigned commands(void) {
  unsigned count = 0;
  for (unsigned i = 0; i < world->count; i++) {
    count += world->nodes[i].sets + world->nodes[i].extends + world->nodes[i].releases;
  }
  return count;
}

/* Two locks of one owner, of which |outer| holds; and the world around them. */
static void outer_held(void) {
  world = fake_world_new(3);
  outer = owned(KEY, "me");
  inner = owned(KEY, "me");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
}

/* |inner| shares the lease of |outer|. */
static void nested(void) {
  outer_held();
  assert_error(acquire(inner, NULL), REDLOCK_OK);
}

/* |lock| holds, and its owner has acquired it |times| times. */
static void held_times(unsigned times) {
  world = fake_world_new(3);
  lock = owned(KEY, "me");
  for (unsigned i = 0; i < times; i++) {
    assert_error(acquire(lock, NULL), REDLOCK_OK);
  }
}

TEST(last_release_of_owner_releases_lease) {
  nested();
  assert_error(release(inner), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_int_equal(rl_ring_remaining(inner, world->now_us), 0);
  assert_error(release(inner), REDLOCK_E_NOT_HELD);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_true(rl_ring_remaining(outer, world->now_us) == LEASE_US);
  assert_error(release(outer), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(lock_acquired_again_is_released_twice) {
  redlock_options longer = {.ttl_us = 30 * SECONDS};
  held_times(1);
  assert_error(acquire(lock, &longer), REDLOCK_OK);
  assert_int_equal(extends(world), 3);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_true(rl_ring_remaining(lock, world->now_us) > 29 * SECONDS);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(lock_without_owner_shares_no_lease) {
  world = fake_world_new(3);
  outer = owned(KEY, "me");
  redlock_options options = fake_once();
  rl_lock *nobodys = fake_lock(world, KEY, &options);
  rl_lock *others = owned(KEY, "you");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(acquire(nobodys, NULL), REDLOCK_E_TAKEN);
  assert_error(acquire(others, NULL), REDLOCK_E_TAKEN);
  own(nobodys, ""); /* which it has not had yet */
  own(nobodys, "me");
  own(nobodys, "");
  assert_error(acquire(nobodys, NULL), REDLOCK_E_TAKEN);
  assert_error(release(outer), REDLOCK_OK);
  assert_error(acquire(nobodys, NULL), REDLOCK_OK);
  own(nobodys, "");
  assert_error(acquire(nobodys, NULL), REDLOCK_E_HELD);
}

TEST(held_lock_keeps_its_owner) {
  held_times(1);
  assert_error(rl_reentry_set_owner(lock, world->now_us, "you", 3), REDLOCK_E_HELD);
  assert_message(lock, "another owner holds it");
  assert_error(rl_reentry_set_owner(lock, world->now_us, "me", 2), REDLOCK_OK);
  assert_error(acquire(lock, NULL), REDLOCK_OK);
}

TEST(freed_lock_keeps_shared_lease) {
  nested();
  rl_lock_free(outer, world->now_us);
  fake_turn(world);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_true(rl_ring_remaining(inner, world->now_us) == LEASE_US);
  rl_lock_free(inner, world->now_us);
  fake_turn(world);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(nested_acquire_extends_when_a_third_of_validity_is_gone) {
  outer_held();
  fake_pass(world, LEASE_US / 3);
  assert_error(acquire(inner, NULL), REDLOCK_OK);
  assert_int_equal(extends(world), 0);
  assert_error(release(inner), REDLOCK_OK);
  fake_pass(world, MS);
  assert_error(acquire(inner, NULL), REDLOCK_OK);
  assert_int_equal(extends(world), 3);
  assert_true(rl_ring_remaining(inner, world->now_us) == LEASE_US);
}

TEST(failed_extend_of_nested_acquire_does_not_share) {
  redlock_options longer = {.ttl_us = 30 * SECONDS};
  outer_held();
  refuse_all(world);
  assert_error(acquire(inner, &longer), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(rl_ring_remaining(inner, world->now_us), 0);
  assert_true(rl_ring_remaining(outer, world->now_us) == LEASE_US);
  assert_error(release(inner), REDLOCK_E_NOT_HELD);
}

TEST(failed_extend_of_repeated_acquire_does_not_share) {
  redlock_options longer = {.ttl_us = 30 * SECONDS};
  held_times(1);
  refuse_all(world);
  assert_error(acquire(lock, &longer), REDLOCK_E_UNAVAILABLE);
  assert_true(rl_ring_remaining(lock, world->now_us) == LEASE_US);
  assert_false(rl_ring_is_shared(lock));
}

/* The simulator has found this: it took as long as the outer acquire might. */
TEST(nested_acquire_ends_after_its_node_timeout) {
  world = fake_world_new(3);
  outer = owned(KEY, "me");
  inner = owned(KEY, "me");
  redlock_options patient = {.node_timeout_us = SECONDS};
  redlock_options longer = {.ttl_us = 30 * SECONDS, .node_timeout_us = 50 * MS};
  assert_error(acquire(outer, &patient), REDLOCK_OK);
  assert_error(rl_lock_acquire(inner, world->now_us, &longer, true), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, 50 * MS - 1);
  assert_error(rl_lock_result(inner), REDLOCK_PENDING);
  fake_pass(world, 1);
  assert_error(rl_lock_result(inner), REDLOCK_E_UNAVAILABLE);
  assert_message(inner, "no reply within 50 ms");
  assert_true(rl_ring_remaining(outer, world->now_us) > 0);
}

TEST(expired_lease_is_not_shared) {
  nested();
  fake_pass(world, 10 * SECONDS);
  rl_lock *third = owned(KEY, "me");
  assert_error(acquire(third, NULL), REDLOCK_E_EXPIRED);
  assert_message(third, "has expired or is lost: release it first");
  assert_error(release(inner), REDLOCK_E_EXPIRED);
  assert_error(acquire(third, NULL), REDLOCK_E_EXPIRED);
  (void)release(outer);
  assert_error(acquire(third, NULL), REDLOCK_OK);
}

TEST(lost_lease_is_lost_for_all_locks_of_owner) {
  nested();
  let_other_client_hold(3, world->now_us + 60 * SECONDS);
  assert_error(extend(inner, 0), REDLOCK_E_LOST);
  assert_int_equal(rl_ring_remaining(outer, world->now_us), 0);
  assert_error(reason_of(world, outer), REDLOCK_E_LOST);
  assert_error(reason_of(world, inner), REDLOCK_E_LOST);
  rl_lock *third = owned(KEY, "me");
  assert_error(acquire(third, NULL), REDLOCK_E_LOST);
  assert_error(extend(outer, 0), REDLOCK_E_LOST);
  assert_message(outer, "2 of 3 nodes no longer have its token");
  assert_error(release(outer), REDLOCK_E_LOST);
  assert_error(release(inner), REDLOCK_E_LOST);
  assert_error(release(inner), REDLOCK_E_NOT_HELD);
  assert_error(acquire(third, NULL), REDLOCK_E_TAKEN);
}

TEST(acquire_of_some_held_resources_shares_and_more_is_refused) {
  static const char *const both[] = {"a", "b"};
  static const char *const reversed[] = {"b", "a"};
  static const char *const more[] = {"b", "c"};
  redlock_options options = fake_once();
  world = fake_world_new(3);
  outer = fake_lock_many(world, both, 2, &options);
  rl_lock *same = fake_lock_many(world, reversed, 2, &options);
  rl_lock *part = owned("b", "me");
  rl_lock *other = fake_lock_many(world, more, 2, &options);
  own(outer, "me");
  own(same, "me");
  own(other, "me");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  unsigned before = commands();
  assert_error(acquire(same, NULL), REDLOCK_OK);
  assert_error(acquire(part, NULL), REDLOCK_OK);
  assert_error(acquire(other, NULL), REDLOCK_E_HELD);
  assert_message(other, "its owner already holds some of the resources");
  assert_int_equal(commands(), before);
  assert_error(release(outer), REDLOCK_OK);
  assert_error(release(same), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a"),
                   3); /* A lock on some of the resources keeps all of them. */
  assert_error(extend(part, 0), REDLOCK_OK);
  assert_error(release(part), REDLOCK_OK);
  assert_int_equal(fake_keys(world, "a"), 0);
  assert_int_equal(fake_keys(world, "b"), 0);
  assert_error(acquire(other, NULL), REDLOCK_OK);
}

TEST(extend_during_extend_of_same_owner_is_busy) {
  nested();
  redlock_options longer = {.ttl_us = 30 * SECONDS};
  assert_error(rl_lock_extend(inner, world->now_us, 0, true), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_extend(outer, world->now_us, 0, true), REDLOCK_E_BUSY);
  rl_lock *third = owned(KEY, "me");
  assert_error(rl_lock_acquire(third, world->now_us, &longer, true), REDLOCK_OK);
  assert_error(rl_lock_result(third), REDLOCK_OK); /* It shares the lease without waiting. */
  assert_error(rl_lock_release(outer, world->now_us, true), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_result(inner), REDLOCK_OK);
  assert_error(extend(third, 0), REDLOCK_OK);
}

/* Two locks of one owner; the leases of the first are auto-extended for |max_hold_us|. */
static void kept_until(redlock_duration max_hold_us) {
  world = fake_world_new(3);
  redlock_options options = kept();
  options.max_hold_us = max_hold_us;
  outer = fake_lock(world, KEY, &options);
  own(outer, "me");
  inner = owned(KEY, "me");
}

/* A program that is stuck in nested acquires would hold for ever. */
TEST(nested_acquire_extends_no_lease_beyond_max_hold) {
  redlock_options longer = {.ttl_us = 60 * SECONDS};
  kept_until(20 * SECONDS);
  int error = acquire(outer, NULL);
  unsigned nested_count = 0;
  while (error == REDLOCK_OK && world->now_us - FAKE_START_US < 60 * SECONDS) {
    error = acquire(inner, nested_count++ % 2 == 0 ? NULL : &longer);
    assert_error(error == REDLOCK_OK ? release(inner) : REDLOCK_OK, REDLOCK_OK);
    fake_pass(world, SECONDS);
    fake_settle(world);
  }
  assert_error(error, REDLOCK_E_EXPIRED);
  assert_int_equal(nested_count, 21); /* They count to the end, on what is left. */
  assert_error(reason_of(world, outer), REDLOCK_E_MAX_HOLD);
  assert_true(outer->deadline_us > FAKE_START_US + 19 * SECONDS);
  assert_true(outer->deadline_us <= FAKE_START_US + 20 * SECONDS);
}

/* The waiter cannot share the lease while that lasts: it has no fencing token. */
TEST(waiter_does_not_share_expired_lease) {
  world = fake_world_new(3);
  redlock_options options = {.ttl_us = SECONDS, .retry_count = 1, .retry_delay_us = 5 * SECONDS};
  rl_lock *first = fake_lock(world, KEY, &options);
  options.fence = REDLOCK_YES;
  rl_lock *second = fake_lock(world, KEY, &options);
  own(first, "me");
  own(second, "me");
  fake_begin_acquire(world, first);
  fake_begin_acquire(world, second);
  fake_settle(world);
  assert_error(rl_lock_outcome(first, world->now_us), REDLOCK_OK);
  assert_error(rl_lock_result(second), REDLOCK_PENDING);
  while (rl_lock_result(second) == REDLOCK_PENDING) {
    fake_pass(world, 100 * MS);
    fake_settle(world);
  }
  assert_error(rl_lock_outcome(second, world->now_us), REDLOCK_OK);
  assert_int_equal(rl_ring_remaining(first, world->now_us), 0);
  assert_true(rl_lock_remaining(second, world->now_us) > 0);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(second->lease)), 3);
}

TEST(closed_client_releases_shared_lease) {
  nested();
  rl_core_close(&world->core, world->now_us);
  fake_turn(world);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_int_equal(rl_ring_remaining(inner, world->now_us), 0);
}

TEST(forked_child_shares_no_lease) {
  nested();
  rl_core_reset(&world->core);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].connected = false;
  }
  assert_int_equal(rl_ring_remaining(outer, world->now_us), 0);
  assert_int_equal(rl_ring_remaining(inner, world->now_us), 0);
  assert_false(rl_ring_is_shared(outer));
  assert_error(rl_lock_release(inner, world->now_us, true), REDLOCK_E_NOT_HELD);
}

/* A late reply to what the first transport sent is no vote of what the second does. */
TEST(late_reply_of_former_lease_owner_is_no_vote) {
  world = fake_world_new(3);
  outer = owned(KEY, "me");
  inner = owned(KEY, "me");
  fake_begin_acquire(world, outer);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(outer), REDLOCK_OK);
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, true), REDLOCK_OK);
  assert_error(rl_lock_extend(inner, world->now_us, 0, true), REDLOCK_OK);
  fake_turn(world);
  (void)fake_answer(world, 2); /* the SET */
  assert_int_equal(inner->quorum.granted, 0);
  fake_settle(world);
  assert_error(rl_lock_result(inner), REDLOCK_OK);
  assert_error(release(outer), REDLOCK_OK);
  assert_error(release(inner), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* Returns the processor time of the search beside |others| that hold two resources each. */
static double time_beside(unsigned others) {
  world = fake_world_new(1);
  redlock_options options = fake_once();
  for (unsigned i = 0; i < others; i++) {
    char one[16], two[16], owner[16];
    (void)snprintf(one, sizeof one, "one %u", i);
    (void)snprintf(two, sizeof two, "two %u", i);
    (void)snprintf(owner, sizeof owner, "%u", i);
    rl_lock *other = fake_lock_many(world, (const char *const[]){one, two}, 2, &options);
    own(other, owner);
    assert_error(acquire(other, NULL), REDLOCK_OK);
  }
  lock = owned(KEY, "me");
  clock_t begun = clock();
  for (unsigned i = 0; i < 5000; i++) {
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
    rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  }
  clock_t ended = clock();
  assert_true(fake_world_end(world));
  return (double)(ended - begun) / CLOCKS_PER_SEC;
}

/* Each acquire of an owner's looked through all of them. */
TEST(locks_of_other_owners_do_not_slow_acquire) {
  double alone = time_beside(1);
  assert_true(time_beside(1000) < 5 * alone + 0.005);
}

TEST(leases_are_found_after_table_growth) {
  world = fake_world_new(1);
  rl_lock *held_ones[3];
  static const char *const names[] = {"a", "b", "c"};
  for (unsigned i = 0; i < 3; i++) {
    held_ones[i] = owned(names[i], "me");
    assert_error(acquire(held_ones[i], NULL), REDLOCK_OK);
  }
  for (unsigned i = 0; i < 40; i++) {
    (void)owned(KEY, "me");
  }
  for (unsigned i = 0; i < 3; i++) {
    inner = owned(names[i], "me");
    assert_error(acquire(inner, NULL), REDLOCK_OK);
    assert_error(release(held_ones[i]), REDLOCK_OK);
    assert_error(release(inner), REDLOCK_OK);
    assert_int_equal(fake_keys(world, names[i]), 0);
  }
  assert_int_equal(world->nodes[0].sets, 3);
}

/* It shares the lease, and learns of the loss before the result of its acquire. */
TEST(nested_acquire_lost_before_its_result_is_undone) {
  outer_held();
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, true), REDLOCK_OK);
  let_other_client_hold(3, world->now_us + SECONDS);
  assert_error(extend(outer, 0), REDLOCK_E_LOST);
  assert_error(rl_lock_outcome(inner, world->now_us), REDLOCK_E_LOST);
  assert_error(release(outer), REDLOCK_E_LOST);
  fake_pass(world, 2 * SECONDS);
  assert_error(acquire(outer, NULL), REDLOCK_OK);
}

TEST(extend_in_flight_keeps_its_deadline_when_lock_shares_lease) {
  world = fake_world_new(3);
  redlock_options options = fake_once();
  outer = owned(KEY, "me");
  options.notify_lost = REDLOCK_YES;
  inner = fake_lock(world, KEY, &options);
  own(inner, "me");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(rl_lock_extend(outer, world->now_us, 0, true), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, true), REDLOCK_OK);
  assert_error(rl_lock_outcome(inner, world->now_us), REDLOCK_OK);
  wait_for_core(world);
  assert_error(rl_lock_result(outer), REDLOCK_E_UNAVAILABLE);
  assert_true(rl_ring_remaining(inner, world->now_us) > LEASE_US - SECONDS);
}

TEST(repeated_acquire_turns_notify_lost_on) {
  redlock_options options = {.notify_lost = REDLOCK_YES};
  held_times(1);
  assert_error(acquire(lock, &options), REDLOCK_OK);
  fake_pass(world, LEASE_US);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
}

TEST(undone_nested_acquire_shares_no_lease) {
  nested();
  rl_lock_undo(inner, world->now_us, REDLOCK_E_SYSTEM);
  assert_error(rl_lock_outcome(inner, world->now_us), REDLOCK_E_SYSTEM);
  assert_int_equal(rl_ring_remaining(inner, world->now_us), 0);
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  rl_lock_undo(outer, world->now_us, REDLOCK_E_SYSTEM);
  assert_error(rl_lock_outcome(outer, world->now_us), REDLOCK_E_SYSTEM);
  assert_true(rl_ring_remaining(outer, world->now_us) > 0);
  assert_error(release(outer), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(failed_nested_acquire_reports_no_loss) {
  world = fake_world_new(3);
  redlock_options options = fake_once();
  options.notify_lost = REDLOCK_YES;
  outer = fake_lock(world, KEY, &options);
  inner = fake_lock(world, KEY, &options);
  own(outer, "me");
  own(inner, "me");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, true), REDLOCK_OK);
  fake_pass(world, LEASE_US);
  assert_error(rl_lock_outcome(inner, world->now_us), REDLOCK_E_EXPIRED);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), outer);
  assert_null(rl_loss_next(&world->core, world->now_us));
}

TEST(nested_acquire_is_reported_to_loop_once) {
  nested();
  assert_ptr_equal(rl_core_next_ended(&world->core), outer);
  assert_ptr_equal(rl_core_next_ended(&world->core), inner);
  assert_null(rl_core_next_ended(&world->core));
}

TEST(fire_and_forget_release_leaves_shared_lease) {
  nested();
  assert_error(rl_lock_release_send(inner, world->now_us), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_error(rl_lock_result(inner), REDLOCK_OK);
  assert_error(rl_lock_release(inner, world->now_us, true), REDLOCK_OK); /* asks for its result */
  assert_true(rl_ring_remaining(outer, world->now_us) > 0);
}

TEST(result_of_nested_release_is_not_that_of_extend) {
  world = fake_world_new(3);
  redlock_options options = kept();
  outer = fake_lock(world, KEY, &options);
  own(outer, "me");
  inner = owned(KEY, "me");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(acquire(inner, NULL), REDLOCK_OK);
  refuse_all(world);
  fake_pass(world, THIRD_US);
  assert_error(reason_of(world, outer), REDLOCK_E_UNAVAILABLE);
  assert_error(rl_lock_release_send(outer, world->now_us), REDLOCK_OK);
  assert_error(rl_lock_release(outer, world->now_us, true), REDLOCK_OK);
  assert_error(rl_lock_result(outer), REDLOCK_OK);
  assert_true(rl_ring_remaining(inner, world->now_us) > 0);
}

TEST(nested_acquire_sends_nothing_and_shares_lease) {
  outer_held();
  fake_pass(world, SECONDS);
  unsigned before = commands();
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, true), REDLOCK_OK);
  assert_error(rl_lock_result(inner), REDLOCK_OK); /* at once, before any turn */
  fake_turn(world);
  assert_int_equal(commands(), before);
  assert_true(rl_ring_remaining(inner, world->now_us) == LEASE_US - SECONDS);
  assert_true(rl_ring_remaining(outer, world->now_us) == LEASE_US - SECONDS);
}

TEST(last_release_releases_lease_in_any_order) {
  nested();
  assert_error(release(outer), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_int_equal(rl_ring_remaining(outer, world->now_us), 0);
  assert_true(rl_ring_remaining(inner, world->now_us) == LEASE_US);
  assert_error(extend(inner, 0), REDLOCK_OK);
  assert_error(release(inner), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(nested_acquire_extends_short_lease_first) {
  redlock_options longer = {.ttl_us = 30 * SECONDS};
  outer_held();
  assert_error(acquire(inner, &longer), REDLOCK_OK);
  assert_int_equal(extends(world), 3);
  assert_true(rl_ring_remaining(inner, world->now_us) > 29 * SECONDS);
  assert_true(rl_ring_remaining(outer, world->now_us) == rl_ring_remaining(inner, world->now_us));
  assert_error(release(inner), REDLOCK_OK);
  assert_error(release(outer), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(nested_acquire_uses_its_node_timeout) {
  redlock_options hasty = {.node_timeout_us = 50 * MS};
  redlock_options longer = {.ttl_us = 30 * SECONDS, .node_timeout_us = 500 * MS};
  world = fake_world_new(3);
  lock = owned(KEY, "me");
  assert_error(acquire(lock, &hasty), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, &longer, true), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, 400 * MS);
  fake_settle(world);
  assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_OK);
  assert_true(rl_ring_remaining(lock, world->now_us) > 29 * SECONDS);
  begin_extend(0);
  fake_pass(world, 50 * MS); /* Extends go by the acquire that took the lease. */
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

TEST(failed_extend_releases_lease_without_other_locks) {
  redlock_options longer = {.ttl_us = 30 * SECONDS};
  outer_held();
  assert_error(rl_lock_acquire(inner, world->now_us, &longer, true), REDLOCK_OK);
  fake_turn(world);
  assert_error(release(outer), REDLOCK_OK); /* All have answered the extend in the turn. */
  assert_error(rl_lock_result(inner), REDLOCK_OK);
  assert_error(rl_lock_acquire(outer, world->now_us, &longer, true), REDLOCK_OK);
  assert_error(release(outer), REDLOCK_OK);
  longer.ttl_us = 90 * SECONDS;
  assert_error(rl_lock_acquire(outer, world->now_us, &longer, true), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_release(inner, world->now_us, true), REDLOCK_OK);
  assert_error(rl_lock_result(inner), REDLOCK_OK);
  rl_lock_cancel(outer, world->now_us, REDLOCK_E_CANCELLED);
  assert_error(rl_lock_result(outer), REDLOCK_E_CANCELLED);
  assert_int_equal(rl_ring_remaining(outer, world->now_us), 0);
  fake_turn(world);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(lock_acquired_twice_reports_lost_to_both_releases) {
  held_times(2);
  let_other_client_hold(3, world->now_us + 60 * SECONDS);
  assert_error(extend(lock, 0), REDLOCK_E_LOST);
  assert_error(release(lock), REDLOCK_E_LOST);
  assert_message(lock, "2 of 3 nodes no longer have its token");
  assert_error(reason_of(world, lock), REDLOCK_E_LOST);
  assert_error(release(lock), REDLOCK_E_LOST);
  assert_error(reason_of(world, lock), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(lost_nested_acquire_is_not_released) {
  held_times(2);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, true), REDLOCK_OK);
  rl_lease_end_lost(lock, world->now_us);
  assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_E_LOST);
  assert_error(release(lock), REDLOCK_E_LOST);
  assert_error(release(lock), REDLOCK_E_LOST);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(lost_lock_acquired_again_is_released_once) {
  held_times(2);
  rl_lease_end_lost(lock, world->now_us);
  fake_settle(world);
  assert_error(acquire(lock, NULL), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_OK);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(acquire_of_two_leases_of_owner_is_refused) {
  static const char *const both[] = {"a", "b"};
  redlock_options options = fake_once();
  world = fake_world_new(3);
  rl_lock *a = owned("a", "me");
  rl_lock *b = owned("b", "me");
  rl_lock *two = fake_lock_many(world, both, 2, &options);
  own(two, "me");
  assert_error(acquire(a, NULL), REDLOCK_OK);
  assert_error(acquire(b, NULL), REDLOCK_OK);
  assert_error(acquire(two, NULL), REDLOCK_E_HELD);
}

TEST(acquire_with_custom_token_shares_no_lease) {
  nested();
  rl_lock *third = owned(KEY, "me");
  assert_error(rl_custom_token_set(third, "mine", 4), REDLOCK_OK);
  assert_error(acquire(third, NULL), REDLOCK_E_HELD);
  assert_message(third, "with another token");
}

TEST(shared_lease_is_not_detached) {
  rl_handover handover;
  nested();
  assert_error(rl_lock_describe_lease(outer, world->now_us, &handover), REDLOCK_E_HELD);
  assert_error(rl_lock_describe_lease(inner, world->now_us, &handover), REDLOCK_E_HELD);
  assert_error(release(outer), REDLOCK_OK);
  assert_error(rl_lock_describe_lease(inner, world->now_us, &handover), REDLOCK_OK);
  rl_lock_detach(inner);
  assert_error(acquire(outer, NULL), REDLOCK_E_TAKEN);
}

TEST(detach_of_expired_shared_lease_is_not_held) {
  rl_handover handover;
  nested();
  fake_pass(world, LEASE_US);
  assert_error(rl_lock_describe_lease(inner, world->now_us, &handover), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_describe_lease(outer, world->now_us, &handover), REDLOCK_E_NOT_HELD);
}

TEST(automatic_extends_go_on_after_outer_release) {
  kept_until(20 * SECONDS);
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(acquire(inner, NULL), REDLOCK_OK);
  assert_error(release(outer), REDLOCK_OK);
  for (unsigned i = 0; i < 100 && rl_ring_remaining(inner, world->now_us) > 0; i++) {
    wait_for_core(world);
    fake_settle(world);
  }
  assert_true(world->now_us - FAKE_START_US > 19 * SECONDS);
  assert_true(world->now_us - FAKE_START_US <= 20 * SECONDS);
  assert_error(reason_of(world, inner), REDLOCK_E_MAX_HOLD);
}

TEST(delayed_nested_extend_asks_for_rest_of_max_hold) {
  redlock_options longer = {.ttl_us = 60 * SECONDS};
  kept_until(20 * SECONDS);
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(rl_lock_acquire(inner, world->now_us, &longer, true), REDLOCK_OK);
  world->now_us += 2 * SECONDS;
  fake_turn(world);
  fake_settle(world);
  assert_error(rl_lock_result(inner), REDLOCK_OK);
  assert_true(inner->deadline_us > FAKE_START_US + 19 * SECONDS);
  assert_true(inner->deadline_us <= FAKE_START_US + 20 * SECONDS);
}

TEST(expired_nested_lock_does_not_report_max_hold) {
  for (unsigned capped = 0; capped <= 1; capped++) {
    kept_until(capped == 1 ? 10 * SECONDS : 0);
    assert_error(acquire(outer, NULL), REDLOCK_OK);
    assert_error(acquire(inner, NULL), REDLOCK_OK);
    world->now_us += LEASE_US; /* The process was stopped. */
    assert_error(rl_lock_outcome(inner, world->now_us), REDLOCK_E_EXPIRED);
    int reason = capped == 1 ? REDLOCK_E_MAX_HOLD : REDLOCK_E_EXPIRED;
    assert_error(reason_of(world, inner), reason);
    assert_error(reason_of(world, outer), reason);
  }
}

TEST(each_lock_with_notify_lost_reports_loss) {
  world = fake_world_new(3);
  redlock_options options = fake_once();
  options.notify_lost = REDLOCK_YES;
  outer = fake_lock(world, KEY, &options);
  rl_lock *silent = owned(KEY, "me");
  inner = fake_lock(world, KEY, &options);
  rl_lock *gone = fake_lock(world, KEY, &options);
  rl_lock *locks[] = {outer, silent, inner, gone};
  for (unsigned i = 0; i < 4; i++) {
    own(locks[i], "me");
    assert_error(acquire(locks[i], NULL), REDLOCK_OK);
  }
  assert_error(release(gone), REDLOCK_OK);
  fake_pass(world, LEASE_US);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), outer);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), inner);
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_error(reason_of(world, silent), REDLOCK_E_EXPIRED);
}

/* The second lock is queued behind the first; or, with other options, asks the nodes, too. */
TEST(waiter_shares_lease_as_soon_as_its_owner_has_one) {
  for (unsigned apart = 0; apart <= 1; apart++) {
    world = fake_world_new(3);
    redlock_options options = {.retry_count = 3};
    rl_lock *first = fake_lock(world, KEY, &options);
    options.retry_delay_us = apart ? SECONDS : 0;
    rl_lock *second = fake_lock(world, KEY, &options);
    rl_lock *stranger = fake_lock(world, KEY, &options);
    own(first, "me");
    own(second, "me");
    own(stranger, "you");
    assert_error(rl_lock_acquire(first, world->now_us, NULL, true), REDLOCK_OK);
    assert_error(rl_lock_acquire(second, world->now_us, NULL, true), REDLOCK_OK);
    fake_begin_acquire(world, stranger);
    assert_int_equal(second->phase, apart ? RL_PHASE_ROUND : RL_PHASE_QUEUED);
    fake_settle(world);
    assert_error(rl_lock_outcome(first, world->now_us), REDLOCK_OK);
    assert_error(rl_lock_outcome(second, world->now_us), REDLOCK_OK);
    assert_error(rl_lock_result(stranger), REDLOCK_PENDING);
    assert_int_equal(world->nodes[0].sets, 1 + apart);
    assert_ptr_equal(rl_ring_next(first), second);
  }
}

/* The owner has not released the lost lease of one resource yet when it gets both. */
TEST(waiter_shares_lease_of_its_owner_beside_a_lost_one) {
  static const char *const names[] = {KEY, "other"};
  world = fake_world_new(3);
  redlock_options options = {.ttl_us = SECONDS, .retry_count = 9, .retry_delay_us = SECONDS};
  rl_lock *lost = owned(KEY, "me");
  rl_lock *both[2];
  for (unsigned i = 0; i < 3; i++) {
    fake_store_put(&world->nodes[i].store, "other", "another token", REDLOCK_NEVER);
  }
  for (unsigned i = 0; i < 2; i++, options.retry_delay_us += SECONDS) {
    both[i] = fake_lock_many(world, names, 2, &options);
    own(both[i], "me");
    assert_error(rl_lock_acquire(both[i], world->now_us, NULL, true), REDLOCK_OK);
  }
  fake_settle(world);
  assert_error(acquire(lost, &options), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    fake_store_remove(&world->nodes[i].store, "other");
  }
  while (rl_lock_result(both[0]) == REDLOCK_PENDING && rl_lock_result(both[1]) == REDLOCK_PENDING) {
    fake_pass(world, 100 * MS);
    fake_settle(world);
  }
  assert_int_equal(rl_ring_remaining(lost, world->now_us), 0);
  for (unsigned i = 0; i < 2; i++) {
    assert_error(rl_lock_outcome(both[i], world->now_us), REDLOCK_OK);
    assert_true(rl_ring_remaining(both[i], world->now_us) > 0);
  }
}

/* A granted lock ends the waits of its owner, wherever they stand in the wait list. */
TEST(lease_of_owner_ends_each_wait_of_owner) {
  enum { COUNT = 6 };
  static const char *const owners[COUNT] = {"me", "you", "me", "you", "me", "me"};
  world = fake_world_new(3);
  redlock_options options = {.wait_us = 60 * SECONDS};
  rl_lock *locks[COUNT];
  for (unsigned i = 0; i < COUNT; i++) {
    locks[i] = fake_lock(world, KEY, &options);
    own(locks[i], owners[i]);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, true), REDLOCK_OK);
  }
  fake_settle(world);
  for (unsigned turn = 0; turn < 2; turn++) {
    const char *owner = turn == 0 ? "me" : "you";
    for (unsigned i = 0; i < COUNT; i++) {
      bool own = strcmp(owners[i], owner) == 0;
      assert_int_equal(rl_lock_result(locks[i]) == REDLOCK_PENDING, turn == 0 && !own);
      if (own) {
        assert_error(release(locks[i]), REDLOCK_OK);
      }
    }
    fake_pass(world, SECONDS);
    fake_settle(world);
  }
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_int_equal(world->nodes[0].sets, 2);
}

TEST(each_fire_and_forget_release_of_lock_counts) {
  held_times(2);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
  assert_true(rl_ring_remaining(lock, world->now_us) > 0);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(rl_ring_remaining(lock, world->now_us), 0);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(lost_lock_is_inspected_beside_other_releases) {
  nested();
  let_other_client_hold(3, world->now_us + 60 * SECONDS);
  assert_error(extend(outer, 0), REDLOCK_E_LOST);
  assert_error(rl_lock_ask(inner, world->now_us, RL_OPERATION_INSPECT, NULL, true), REDLOCK_OK);
  assert_error(release(outer), REDLOCK_E_LOST);
  fake_settle(world);
  assert_error(rl_lock_outcome(inner, world->now_us), REDLOCK_OK);
  assert_error(release(inner), REDLOCK_E_LOST);
}

TEST(failed_nested_acquire_keeps_lease_of_owner) {
  redlock_options longer = {.ttl_us = 30 * SECONDS, .notify_lost = REDLOCK_YES};
  outer_held();
  let_other_client_hold(3, world->now_us + SECONDS);
  assert_error(acquire(inner, &longer), REDLOCK_E_LOST);
  assert_error(reason_of(world, inner), REDLOCK_OK); /* It was never held. */
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_error(reason_of(world, outer), REDLOCK_E_LOST);
  assert_error(release(outer), REDLOCK_E_LOST);
  fake_pass(world, 2 * SECONDS);
  assert_error(acquire(outer, NULL), REDLOCK_OK);
}

TEST(nested_lock_reports_loss_without_outer_lock) {
  world = fake_world_new(3);
  redlock_options options = fake_once();
  outer = owned(KEY, "me");
  options.notify_lost = REDLOCK_YES;
  inner = fake_lock(world, KEY, &options);
  own(inner, "me");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(acquire(inner, NULL), REDLOCK_OK);
  fake_pass(world, SECONDS);
  assert_error(extend(outer, 0), REDLOCK_OK);
  unsigned before = commands();
  fake_pass(world, LEASE_US);
  assert_int_equal(commands(), before);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), inner);
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_error(reason_of(world, inner), REDLOCK_E_EXPIRED);
}

TEST(close_during_failed_extends_reports_no_nested_loss) {
  world = fake_world_new(3);
  redlock_options options = kept();
  outer = fake_lock(world, KEY, &options);
  inner = fake_lock(world, KEY, &options);
  own(outer, "me");
  own(inner, "me");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(acquire(inner, NULL), REDLOCK_OK);
  refuse_all(world);
  while (reason_of(world, inner) != REDLOCK_E_UNAVAILABLE) {
    wait_for_core(world);
  }
  rl_core_close(&world->core, world->now_us);
  assert_null(rl_loss_next(&world->core, world->now_us));
  accept_all(world);
}

TEST(each_lock_reports_second_warning_after_recovery) {
  world = fake_world_new(3);
  redlock_options options = kept();
  outer = fake_lock(world, KEY, &options);
  inner = fake_lock(world, KEY, &options);
  own(outer, "me");
  own(inner, "me");
  assert_error(acquire(outer, NULL), REDLOCK_OK);
  assert_error(acquire(inner, NULL), REDLOCK_OK);
  for (unsigned i = 0; i < 2; i++) {
    while (reason_of(world, inner) != REDLOCK_E_UNAVAILABLE) {
      wait_for_core(world); /* No node answers. */
    }
    assert_ptr_equal(rl_loss_next(&world->core, world->now_us), outer);
    assert_ptr_equal(rl_loss_next(&world->core, world->now_us), inner);
    assert_null(rl_loss_next(&world->core, world->now_us));
    assert_error(extend(outer, 0), REDLOCK_OK);
  }
}

/* Locks of a semaphore that acquire at once get a lease each. */
TEST(acquire_with_fence_shares_the_lease_that_has_a_token) {
  for (unsigned fenced = 0; fenced < 2; fenced++) {
    world = fake_world_new(3);
    rl_lock *locks[3];
    redlock_options options[2] = {fake_once(), fake_once()};
    for (unsigned i = 0; i < 3; i++) {
      redlock_options made = fake_once();
      made.permits = 2;
      locks[i] = fake_lock(world, KEY, &made);
      own(locks[i], "me");
    }
    options[fenced].fence = REDLOCK_YES;
    for (unsigned i = 0; i < 2; i++) {
      world->jitter = i; /* It draws another slot. */
      assert_error(rl_lock_acquire(locks[i], world->now_us, &options[i], true), REDLOCK_OK);
      fake_turn(world);
    }
    fake_settle(world);
    assert_non_null(locks[0]->lease);
    assert_non_null(locks[1]->lease);
    assert_error(acquire(locks[2], &options[fenced]), REDLOCK_OK);
    assert_ptr_equal(rl_ring_owner(locks[2]), locks[fenced]);
  }
}
