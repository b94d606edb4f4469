/*
 * A lock's life: what may be begun when, cancelling, freeing, closing, forgetting.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_attach.h"
#include "lease_world.h"
#include "lifecycle/rl_detach.h"

static void operate(rl_lock *self, rl_operation operation) {
  int error = operation == RL_OPERATION_ACQUIRE  ? rl_lock_acquire(self, world->now_us, NULL, true)
              : operation == RL_OPERATION_EXTEND ? rl_lock_extend(self, world->now_us, 0, true)
                                                 : rl_lock_release(self, world->now_us, true);
  assert_error(error, REDLOCK_OK);
}

/* Opens a world whose lock has |operation| in flight, in |phase|. */
static void begin_flight(rl_operation operation, rl_phase phase) {
  if (operation == RL_OPERATION_ACQUIRE) {
    world = fake_world_new(3);
    lock = fake_lock(world, KEY, NULL);
  } else {
    open_world_with_lease(3, NULL);
  }
  operate(lock, operation);
  if (phase != RL_PHASE_SEND) {
    fake_turn(world);
  }
  if (phase == RL_PHASE_DELAY) {
    fake_pass(world, 100 * MS);
  }
  assert_int_equal(lock->phase, phase);
}

typedef struct flight {
  rl_operation operation;
  rl_phase phase;
} flight;

static const flight flights[] = {
    {RL_OPERATION_ACQUIRE, RL_PHASE_SEND},  {RL_OPERATION_ACQUIRE, RL_PHASE_ROUND},
    {RL_OPERATION_ACQUIRE, RL_PHASE_DELAY}, {RL_OPERATION_EXTEND, RL_PHASE_SEND},
    {RL_OPERATION_EXTEND, RL_PHASE_ROUND},  {RL_OPERATION_RELEASE, RL_PHASE_SEND},
    {RL_OPERATION_RELEASE, RL_PHASE_ROUND},
};

/* Everything is answered, and nothing must be left behind on the nodes or in the core. */
static void assert_nothing_left(void) {
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_int_equal(world->core.releases->count, 0);
  assert_false(rl_core_has_unanswered(&world->core));
}

/* ------------------------------------------------------------------------------ what may begin */

TEST(new_lock_is_not_held_and_has_no_error) {
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL);
  char message[64];
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_string_equal(rl_lock_message(lock, message, sizeof message), "");
}

TEST(held_lock_rejects_acquire) {
  open_world_with_lease(1, NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_HELD);
  assert_error(rl_lock_result(lock), REDLOCK_E_HELD);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
  assert_int_equal(world->nodes[0].sets, 1);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  assert_nothing_left();
}

TEST(lock_with_expired_lease_can_be_acquired) {
  open_world_with_lease(1, NULL);
  char token[REDLOCK_TOKEN_LENGTH + 1];
  memcpy(token, rl_attempt_token(lock->lease), sizeof token);
  world->now_us = lock->deadline_us;
  operate(lock, RL_OPERATION_ACQUIRE);
  fake_turn(world);
  assert_int_equal(fake_next(world, 0), FAKE_RELEASE); /* the old token, before the new one */
  assert_string_equal(world->nodes[0].queue[0].token, token);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_string_not_equal(rl_attempt_token(lock->lease), token);
}

TEST(lock_runs_one_operation_at_a_time) {
  for (unsigned i = 0; i < COUNT_OF(flights); i++) {
    begin_flight(flights[i].operation, flights[i].phase);
    redlock_duration remaining_us = rl_lock_remaining(lock, world->now_us);
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_BUSY);
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_BUSY);
    if (flights[i].operation != RL_OPERATION_EXTEND) {
      assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_BUSY);
      assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_E_BUSY);
    }
    assert_error(rl_lock_refuse_argument(lock, RL_OPERATION_ACQUIRE, "wrong"), REDLOCK_E_BUSY);
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    assert_int_equal(lock->operation, flights[i].operation);
    assert_int_equal(rl_lock_remaining(lock, world->now_us), remaining_us);
  }
}

/*
 * The validity has ended before the first byte of the release, and the extend's late replies do not
 * count.
 */
TEST(release_ends_extend_in_flight) {
  for (unsigned i = 0; i < COUNT_OF(flights); i++) {
    for (unsigned heard = 0; heard <= 1 && flights[i].operation == RL_OPERATION_EXTEND; heard++) {
      begin_flight(RL_OPERATION_EXTEND, flights[i].phase);
      assert_error(heard ? rl_lock_release(lock, world->now_us, true)
                         : rl_lock_release_send(lock, world->now_us),
                   REDLOCK_OK);
      assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
      assert_int_equal(lock->operation, RL_OPERATION_RELEASE);
      fake_turn(world);
      for (unsigned node = 0; node < 3; node++) {
        assert_int_equal(world->nodes[node].releases, 1); /* before any reply */
      }
      fake_settle(world);
      assert_error(rl_lock_result(lock), REDLOCK_OK);
      assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
      assert_ptr_equal(rl_core_next_ended(&world->core), heard ? lock : NULL);
      assert_null(rl_core_next_ended(&world->core)); /* The extend's end is not reported. */
      assert_nothing_left();
    }
  }
}

TEST(abandoned_operation_gives_way_to_the_next) {
  for (unsigned i = 0; i < COUNT_OF(flights); i++) {
    begin_flight(flights[i].operation, flights[i].phase);
    redlock_duration remaining_us = rl_lock_remaining(lock, world->now_us);
    bool extends = flights[i].operation == RL_OPERATION_EXTEND;
    rl_lock_abandon(lock);
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    assert_error(rl_lock_extend(lock, world->now_us, 0, true),
                 extends ? REDLOCK_OK : REDLOCK_E_NOT_HELD);
    assert_int_equal(rl_lock_remaining(lock, world->now_us), remaining_us);
    fake_settle(world);
    if (extends) {
      assert_error(rl_lock_result(lock), REDLOCK_OK);
      assert_error(rl_lock_release(lock, world->now_us, true), REDLOCK_OK);
    }
    assert_nothing_left();
  }
}

TEST(release_takes_up_abandoned_release) {
  for (unsigned i = 0; i < COUNT_OF(flights); i++) {
    begin_flight(flights[i].operation, flights[i].phase);
    rl_lock_abandon(lock);
    int error = rl_lock_release(lock, world->now_us, true);
    assert_error(error,
                 flights[i].operation == RL_OPERATION_ACQUIRE ? REDLOCK_E_NOT_HELD : REDLOCK_OK);
    fake_settle(world);
    assert_error(rl_lock_result(lock), error);
    assert_nothing_left();
  }
}

TEST(abandoned_extend_does_not_block_detach) {
  rl_handover handover;
  begin_flight(RL_OPERATION_EXTEND, RL_PHASE_ROUND);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_E_BUSY);
  rl_lock_abandon(lock);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_OK);
}

TEST(locks_with_one_name_exclude_each_other) {
  open_world_with_lease(3, NULL);
  redlock_options once = fake_once();
  rl_lock *second = fake_lock(world, KEY, &once);
  assert_error(fake_acquire(world, second), REDLOCK_E_TAKEN);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_error(fake_acquire(world, second), REDLOCK_OK);
}

TEST(many_locks_share_a_connection) {
  open_world_with_lease(3, NULL);
  rl_lock *locks[16];
  char name[16];
  for (unsigned i = 0; i < COUNT_OF(locks); i++) {
    (void)snprintf(name, sizeof name, "name-%u", i);
    locks[i] = fake_lock(world, name, NULL);
    operate(locks[i], RL_OPERATION_ACQUIRE);
  }
  fake_turn(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].sets, 1 + COUNT_OF(locks));
    assert_int_equal(world->nodes[i].connections, 1);
  }
  fake_answer(world, 0);
  fake_answer(world, 1);
  assert_ptr_equal(rl_core_next_ended(&world->core), locks[0]);
  assert_null(rl_core_next_ended(&world->core));
  for (unsigned i = 1; i < COUNT_OF(locks); i++) {
    fake_answer(world, 0);
    fake_answer(world, 2);
  }
  fake_answer(world, 2);
  for (unsigned i = 1; i < COUNT_OF(locks); i++) {
    assert_ptr_equal(rl_core_next_ended(&world->core), locks[i]);
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
  }
}

/* ----------------------------------------------------------------------------------- cancelling */

TEST(cancel_ends_the_operation_in_every_phase) {
  for (unsigned i = 0; i < COUNT_OF(flights); i++) {
    begin_flight(flights[i].operation, flights[i].phase);
    bool extend = flights[i].operation == RL_OPERATION_EXTEND;
    redlock_time deadline_us = lock->deadline_us;
    rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
    assert_error(rl_lock_result(lock), REDLOCK_E_CANCELLED);
    assert_ptr_equal(rl_core_next_ended(&world->core), lock);
    assert_null(rl_core_next_ended(&world->core));
    assert_int_equal(rl_timers_next(&world->core.timers), REDLOCK_NEVER);
    fake_settle(world);
    if (extend) {
      assert_int_equal(lock->deadline_us, deadline_us);
      assert_true(rl_lock_remaining(lock, world->now_us) > 0);
      operate(lock, RL_OPERATION_RELEASE);
    }
    assert_nothing_left();
    assert_error(rl_lock_result(lock), extend ? REDLOCK_OK : REDLOCK_E_CANCELLED);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
  }
}

TEST(cancel_of_an_idle_lock_does_nothing) {
  open_world_with_lease(1, NULL);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
}

TEST(late_replies_do_not_grant_a_cancelled_acquire) {
  begin_flight(RL_OPERATION_ACQUIRE, RL_PHASE_ROUND);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  fake_turn(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(fake_answer(world, i).verb, FAKE_SET);
    assert_int_equal(fake_next(world, i), FAKE_RELEASE);
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_CANCELLED);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_nothing_left();
}

TEST(late_replies_do_not_confirm_a_cancelled_extend) {
  begin_flight(RL_OPERATION_EXTEND, RL_PHASE_ROUND);
  redlock_time deadline_us = lock->deadline_us;
  fake_store_remove(&world->nodes[2].store, KEY);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  world->now_us += 20 * MS;
  fake_settle(world);
  assert_int_equal(lock->deadline_us, deadline_us);
  assert_int_equal(world->nodes[2].sets, 1); /* nothing is healed either */
}

/* ------------------------------------------------------------------------------------- freeing */

TEST(free_releases_the_token_in_every_phase) {
  for (unsigned i = 0; i < COUNT_OF(flights); i++) {
    begin_flight(flights[i].operation, flights[i].phase);
    rl_lock_free(lock, world->now_us);
    assert_int_equal(world->core.lock_count, 0);
    assert_null(rl_core_next_ended(&world->core));
    assert_int_equal(world->core.lock_count, 0);
    assert_nothing_left();
  }
}

TEST(free_releases_a_held_lock) {
  open_world_with_lease(3, NULL);
  rl_lock_free(lock, world->now_us);
  fake_turn(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].releases, 1);
  }
  assert_nothing_left();
  assert_int_equal(world->core.attempts.live, 0);
}

TEST(free_removes_an_ended_lock_from_the_queue) {
  open_world_with_lease(1, NULL);
  rl_lock *other = fake_lock(world, "other", NULL);
  operate(lock, RL_OPERATION_EXTEND);
  operate(other, RL_OPERATION_ACQUIRE);
  fake_settle(world);
  rl_lock_free(lock, world->now_us);
  assert_ptr_equal(rl_core_next_ended(&world->core), other);
  assert_null(rl_core_next_ended(&world->core));
}

TEST(free_keeps_the_other_locks) {
  world = fake_world_new(1);
  rl_lock *locks[3];
  for (unsigned i = 0; i < 3; i++) {
    locks[i] = fake_lock(world, &"a\0b\0c"[2 * i], NULL);
    operate(locks[i], RL_OPERATION_ACQUIRE);
  }
  fake_free(world, locks[1]);
  assert_int_equal(world->core.lock_count, 2);
  assert_error(rl_lock_result(locks[0]), REDLOCK_OK);
  assert_error(rl_lock_result(locks[2]), REDLOCK_OK);
  assert_int_equal(world->nodes[0].sets, 2);
  rl_lock_free(locks[2], world->now_us);
  rl_lock_free(locks[0], world->now_us);
  assert_int_equal(world->core.lock_count, 0);
}

TEST(key_outlives_a_lock_released_while_the_node_is_away) {
  open_world_with_lease(3, NULL);
  world->nodes[1].policy = FAKE_REFUSES;
  fake_break(world, 1, "Connection reset by peer");
  fake_free(world, lock);
  assert_int_equal(world->core.attempts.live, 1);
  assert_int_equal(fake_keys(world, KEY), 1);
  world->nodes[1].policy = FAKE_ACCEPTS;
  fake_pass(world, 2 * SECONDS);
  assert_nothing_left();
  assert_int_equal(world->core.attempts.live, 0);
}

/* ---------------------------------------------------------------------- expire, close, forget */

TEST(unreported_expired_lease_is_released) {
  open_world_with_lease(3, NULL);
  rl_lock_expire(lock, world->now_us);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
  assert_null(lock->lease);
  assert_nothing_left();
}

/* The caller reads a result later, when the lease may have expired. */
TEST(lease_that_expired_unreported_is_not_held) {
  for (unsigned extended = 0; extended <= 1; extended++) {
    open_world_with_lease(3, NULL);
    if (extended) {
      operate(lock, RL_OPERATION_EXTEND);
      assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_PENDING);
      fake_settle(world);
    }
    world->now_us = lock->deadline_us - 1;
    assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_OK);
    assert_int_equal(rl_lock_remaining(lock, world->now_us), 1);
    world->now_us++;
    assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_E_EXPIRED);
    assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_E_EXPIRED);
    assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
    assert_int_equal(rl_lock_remaining(lock, world->now_us - 1), 0);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
    assert_nothing_left();
  }
}

TEST(lease_that_was_closed_unreported_is_not_held) {
  open_world_with_lease(3, NULL);
  rl_core_close(&world->core, world->now_us);
  assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_E_CLOSED);
  assert_nothing_left();
}

/* A failure, and a release that succeeded, are reported as they were, however late. */
TEST(only_an_unreported_grant_turns_into_expired) {
  open_world_with_lease(3, NULL);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_error(rl_lock_outcome(lock, world->now_us + 60 * SECONDS), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  operate(lock, RL_OPERATION_EXTEND);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  assert_error(rl_lock_outcome(lock, world->now_us + 60 * SECONDS), REDLOCK_E_CANCELLED);
  assert_non_null(lock->lease);
}

TEST(close_ends_all_operations_and_releases_all_leases) {
  for (unsigned i = 0; i < COUNT_OF(flights); i++) {
    begin_flight(flights[i].operation, flights[i].phase);
    rl_lock *idle = fake_lock(world, "idle", NULL);
    rl_core_close(&world->core, world->now_us);
    assert_error(rl_lock_result(lock), REDLOCK_E_CLOSED);
    assert_error(rl_lock_result(idle), REDLOCK_OK);
    assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
    assert_nothing_left();
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_CLOSED);
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_CLOSED);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_CLOSED);
    rl_core_close(&world->core, world->now_us);
  }
}

TEST(closed_core_accepts_no_nodes) {
  open_world_with_lease(2, NULL);
  rl_core_close(&world->core, world->now_us);
  assert_nothing_left();
  fake_break(world, 0, "Connection reset by peer");
  world->now_us += SECONDS;
  assert_int_equal(rl_core_wanted_connection(&world->core, 0, world->now_us), RL_CONNECTION_NONE);
  assert_int_equal(rl_core_deadline(&world->core), REDLOCK_NEVER);
  assert_error(rl_core_add(&world->core, &world->core.nodes[0]->address), REDLOCK_E_CLOSED);
}

/* Closing while a node is away: its key is released as long as that is of use, and no longer. */
TEST(closed_core_connects_only_to_release) {
  for (unsigned back = 0; back <= 1; back++) {
    open_world_with_lease(2, NULL);
    world->nodes[0].policy = FAKE_REFUSES;
    fake_break(world, 0, "Connection reset by peer");
    rl_core_close(&world->core, world->now_us);
    fake_settle(world);
    assert_true(rl_core_has_unanswered(&world->core));
    if (back) {
      world->nodes[0].policy = FAKE_ACCEPTS;
      fake_pass(world, 2 * SECONDS);
      assert_nothing_left();
      assert_int_equal(world->nodes[0].connections, 2);
    } else {
      fake_pass(world, 20 * SECONDS); /* The key has expired. */
      assert_int_equal(rl_core_wanted_connection(&world->core, 0, world->now_us),
                       RL_CONNECTION_NONE);
      assert_false(rl_core_has_unanswered(&world->core));
    }
  }
}

TEST(reset_sends_nothing_and_holds_nothing) {
  for (unsigned i = 0; i < COUNT_OF(flights); i++) {
    begin_flight(flights[i].operation, flights[i].phase);
    unsigned releases = world->nodes[0].releases;
    world->core.releases->again = true; /* as after a release that found no room */
    rl_core_reset(&world->core);
    assert_false(rl_core_wants_send(&world->core));
    assert_error(rl_lock_result(lock), REDLOCK_E_CANCELLED);
    assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
    assert_int_equal(world->core.attempts.live, 0);
    for (unsigned node = 0; node < 3; node++) {
      size_t length;
      assert_null(rl_core_output(&world->core, node, &length));
      world->nodes[node].connected = false;
      world->nodes[node].queued = 0;
      fake_store_remove(&world->nodes[node].store, KEY);
    }
    fake_pass(world, 20 * SECONDS);
    fake_settle(world);
    assert_int_equal(world->nodes[0].releases, releases);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
    assert_error(fake_acquire(world, lock), REDLOCK_OK); /* and it works again */
  }
}

TEST(unreleased_token_is_released_by_acquire_and_by_free) {
  for (unsigned free_it = 0; free_it <= 1; free_it++) {
    open_world_with_lease(1, NULL);
    operate(lock, RL_OPERATION_RELEASE);
    fake_turn(world);
    fake_reply(world, 0, "-LOADING\r\n");
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_non_null(lock->unreleased);
    if (free_it) {
      rl_lock_free(lock, world->now_us);
    } else {
      fake_store_put(&world->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
      assert_error(fake_acquire(world, lock), REDLOCK_PENDING);
      assert_null(lock->unreleased);
      rl_lock_free(lock, world->now_us);
    }
    fake_settle(world);
    fake_pass(world, 500 * MS); /* An error to a release is not answered at once. */
    fake_settle(world);
    assert_int_equal(world->core.attempts.live, 0);
  }
}

/* A refused operation is the lock's last one: the result of the one before does not stand. */
TEST(wrong_option_is_named_and_replaces_the_last_result) {
  char message[256];
  redlock_options wrong = {.ttl_us = 999};
  open_world_with_lease(1, NULL);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, &wrong, false), REDLOCK_E_INVALID);
  assert_error(rl_lock_result(lock), REDLOCK_E_INVALID);
  assert_string_equal(rl_lock_message(lock, message, sizeof message),
                      "'orders:42': ttl_us must be from 1 ms to 366 days");
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_string_equal(rl_lock_message(lock, message, sizeof message), "");
  assert_error(rl_lock_extend(lock, world->now_us, REDLOCK_DURATION_NONE, false),
               REDLOCK_E_INVALID);
  assert_error(rl_lock_result(lock), REDLOCK_E_INVALID);
  assert_string_equal(rl_lock_message(lock, message, sizeof message),
                      "'orders:42': ttl_us must be from 1 ms to 366 days");
  assert_true(rl_lock_remaining(lock, world->now_us) > 0); /* The lease is not touched. */
  assert_error(rl_lock_acquire(lock, world->now_us, &wrong, false), REDLOCK_E_HELD);
  assert_string_equal(rl_lock_message(lock, message, sizeof message),
                      "'orders:42': the lock is held already");
}
