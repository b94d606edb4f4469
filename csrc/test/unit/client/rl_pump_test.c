/*
 * Steps 2 to 5 of a driver, over a core whose bytes go nowhere.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_pump.h"

#include "fake_nodes.h"
#include "rl_test.h"

#define MANY 1000
#define ALL 7u /* three nodes */

static const char KEY[] = "orders:42";

bool __real_rl_entropy_fill(unsigned char *bytes, size_t length);
bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length);

static bool no_entropy;

bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length) {
  return !no_entropy && __real_rl_entropy_fill(bytes, length);
}

TEST(advance_returns_connections_to_close_and_to_make) {
  fake_world *world = fake_world_new(3);
  rl_core *core = &world->core;
  rl_pump_wants wants = rl_pump_advance(core, world->now_us);
  assert_int_equal(wants.connect, 0); /* No operation needs them yet. */
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, true), REDLOCK_OK);
  wants = rl_pump_advance(core, world->now_us);
  assert_int_equal(wants.connect, ALL);
  rl_core_connecting(core, 0, world->now_us);
  rl_core_connecting(core, 2, world->now_us);
  wants = rl_pump_advance(core, world->now_us);
  assert_int_equal(wants.connect, 2u);
  assert_int_equal(wants.close, 2u); /* If the driver still has the old one. */
  rl_core_disconnected(core, 2, world->now_us, "refused");
  wants = rl_pump_advance(core, world->now_us);
  assert_int_equal(wants.connect, 2u);
  assert_int_equal(wants.close, 6u);
}

TEST(output_is_reported_until_it_is_sent) {
  fake_world *world = fake_world_new(3);
  rl_core *core = &world->core;
  size_t length;
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, true), REDLOCK_OK);
  assert_int_equal(rl_core_with_output(core), 0);
  rl_core_connecting(core, 1, world->now_us);
  rl_core_connected(core, 1, world->now_us); /* The handshake. */
  assert_int_equal(rl_core_with_output(core), 2u);
  assert_non_null(rl_core_output(core, 1, &length));
  rl_core_output_sent(core, 1, length - 1);
  assert_int_equal(rl_core_with_output(core), 2u);
  rl_core_output_sent(core, 1, 1);
  assert_int_equal(rl_core_with_output(core), 0);
  rl_core_reset(core);
}

/* One call must not delay reading replies for long. */
TEST(thousand_acquires_need_more_than_one_call) {
  fake_world *world = fake_world_new(3);
  rl_core *core = &world->core;
  rl_lock *locks[MANY];
  unsigned calls = 0;
  for (unsigned i = 0; i < MANY; i++) {
    locks[i] = fake_lock(world, KEY, NULL);
    assert_error(rl_lock_acquire(locks[i], redlock_now(), NULL, true), REDLOCK_OK);
  }
  while (rl_core_wants_send(core)) {
    unsigned launched = 0;
    assert_int_equal(rl_core_deadline(core), 0);
    assert_error(rl_pump_send(core), REDLOCK_OK);
    for (unsigned i = 0; i < MANY; i++) {
      launched += locks[i]->round > 0;
    }
    calls++;
    assert_true(launched > 0);
    assert_true(launched <= calls * 256);
  }
  assert_int_equal(calls, 4);
}

/* Commands without entropy are sent: releases above all. */
TEST(missing_entropy_holds_back_only_acquires) {
  fake_world *world = fake_world_new(3);
  rl_core *core = &world->core;
  size_t length;
  rl_lock *held = fake_lock(world, "held", NULL);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, held), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, true), REDLOCK_OK);
  assert_error(rl_lock_release(held, world->now_us, true), REDLOCK_OK);
  no_entropy = true;
  assert_error(rl_pump_send(core), REDLOCK_E_SYSTEM);
  assert_int_equal(rl_core_with_output(core), ALL);
  const void *bytes = rl_core_output(core, 0, &length);
  assert_non_null(memmem(bytes, length, "EVAL", 4));
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(lock->round, 0);
  no_entropy = false;
  assert_error(rl_pump_send(core), REDLOCK_OK);
  assert_int_equal(lock->round, 1);
  rl_core_reset(core);
}
