/*
 * Out of memory while locks wait: the k-th allocation fails, for every k, once and from there on.
 * Nothing crashes or leaks, no lock waits for ever, and notifications arrive when memory is back.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait/rl_notify.h"
#include "waiting_world.h"

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

#include "failing_memory.h"

#define LOCKS 5

static void go_on(fake_world *world, redlock_duration duration_us) {
  redlock_time until_us = world->now_us + duration_us;
  while (world->now_us < until_us) {
    redlock_time next_us = rl_core_deadline(&world->core);
    assert_now(next_us > world->now_us);
    world->now_us = next_us < until_us ? next_us : until_us;
    fake_settle(world);
  }
}

static void assert_safe(fake_world *world, rl_lock *const *locks) {
  unsigned held = 0;
  for (unsigned i = 0; i < LOCKS; i++) {
    if (locks[i] != NULL && rl_lock_remaining(locks[i], world->now_us) > 0) {
      held++;
      assert_now(fake_holders(world, KEY, rl_attempt_token(locks[i]->lease)) >= 2);
    }
  }
  assert_now(held <= 1);
}

/*
 * Several wait for what another client holds, one gives up, connections break, and each has its
 * turn.
 */
static void play(fake_world *world, rl_lock **locks) {
  redlock_options options = patient_options();
  options.wait_us = 5 * SECONDS;
  let_other_take(world, 7, REDLOCK_NEVER);
  for (unsigned i = 0; i < LOCKS; i++) {
    locks[i] = fake_lock(world, KEY, &options);
    if (locks[i] != NULL) {
      (void)rl_lock_acquire(locks[i], world->now_us, NULL, true);
      fake_turn(world);
    }
  }
  fake_settle(world);
  go_on(world, 300 * MS);
  if (rl_core_connection_count(&world->core) > world->count) {
    fake_break(world, world->count + 1, "Connection reset by peer");
  }
  fake_break(world, 2, "Connection reset by peer");
  go_on(world, 300 * MS);
  if (locks[0] != NULL) {
    rl_lock_cancel(locks[0], world->now_us, REDLOCK_E_CANCELLED);
  }
  if (locks[3] != NULL) {
    rl_lock_free(locks[3], world->now_us);
    locks[3] = NULL;
  }
  for (unsigned i = 0; i < world->count; i++) {
    let_other_release(world, i);
  }
  for (unsigned turn = 0; turn < 2 * LOCKS; turn++) {
    fake_settle(world);
    go_on(world, 100 * MS);
    assert_safe(world, locks);
    for (unsigned i = 0; i < LOCKS; i++) {
      if (locks[i] != NULL && rl_lock_remaining(locks[i], world->now_us) > 0) {
        (void)rl_lock_release(locks[i], world->now_us, true);
        break;
      }
    }
  }
}

static void end_all_waits(fake_world *world, rl_lock **locks) {
  memory.armed = false;
  go_on(world, 10 * SECONDS);
  for (unsigned i = 0; i < LOCKS; i++) {
    if (locks[i] != NULL) {
      assert_true(rl_lock_result(locks[i]) != REDLOCK_PENDING);
      rl_lock_free(locks[i], world->now_us);
    }
  }
  fake_settle(world);
  go_on(world, 10 * SECONDS);
  assert_int_equal(world->core.waitlists->table.count, 0);
  assert_int_equal(world->core.waitlists->queued_count, 0);
  assert_int_equal(world->core.notify->used_count, 0);
  assert_int_equal(world->core.busy_count, 0);
  assert_int_equal(fake_keys(world, KEY), 0);
}

static void calls_arrive_again(fake_world *world) {
  go_on(world, 120 * SECONDS);
  for (unsigned i = 0; i < world->count; i++) {
    fake_queue_clear(&world->nodes[i].store, KEY); /* It lives for a minute, here for ever. */
  }
  let_other_take(world, 7, REDLOCK_NEVER);
  redlock_options options = patient_options();
  options.retry_delay_us = 50 * SECONDS;
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  go_on(world, 500 * MS);
  redlock_time released_us = world->now_us;
  for (unsigned i = 0; i < world->count; i++) {
    let_other_release(world, i);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->now_us, released_us);
}

/* Returns whether an allocation failed. */
static bool waiting_with(size_t fail_at, bool for_good) {
  long before = memory.live;
  rl_lock *locks[LOCKS] = {NULL};
  fake_world *world = malloc(sizeof *world);
  assert_non_null(world);
  arm(fail_at, for_good);
  int error = fake_world_open_notifying(world, 3);
  if (error == REDLOCK_OK) {
    play(world, locks);
    end_all_waits(world, locks);
    calls_arrive_again(world);
  } else {
    assert_now(error == REDLOCK_E_NO_MEMORY);
  }
  memory.armed = false;
  fake_world_close(world);
  free(world);
  assert_int_equal(memory.live, before);
  return memory.failed > 0;
}

TEST(waiters_survive_every_failed_allocation) {
  for (int for_good = 0; for_good <= 1; for_good++) {
    size_t fail_at = 1;
    while (waiting_with(fail_at, for_good == 1)) {
      fail_at++;
    }
    print_message("waiting: %zu allocations, each failed %s\n", fail_at - 1,
                  for_good ? "with all after it" : "alone");
    assert_true(fail_at > 30);
  }
}

TEST(waiting_allocates_nothing_after_warm_up) {
  fake_world *world = world_with_subscribers(3);
  redlock_options options = patient_options();
  rl_lock *locks[3];
  for (unsigned i = 0; i < 3; i++) {
    locks[i] = fake_lock(world, KEY, &options);
  }
  for (unsigned round = 0; round < 60; round++) {
    if (round == 20) {
      arm(0, false);
    }
    let_other_take(world, 7, REDLOCK_NEVER);
    for (unsigned i = 0; i < 3; i++) {
      assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, true), REDLOCK_OK);
      fake_turn(world);
    }
    fake_settle(world);
    go_on(world, 60 * MS);
    for (unsigned i = 0; i < 3; i++) {
      let_other_release(world, i);
    }
    for (unsigned i = 0; i < 3; i++) {
      fake_settle(world);
      go_on(world, 60 * MS);
      assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
      assert_error(rl_lock_release(locks[i], world->now_us, true), REDLOCK_OK);
    }
    fake_settle(world);
  }
  memory.armed = false;
  assert_int_equal(memory.calls, 0);
}

TEST(free_of_a_waiter_allocates_nothing) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *front = begin_waiter(world);
  rl_lock *next = begin_waiter(world);
  rl_lock *last = begin_waiter(world);
  arm(0, false);
  rl_lock_free(next, world->now_us);
  rl_lock_free(front, world->now_us);
  rl_lock_free(last, world->now_us);
  memory.armed = false;
  assert_int_equal(memory.calls, 0);
  fake_settle(world);
  assert_null(fake_queue_at(&world->nodes[0].store, KEY, 0));
}
