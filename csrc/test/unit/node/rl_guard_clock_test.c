/*
 * Tests of the guard: the clocks of its nodes, and what their steps do to leases.
 *
 * SPDX-License-Identifier: MIT
 */
#include "node/rl_guard.h"

#include "guarded_world.h"
#include "lease/rl_loss.h"
#include "lease/rl_margin.h"
#include "lease/rl_renew.h"
#include "lock/rl_round.h"

/* Opens a world whose lock is held. The clock of node 1 is stepped, and the lease is extended. */
static void step_under_lease(redlock_duration by_us) {
  open_world_after_a_lease(3);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_pass(world, 1 * SECONDS);
  world->nodes[1].store.ahead_us += by_us;
  assert_error(fake_extend(world, lock, 0), REDLOCK_OK);
}

TEST(step_quarantines_its_node) {
  step_under_lease(21 * MS);
  assert_votes(lock, "ggg"); /* An extend counts: it takes nothing that was free. */
  assert_contains(world->nodes[1].store.record, " clock ");
  assert_null(strstr(world->nodes[0].store.record, " clock "));
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_acquire(lock, REDLOCK_OK, "gqg");
  assert_reason(lock, 1, "for 24.1 s more: its clock was stepped");
  assert_error(fake_release(world, lock), REDLOCK_OK);
  fake_pass(world, QUARANTINE);
  assert_acquire(lock, REDLOCK_OK, "ggg");
}

TEST(small_drift_is_permitted) {
  step_under_lease(20 * MS);
  assert_null(strstr(world->nodes[1].store.record, " clock "));
  assert_int_equal(guard_of(1)->state, RL_GUARD_KNOWN);
}

TEST(wrong_clock_delays_the_record_until_corrected) {
  step_under_lease(10 * SECONDS);
  assert_string_equal(world->nodes[1].store.record, "");
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_acquire(lock, REDLOCK_OK, "gqg");
  assert_reason(lock, 1, "its clock is 10.0 s ahead of those of the other nodes");
  assert_error(fake_release(world, lock), REDLOCK_OK);
  world->nodes[1].store.ahead_us = 0;
  fake_pass(world, 2 * SECONDS);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_settle(world);
  assert_contains(world->nodes[1].store.record, " empty ");
}

TEST(vote_that_reveals_a_step_does_not_count) {
  open_world_after_a_lease(3);
  world->nodes[1].store.ahead_us = 100 * MS;
  fake_store_put(&world->nodes[2].store, KEY, OTHER, world->now_us + 5 * SECONDS);
  assert_acquire(lock, REDLOCK_E_TAKEN, "gqt");
  fake_pass(world, 200 * MS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 1); /* The key that was set there is released. */
}

TEST(equal_steps_of_a_majority_are_the_clients_clock) {
  open_world_after_a_lease(3);
  char before[FAKE_RECORD_MAX + 1];
  (void)snprintf(before, sizeof before, "%s", world->nodes[1].store.record);
  for (unsigned i = 1; i < 3; i++) {
    world->nodes[i].store.ahead_us = 500 * MS;
  }
  fake_pass(world, 1 * SECONDS);
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(world->nodes[1].store.record, before);
  assert_acquire(lock, REDLOCK_E_UNAVAILABLE, "uqq");
  assert_reason(lock, 1, "for 24.1 s more: its clock was stepped");
  fake_pass(world, QUARANTINE);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

TEST(step_recorded_by_another_client_needs_no_new_record) {
  open_world_after_a_lease(3);
  world->nodes[1].store.ahead_us = 500 * MS;
  put_record(1, 5 * SECONDS, "clock");
  assert_acquire(lock, REDLOCK_OK, "gqg");
  assert_reason(lock, 1, "for 19.1 s more: its clock was stepped");
}

static rl_lock *kept; /* of "kept": its lease is what the steps endanger */

/* Opens a world where two of three nodes hold |kept|, which reports losses. */
static void keep_on_two(int8_t auto_extend) {
  redlock_options options = ONCE;
  options.auto_extend = auto_extend;
  options.notify_lost = REDLOCK_YES;
  open_world_after_a_lease(3);
  kept = fake_lock(world, "kept", &options);
  fake_store_put(&world->nodes[2].store, "kept", OTHER, world->now_us + 5 * SECONDS);
  assert_error(fake_acquire(world, kept), REDLOCK_OK);
  assert_int_equal(rl_margin_of(kept, world->now_us), 0);
  fake_pass(world, 1 * SECONDS);
}

TEST(step_warns_holder_without_quorum_and_extends_at_once) {
  redlock_time since_us;
  keep_on_two(REDLOCK_YES);
  redlock_time deadline_us = kept->deadline_us;
  world->nodes[1].store.ahead_us += 100 * MS;
  fake_begin_acquire(world, lock);
  assert_null(rl_loss_next(&world->core, world->now_us));
  (void)fake_answer(world, 1);
  assert_int_equal(rl_margin_of(kept, world->now_us), 0); /* The node does not vote. */
  assert_error(rl_loss_of(kept, world->now_us, &since_us), REDLOCK_E_CLOCK);
  assert_int_equal(since_us, world->now_us);
  assert_int_equal(kept->deadline_us, deadline_us); /* The lease lasts as before. */
  assert_int_equal(world->core.losses->count, 1);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), kept);
  assert_null(rl_loss_next(&world->core, world->now_us));
  fake_turn(world);
  assert_true(rl_lock_is_in_flight(kept) && kept->automatic); /* An extend is due at once. */
  fake_settle(world);
  assert_error(rl_loss_of(kept, world->now_us, &since_us), REDLOCK_OK);
  assert_true(kept->deadline_us > deadline_us);
  assert_int_equal(kept->lease->suspect, 0);
}

/* The script was flushed, too: the step is first seen by the question about the record. */
TEST(step_that_a_check_reveals_is_compared_with_the_record) {
  static const struct {
    const char *known, *found, *reason;
  } rows[] = {
      {"ready", "clock", "for 19.1 s more: its clock was stepped"},
      {"ready", "empty", "its clock was stepped; its quarantine begins now"},
      {"clock", NULL, "its clock was stepped; its quarantine begins now"},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    redlock_time since_us;
    keep_on_two(REDLOCK_NO);
    put_record(1, QUARANTINE, rows[i].known);
    acquire_and_release(lock);
    world->nodes[1].store.ahead_us = 500 * MS;
    world->nodes[1].store.take_sha1[0] = '\0';
    if (rows[i].found != NULL) {
      put_record(1, 5 * SECONDS, rows[i].found);
    }
    assert_acquire(lock, REDLOCK_OK, "gqg");
    assert_reason(lock, 1, rows[i].reason);
    fake_settle(world);
    assert_false(guard_of(1)->stepped);
    assert_error(rl_loss_of(kept, world->now_us, &since_us), REDLOCK_E_CLOCK);
  }
}

/* A broken clock or a hostile node must not make clients flood the nodes. */
TEST(repeated_steps_cause_no_storm_of_extends) {
  keep_on_two(REDLOCK_YES);
  assert_error(fake_extend(world, kept, 0), REDLOCK_OK);
  unsigned before = world->nodes[0].extends;
  for (unsigned i = 0; i < 50; i++) {
    guard_of(1)->stepped = true;
    rl_margin_suspect(&world->core, world->core.nodes[1]);
    rl_renew_warn_all(&world->core, world->now_us);
    fake_settle(world);
  }
  assert_int_equal(world->nodes[0].extends, before);
  fake_pass(world, kept->lease_ttl_us / 12);
  assert_int_equal(world->nodes[0].extends, before + 1);
}

/*
 * The clock is an hour ahead for a moment, in which keys expire. A later client must find no old
 * record.
 */
TEST(moment_of_a_wrong_clock_deletes_the_record) {
  keep_on_two(REDLOCK_NO);
  world->nodes[1].store.ahead_us += 3600 * SECONDS;
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  assert_string_equal(world->nodes[1].store.record, "");
  world->nodes[1].store.ahead_us -= 3600 * SECONDS;
  fake_pass(world, 2 * SECONDS);
  assert_error(rl_lock_release(lock, world->now_us, true), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(lock->votes[1].vote, REDLOCK_VOTE_QUARANTINED);
  assert_contains(world->nodes[1].store.record, "run1 "); /* Made when it was near again. */
}

static rl_lock *rival; /* wants what |kept| has */

/*
 * Opens a world where two of three nodes hold |kept|. The clock of node 1 will go forward, by so
 * little that it stays near the others: its key ends before its time.
 */
static void endanger(void) {
  const redlock_options options = {.ttl_us = 10 * SECONDS, .retry_count = REDLOCK_RETRIES_NONE};
  open_world_after_a_lease(3);
  kept = fake_lock(world, "kept", &options);
  rival = fake_lock(world, "kept", &options);
  fake_store_put(&world->nodes[2].store, "kept", OTHER, world->now_us + 500 * MS);
  assert_error(fake_acquire(world, kept), REDLOCK_OK);
  fake_pass(world, 8600 * MS);
}

static void step(void) {
  world->nodes[1].store.ahead_us += 1500 * MS;
  fake_store_remove(&world->nodes[1].store, "kept");
}

/* The rival gets nothing while |kept| is held, and it still is. */
static void assert_kept(void) {
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_acquire(world, rival);
    assert_true(rl_lock_remaining(kept, world->now_us) > 0);
    assert_true(rl_lock_remaining(rival, world->now_us) == 0);
  }
}

TEST(step_outlives_the_connection) {
  endanger();
  step();
  fake_begin_acquire(world, rival);
  (void)fake_answer(world, 1); /* It shows the step. */
  fake_break(world, 1, "Connection reset by peer");
  fake_settle(world);
  fake_pass(world, 200 * MS);
  assert_kept();
}

TEST(step_outlives_a_failed_record) {
  endanger();
  step();
  fake_begin_acquire(world, rival);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i);
  }
  fake_turn(world);
  for (unsigned i = 0; i < 12 && strcmp(world->nodes[1].queue[0].make, "clock") != 0; i++) {
    if (fake_next(world, i % 3) != FAKE_OTHER) {
      (void)fake_answer(world, i % 3);
    }
    fake_turn(world);
  }
  assert_string_equal(world->nodes[1].queue[0].make, "clock");
  (void)fake_reply(world, 1, "-BUSY Redis is busy running a script.\r\n");
  fake_settle(world);
  assert_int_equal(guard_of(1)->state, RL_GUARD_REFUSED);
  fake_pass(world, 1 * SECONDS);
  assert_kept();
}

TEST(step_of_a_refused_node_counts) {
  endanger();
  rl_lock *third = new_lock("third");
  assert_error(fake_acquire(world, third), REDLOCK_OK);
  world->nodes[1].store.take_sha1[0] = '\0';
  fake_begin_acquire(world, rival);
  (void)fake_answer(world, 1); /* The script is not known: the guard is asked, */
  fake_turn(world);
  (void)fake_reply(world, 1, "-BUSY Redis is busy running a script.\r\n");
  fake_settle(world);
  step();
  assert_error(fake_extend(world, third, 0), REDLOCK_OK); /* and this shows the step. */
  fake_pass(world, 1 * SECONDS);
  assert_kept();
}

/* Another client made it long ago, not for this step. */
TEST(unrelated_record_does_not_end_a_step) {
  static const char *const reasons[] = {"empty", "clock"};
  for (unsigned i = 0; i < COUNT_OF(reasons); i++) {
    endanger();
    step();
    put_record(1, QUARANTINE + 20 * SECONDS, reasons[i]);
    assert_kept();
  }
}

/*
 * Two clocks are stepped by different amounts: the client's clock is right, and records are
 * replaced.
 */
TEST(different_steps_are_those_of_the_nodes) {
  endanger();
  step();
  world->nodes[0].store.ahead_us -= 400 * MS;
  assert_error(fake_acquire(world, rival), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  for (unsigned i = 0; i < 2; i++) {
    assert_contains(world->nodes[i].store.record, " clock ");
  }
  assert_kept();
}

/* No reply must first say that the node does not know it. */
TEST(script_of_a_new_record_is_sent_as_text) {
  open_world_after_a_lease(1);
  world->nodes[0].store.ahead_us += 100 * MS;
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  fake_pass(world, QUARANTINE);
  fake_begin_acquire(world, lock);
  fake_command command = fake_answer(world, 0);
  assert_int_equal(command.verb, FAKE_SET);
  assert_true(command.by_text);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(step_backwards_endangers_no_lease) {
  keep_on_two(REDLOCK_YES);
  world->nodes[1].store.ahead_us -= 100 * MS;
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(guard_of(1)->why, RL_LINEAGE_CLOCK);
  assert_int_equal(rl_margin_of(kept, world->now_us), 0);
  assert_int_equal(world->core.losses->count, 0);
}

TEST(extend_that_shows_the_step_and_confirms_needs_no_warning) {
  keep_on_two(REDLOCK_NO);
  world->nodes[1].store.ahead_us += 100 * MS;
  assert_error(fake_extend(world, kept, 0), REDLOCK_OK);
  assert_int_equal(rl_margin_of(kept, world->now_us), 0);
  assert_int_equal(world->core.losses->count, 0);
}

/* It had confirmed before. */
TEST(node_stepped_during_an_extend_does_not_count) {
  redlock_time since_us;
  keep_on_two(REDLOCK_NO);
  fake_begin_extend(world, kept, 0);
  (void)fake_answer(world, 1);
  world->nodes[1].store.ahead_us += 100 * MS;
  fake_begin_acquire(world, lock);
  (void)fake_answer(world, 1);
  fake_settle(world);
  assert_error(rl_lock_result(kept), REDLOCK_OK);
  assert_int_equal(kept->lease->confirmed & ~kept->lease->suspect, 1);
  assert_error(rl_loss_of(kept, world->now_us, &since_us), REDLOCK_E_CLOCK);
  world->now_us = kept->deadline_us;
  assert_error(rl_loss_of(kept, world->now_us, &since_us), REDLOCK_E_EXPIRED);
  fake_settle(world);
}

TEST(node_that_lost_keys_does_not_count_in_the_margin) {
  keep_on_two(REDLOCK_NO);
  fake_store_flush(&world->nodes[1].store);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(kept->lease->confirmed & ~kept->lease->suspect, 1);
  assert_int_equal(world->core.losses->count, 0); /* The clock has done nothing. */
}
