/*
 * The margin of a lease, and quorums above the majority, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "lease/rl_attach.h"
#include "lease/rl_margin.h"
#include "lifecycle/rl_detach.h"

#include "lease_world.h"

static void open_world(unsigned count, unsigned quorum) {
  redlock_options once = fake_once();
  world = fake_world_new(count);
  world->core.quorum = quorum;
  lock = fake_lock(world, KEY, &once);
}

/* A world whose lock is held on all nodes. */
static void hold_by(unsigned count, unsigned quorum) {
  open_world(count, quorum);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

static int margin(const rl_lock *self) {
  return rl_margin_of(self, world->now_us);
}

/* --------------------------------------------------------------------------------------- margin */

TEST(fire_and_forget_release_needs_held_lock) {
  open_world(3, 0);
  assert_int_equal(margin(lock), -1);
  fake_begin_acquire(world, lock);
  (void)fake_answer(world, 0);
  assert_int_equal(margin(lock), -1);
  fake_settle(world);
  assert_int_equal(margin(lock), 1);
  assert_int_equal(rl_margin_of(lock, lock->deadline_us - 1), 1);
  assert_int_equal(rl_margin_of(lock, lock->deadline_us), -1);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  assert_int_equal(margin(lock), -1);
  fake_settle(world);
  assert_int_equal(margin(lock), -1);
}

TEST(grants_add_margin_in_time_and_late) {
  open_world(5, 0);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < 5; i++) {
    (void)fake_answer(world, i);
    assert_int_equal(margin(lock), i < 2 ? -1 : (int)i - 2);
  }
}

TEST(node_held_by_another_client_adds_no_margin) {
  open_world(3, 0);
  fake_begin_acquire(world, lock);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  (void)fake_reply(world, 2, "$-1\r\n");
  assert_int_equal(margin(lock), 0);
}

TEST(denying_node_adds_no_margin_until_healed) {
  hold_by(5, 0);
  assert_int_equal(margin(lock), 2);
  fake_store_remove(&world->nodes[0].store, KEY);
  begin_extend(0);
  assert_int_equal(margin(lock), 2);
  (void)fake_answer(world, 0);
  assert_int_equal(margin(lock), 1);
  for (unsigned i = 1; i < 5; i++) {
    (void)fake_answer(world, i);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(margin(lock), 1);
  assert_int_equal(fake_answer(world, 0).verb, FAKE_SET);
  assert_int_equal(margin(lock), 2);
}

/* Elsewhere the keys end when they would have ended before. */
TEST(extend_reduces_margin_to_nodes_that_confirmed) {
  hold_by(5, 0);
  begin_extend(0);
  (void)fake_answer(world, 4);
  (void)fake_answer(world, 2);
  assert_int_equal(margin(lock), 2);
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(margin(lock), 0);
  (void)fake_answer(world, 1);
  assert_int_equal(margin(lock), 1);
  fake_break(world, 3, "connection reset");
  fake_settle(world);
  assert_int_equal(margin(lock), 1);
}

TEST(answer_to_command_before_last_extend_adds_no_margin) {
  open_world(5, 0);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i);
  }
  begin_extend(0);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(fake_answer(world, i).verb, FAKE_EXTEND);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(margin(lock), 0);
  assert_int_equal(fake_answer(world, 3).verb, FAKE_SET); /* Its key ends with the first round's. */
  assert_int_equal(margin(lock), 0);
  assert_int_equal(fake_answer(world, 3).verb, FAKE_EXTEND);
  assert_int_equal(margin(lock), 1);
}

/* One node misses the long extend and confirms a short one: its key ends long before the lease. */
TEST(node_that_confirms_only_shorter_extend_adds_no_margin) {
  for (unsigned order = 0; order < 2; order++) {
    hold_by(5, 0);
    begin_extend(60 * SECONDS);
    fake_break(world, 4, "connection reset");
    for (unsigned i = 0; i < 4; i++) {
      (void)fake_answer(world, i);
    }
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(margin(lock), 1);
    fake_pass(world, 1 * SECONDS);
    fake_settle(world);
    redlock_time deadline_us = lock->deadline_us;
    begin_extend(20 * SECONDS);
    for (unsigned i = 0; i < 5; i++) { /* The fifth in time, then late. */
      (void)fake_answer(world, order == 0 ? 4 - i : i);
      assert_int_equal(margin(lock), 1);
    }
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(lock->deadline_us, deadline_us);
    assert_int_equal(margin(lock), 1);
    begin_extend(0); /* By 20 s again. */
    fake_settle(world);
    assert_int_equal(margin(lock), 1);
    assert_error(rl_lock_extend(lock, world->now_us, 60 * SECONDS, false), REDLOCK_OK);
    fake_settle(world);
    assert_int_equal(margin(lock), 2);
  }
}

TEST(attached_lease_has_new_margin) {
  rl_handover handover;
  char text[REDLOCK_HANDOVER_MAX];
  hold_by(3, 0);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_OK);
  rl_handover_write(&handover, text);
  rl_lock_detach(lock);
  assert_int_equal(margin(lock), -1);
  assert_error(rl_handover_read(&handover, text, strlen(text)), REDLOCK_OK);
  rl_lock *other = fake_lock(world, KEY, NULL);
  assert_error(rl_attach_set(other, &handover), REDLOCK_OK);
  fake_begin_acquire(world, other);
  (void)fake_answer(world, 0);
  assert_int_equal(margin(other), -1);
  (void)fake_answer(world, 1);
  assert_int_equal(margin(other), 0);
  (void)fake_answer(world, 2);
  assert_int_equal(margin(other), 1);
  free(handover.bytes);
}

/* --------------------------------------------------------------------------------------- quorum */

TEST(only_acquire_and_extend_need_quorum) {
  open_world(5, 4);
  assert_int_equal(rl_core_quorum(&world->core, RL_OPERATION_ACQUIRE), 4);
  assert_int_equal(rl_core_quorum(&world->core, RL_OPERATION_EXTEND), 4);
  assert_int_equal(rl_core_quorum(&world->core, RL_OPERATION_RELEASE), 3);
  assert_int_equal(rl_core_quorum(&world->core, RL_OPERATION_INSPECT), 3);
  assert_int_equal(rl_core_quorum(&world->core, RL_OPERATION_FORCE_RELEASE), 3);
  world->core.quorum = 0;
  assert_int_equal(rl_core_quorum(&world->core, RL_OPERATION_ACQUIRE), 3);
}

TEST(acquire_below_quorum_is_unavailable_and_released) {
  char message[256];
  open_world(5, 4);
  fake_begin_acquire(world, lock);
  (void)fake_reply(world, 0, "-LOADING later\r\n");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  (void)fake_answer(world, 1);
  (void)fake_reply(world, 2, "-LOADING later\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_non_null(
      strstr(rl_lock_message(lock, message, sizeof message), "1 of 5 nodes granted it (4 needed)"));
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* Two of five nodes hold the key for another client; four are needed. */
TEST(two_refusals_make_lock_taken_for_quorum_of_four) {
  open_world(5, 4);
  fake_begin_acquire(world, lock);
  (void)fake_reply(world, 0, "$-1\r\n");
  (void)fake_reply(world, 1, "$-1\r\n");
  (void)fake_answer(world, 2);
  (void)fake_answer(world, 3);
  fake_answer_tests(world, lock);
  assert_int_equal(rl_lock_result(lock), REDLOCK_E_TAKEN);
}

TEST(extend_needs_the_quorum) {
  hold_by(5, 4);
  redlock_time deadline_us = lock->deadline_us;
  world->now_us += SECONDS;
  begin_extend(0);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i);
  }
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(lock->deadline_us, deadline_us);
  fake_settle(world);
  begin_extend(0);
  fake_store_remove(&world->nodes[0].store, KEY);
  for (unsigned i = 0; i < 5; i++) {
    (void)fake_answer(world, i);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_true(lock->deadline_us > deadline_us);
  assert_int_equal(margin(lock), 2);
  fake_settle(world); /* The first is healed. */
  assert_int_equal(margin(lock), 3);
}

/* No other client can hold the lock yet, but no extend could succeed. */
TEST(denials_without_possible_quorum_end_lease) {
  for (unsigned late = 0; late < 2; late++) {
    hold_by(5, 4);
    begin_extend(0);
    (void)fake_reply(world, 0, ":0\r\n");
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    if (late) {
      fake_pass(world, 100 * MS);
      assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
      assert_true(rl_lock_remaining(lock, world->now_us) > 0);
    }
    (void)fake_reply(world, 1, ":0\r\n");
    assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
    assert_int_equal(margin(lock), -1);
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_LOST);
  }
}

TEST(majority_confirms_release) {
  hold_by(5, 4);
  begin_release();
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  (void)fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/*
 * When the attempt fails, 28 ms are left: enough for the 20 ms of the second node, but not for the
 * slowest.
 */
TEST(next_attempt_needs_time_for_slowest_node_of_quorum) {
  for (unsigned quorum = 2; quorum <= 3; quorum++) {
    redlock_options options = {
        .wait_us = 53 * MS, .retry_delay_us = MS, .retry_jitter_us = REDLOCK_DURATION_NONE};
    hold_by(3, quorum); /* Now they are connected. */
    lock = fake_lock(world, "another", &options);
    fake_begin_acquire(world, lock);
    world->now_us += 25 * MS;
    for (unsigned i = 0; i < 3; i++) {
      world->core.nodes[i]->link.fastest_us = (i + 1) * 10 * MS;
    }
    for (unsigned i = 0; i < 3; i++) {
      (void)fake_reply(world, i, "-LOADING later\r\n");
    }
    assert_int_equal(rl_lock_result(lock), quorum == 2 ? REDLOCK_PENDING : REDLOCK_E_UNAVAILABLE);
  }
}

/* With an in-flight limit of 1 and one full node, a majority may be asked, but not all three. */
TEST(round_begins_when_quorum_is_below_limit) {
  for (unsigned quorum = 2; quorum <= 3; quorum++) {
    hold_by(3, quorum);
    world->core.pacer.in_flight_limit = 1;
    rl_lock *first = fake_lock(world, "first", NULL);
    fake_begin_acquire(world, first);
    (void)fake_answer(world, 0);
    (void)fake_answer(world, 1);
    rl_lock *second = fake_lock(world, "second", NULL);
    fake_begin_acquire(world, second);
    assert_int_equal(second->phase, quorum == 2 ? RL_PHASE_ROUND : RL_PHASE_SEND);
    (void)fake_answer(world, 2);
    assert_int_equal(second->phase, RL_PHASE_ROUND);
  }
}

/* The third is tried again at once only where it is needed. */
TEST(back_off_does_not_refuse_nodes_of_quorum) {
  for (unsigned quorum = 2; quorum <= 3; quorum++) {
    hold_by(3, quorum);
    world->nodes[2].policy = FAKE_REFUSES;
    fake_break(world, 2, "gone");
    for (unsigned i = 0; i < 5; i++) {
      fake_pass(world, SECONDS);
      fake_settle(world);
    }
    redlock_time later_us = world->core.nodes[2]->connect_at_us;
    assert_true(later_us > world->now_us + 100 * MS);
    begin_extend(0);
    assert_int_equal(world->core.nodes[2]->connect_at_us < later_us, quorum == 3);
  }
}

/* One node is ahead, so the other nodes are asked to confirm its number; one has lost the key. */
TEST(quorum_confirms_fencing_token) {
  redlock_options options = fake_once();
  options.fence = REDLOCK_YES;
  world = fake_world_new(5);
  world->core.quorum = 4;
  for (unsigned i = 0; i < 5; i++) {
    world->nodes[i].store.ahead_us = 1000 * SECONDS;
  }
  fake_store_count(&world->nodes[0].store, KEY, world->now_us + 2000 * SECONDS, REDLOCK_NEVER);
  lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < 4; i++) {
    assert_int_equal(fake_answer(world, i).verb, FAKE_SET);
  }
  for (unsigned i = 1; i < 3; i++) {
    assert_int_equal(fake_answer(world, i).verb, FAKE_CONFIRM);
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  }
  fake_store_remove(&world->nodes[3].store, KEY);
  assert_int_equal(fake_answer(world, 3).verb, FAKE_CONFIRM);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(fake_answer(world, 4).verb, FAKE_SET);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(fake_answer(world, 4).verb, FAKE_CONFIRM);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(margin(lock), 2);
}
