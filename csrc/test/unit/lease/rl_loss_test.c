/*
 * Losses, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_loss.h"

#include "kept.h"
#include "lease/rl_attach.h"
#include "lease/rl_renew.h"
#include "lifecycle/rl_detach.h"
#include "lock/rl_round.h"
#include "operator/rl_ask.h"

#include "lease_world.h"

/* The lock is held, and auto-extended. */
static void keep(unsigned count) {
  redlock_options options = kept();
  open_world_with_lease(count, &options);
}

/* The nodes refuse its first automatic extend, and all that follow. */
static void failing(void) {
  keep(3);
  refuse_all(world);
  fake_pass(world, THIRD_US);
  assert_error(reason_of(world, lock), REDLOCK_E_UNAVAILABLE);
}

TEST(expiry_of_lease_is_reported_once) {
  keep(3);
  refuse_all(world);
  fake_pass(world, THIRD_US - 1);
  assert_null(rl_loss_next(&world->core, world->now_us));
  fake_pass(world, 1);
  redlock_time failed_us = world->now_us;
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
  assert_null(rl_loss_next(&world->core, world->now_us));
  while (world->now_us < FAKE_START_US + LEASE_US) {
    assert_error(reason_of(world, lock), REDLOCK_E_UNAVAILABLE);
    assert_int_equal(since_of(world, lock), failed_us);
    assert_null(rl_loss_next(&world->core, world->now_us));
    wait_for_core(world);
  }
  assert_int_equal(world->now_us, FAKE_START_US + LEASE_US);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
  assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED);
  assert_int_equal(since_of(world, lock), FAKE_START_US + LEASE_US);
  accept_all(world);
  for (unsigned i = 0; i < 20; i++) {
    fake_pass(world, SECONDS);
    fake_settle(world);
  }
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_int_equal(extends(world), 0);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_EXPIRED);
}

/* The extends fail, and then the lease expires before the program asks. */
TEST(reported_loss_is_current) {
  failing();
  world->now_us = lock->deadline_us;
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
  assert_error(lock->loss, REDLOCK_E_EXPIRED);
  fake_turn(world);
  assert_null(rl_loss_next(&world->core, world->now_us));
}

/* Its leases are not auto-extended, so no timer runs between its calls. */
TEST(next_lost_reports_expiry_without_a_turn) {
  redlock_options options = fake_once();
  options.notify_lost = REDLOCK_YES;
  open_world_with_lease(3, &options);
  rl_lock *later = fake_lock(world, "later", &options);
  fake_pass(world, SECONDS);
  assert_error(fake_acquire(world, later), REDLOCK_OK);
  world->now_us = lock->deadline_us - 1;
  assert_null(rl_loss_next(&world->core, world->now_us));
  world->now_us = lock->deadline_us;
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED);
  world->now_us = later->deadline_us;
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), later);
  fake_turn(world);
  assert_null(rl_loss_next(&world->core, world->now_us));
}

/* A program that asks later learns of each loss. */
TEST(loss_counts_after_an_unread_loss) {
  failing();
  uint32_t count = world->core.losses->count;
  fake_pass(world, LEASE_US - THIRD_US);
  assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED);
  assert_int_equal(world->core.losses->count, count + 1);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
  assert_null(rl_loss_next(&world->core, world->now_us));
}

TEST(process_stopped_beyond_deadline_revives_no_lease) {
  keep(3);
  world->now_us += LEASE_US;
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED); /* before any timer */
  world->now_us += 10 * SECONDS;
  fake_settle(world);
  assert_int_equal(extends(world), 0);
  assert_int_equal(world->nodes[0].sets, 1);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
  assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED);
}

/* The process had stopped between the beginning of the extend and its round, or after that. */
TEST(answer_after_deadline_revives_no_lease) {
  for (unsigned answered = 0; answered <= 1; answered++) {
    keep(3);
    fake_pass(world, THIRD_US);
    assert_int_equal(extends(world), 3);
    world->now_us = FAKE_START_US + LEASE_US;
    if (answered == 1) { /* The answers are read before the timers are. */
      for (unsigned i = 0; i < 3; i++) {
        (void)fake_take(world, i);
        rl_core_input(&world->core, i, world->now_us, ":1\r\n", 4);
      }
    }
    fake_settle(world);
    assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
    assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US);
    assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
    assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED);
    assert_int_equal(extends(world), 3);
  }
}

TEST(denied_lease_is_lost_and_not_taken_back) {
  keep(3);
  let_other_client_hold(2, REDLOCK_NEVER);
  fake_pass(world, THIRD_US);
  fake_settle(world);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), lock);
  assert_error(reason_of(world, lock), REDLOCK_E_LOST);
  assert_int_equal(since_of(world, lock), FAKE_START_US + THIRD_US);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY),
                   2); /* The rest of the lease is released, the key of the other client is not. */
  unsigned before = extends(world);
  fake_store_remove(&world->nodes[0].store, KEY);
  fake_store_remove(&world->nodes[1].store, KEY);
  for (unsigned i = 0; i < 20; i++) {
    fake_pass(world, SECONDS);
    fake_settle(world);
  }
  assert_int_equal(extends(world), before);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_LOST);
  char message[512];
  assert_non_null(strstr(rl_lock_message(lock, message, sizeof message),
                         "2 of 3 nodes no longer have its token"));
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_LOST);
  assert_error(reason_of(world, lock), REDLOCK_OK);
}

/* Extends fail, and then the deadline passes before the timer is looked at. */
TEST(expired_lease_is_not_reported_unavailable) {
  failing();
  world->now_us = lock->deadline_us;
  assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED);
  assert_int_equal(since_of(world, lock), world->now_us);
}

/* The lease ends when the caller reads the result, or asks the nodes. Its loss stays. */
TEST(expired_lease_is_lost_until_its_release) {
  redlock_options plain = fake_once();
  redlock_options extended = kept();
  for (unsigned i = 0; i < 4; i++) {
    bool notified = i >= 2;
    bool asks = i % 2 != 0;
    open_world_with_lease(3, notified ? &extended : &plain);
    redlock_time deadline_us = lock->deadline_us;
    world->now_us = deadline_us + SECONDS;
    if (asks) {
      assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_INSPECT, NULL, false), REDLOCK_OK);
      fake_settle(world);
    } else {
      assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_E_EXPIRED);
    }
    assert_error(reason_of(world, lock), REDLOCK_E_EXPIRED);
    assert_int_equal(since_of(world, lock), deadline_us);
    assert_ptr_equal(rl_loss_next(&world->core, world->now_us), notified ? lock : NULL);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
    assert_error(reason_of(world, lock), REDLOCK_OK);
  }
}

/* Ways in which a lease ends that are no loss. */
static void by_release(void) {
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
}
static void by_close(void) {
  rl_core_close(&world->core, world->now_us);
}
static void by_fork(void) {
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].connected = false;
    world->nodes[i].queued = 0;
  }
  rl_core_reset(&world->core);
}
static void by_expiry(void) {
  rl_lock_expire(lock, world->now_us);
}

static void by_detach(void) {
  rl_handover handover;
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_OK);
  rl_lock_detach(lock);
}

static void (*const ends[])(void) = {by_release, by_close, by_fork, by_expiry, by_detach};

TEST(released_lease_is_no_loss_and_not_extended) {
  for (unsigned i = 0; i < COUNT_OF(ends); i++) {
    for (unsigned in_flight = 0; in_flight <= 1; in_flight++) {
      keep(3);
      if (in_flight) {
        fake_pass(world, THIRD_US);
        assert_true(rl_lock_is_in_flight(lock) && !rl_lock_is_busy(lock));
      }
      unsigned before = extends(world);
      ends[i]();
      assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
      for (unsigned k = 0; k < 20; k++) {
        fake_settle(world);
        fake_pass(world, SECONDS);
      }
      assert_int_equal(extends(world), before);
      assert_null(rl_loss_next(&world->core, world->now_us));
      assert_error(reason_of(world, lock), REDLOCK_OK);
      assert_int_equal(world->core.busy_count, 0);
      assert_int_equal(fake_keys(world, KEY), 0);
      assert_true(fake_world_end(world));
    }
  }
}

/* The result of the acquire is then expired, and no loss is reported. */
TEST(result_of_released_lease_reports_no_loss) {
  static const int results[] = {REDLOCK_PENDING, REDLOCK_E_CLOSED, REDLOCK_E_NOT_HELD,
                                REDLOCK_E_EXPIRED, REDLOCK_E_NOT_HELD};
  for (unsigned i = 0; i < COUNT_OF(ends); i++) {
    keep(3);
    ends[i]();
    assert_error(rl_lock_outcome(lock, world->now_us), results[i]);
    assert_error(reason_of(world, lock), REDLOCK_OK);
    assert_null(rl_loss_next(&world->core, world->now_us));
    fake_settle(world);
  }
}

/* Its extends had begun to fail, and the program had not asked. */
TEST(closed_client_reports_no_loss) {
  failing();
  rl_core_close(&world->core, world->now_us);
  assert_null(rl_loss_next(&world->core, world->now_us));
}

TEST(freed_released_or_acquired_lock_reports_no_loss) {
  rl_lock *locks[4];
  redlock_options options = kept();
  static const char *const keys[] = {"a", "b", "c", "d"};
  world = fake_world_new(1);
  for (unsigned i = 0; i < COUNT_OF(locks); i++) {
    locks[i] = fake_lock(world, keys[i], &options);
    assert_error(fake_acquire(world, locks[i]), REDLOCK_OK);
  }
  fake_pass(world, 20 * SECONDS);
  assert_error(reason_of(world, locks[1]), REDLOCK_E_EXPIRED);
  rl_lock_free(locks[1], world->now_us);
  assert_error(rl_lock_acquire(locks[0], world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_release(locks[3], world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_ptr_equal(rl_loss_next(&world->core, world->now_us), locks[2]);
  assert_null(rl_loss_next(&world->core, world->now_us));
  assert_error(reason_of(world, locks[0]), REDLOCK_OK);
  assert_true(rl_lock_remaining(locks[0], world->now_us) > 0);
}
