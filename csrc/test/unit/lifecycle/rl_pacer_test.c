/*
 * Pacing: many operations at once, and the in-flight limit of a node.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"
#include "lease/rl_reentry.h"
#include "rl_test.h"

#define BURST 2000
#define PER_MS 10 /* commands that a node of the burst tests executes in a millisecond */

static rl_lock *named_lock(fake_world *world, unsigned number, const redlock_options *options) {
  char name[16];
  (void)snprintf(name, sizeof name, "r%u", number);
  return fake_lock(world, name, options);
}

/* The node does what it is asked to. */
static void yes(fake_world *world, unsigned node) {
  (void)fake_reply(world, node, fake_next(world, node) == FAKE_SET ? "+OK\r\n" : ":1\r\n");
}

/* Nodes that are well go on until every lock has ended; returns how many ended with |result|. */
static unsigned serve(fake_world *world, rl_lock *const *locks, unsigned count, int result) {
  unsigned ended = 0, pending = count;
  for (unsigned ms = 0; ms < 10000 && pending > 0; ms++) {
    for (unsigned i = 0; i < world->count; i++) {
      for (unsigned k = 0; k < PER_MS && world->nodes[i].queued > 0; k++) {
        yes(world, i);
      }
    }
    fake_pass(world, MS);
    ended = pending = 0;
    for (unsigned i = 0; i < count; i++) {
      pending += rl_lock_result(locks[i]) == REDLOCK_PENDING;
      ended += rl_lock_result(locks[i]) == result;
    }
  }
  assert_int_equal(pending, 0);
  return ended;
}

TEST(burst_of_acquires_succeeds_on_nodes_that_answer) {
  static rl_lock *locks[BURST];
  redlock_options options = fake_once();
  options.ttl_us = 60 * SECONDS;
  fake_world *world = fake_world_new(3);
  rl_lock *warm = fake_lock(world, "warm", NULL);
  assert_error(fake_acquire(world, warm), REDLOCK_OK);
  for (unsigned i = 0; i < BURST; i++) {
    locks[i] = named_lock(world, i, &options);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
  }
  fake_turn(world);
  assert_int_equal(serve(world, locks, BURST, REDLOCK_OK), BURST);
  for (unsigned i = 0; i < BURST; i++) {
    assert_error(rl_lock_extend(locks[i], world->now_us, 0, false), REDLOCK_OK);
  }
  fake_turn(world);
  assert_int_equal(serve(world, locks, BURST, REDLOCK_OK), BURST);
  for (unsigned i = 0; i < BURST; i++) {
    assert_error(rl_lock_release(locks[i], world->now_us, false), REDLOCK_OK);
  }
  fake_turn(world);
  assert_int_equal(serve(world, locks, BURST, REDLOCK_OK), BURST);
}

/* All nodes stop for a moment: rounds in flight fail, and waiting operations are not sent. */
TEST(pause_of_all_nodes_ends_no_lease) {
  static rl_lock *locks[BURST];
  redlock_options options = fake_once();
  options.ttl_us = 60 * SECONDS;
  fake_world *world = fake_world_new(3);
  for (unsigned i = 0; i < BURST; i++) {
    locks[i] = named_lock(world, i, &options);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
  }
  fake_turn(world);
  assert_int_equal(serve(world, locks, BURST, REDLOCK_OK), BURST);
  world->core.pacer.in_flight_limit = 16;
  world->core.pacer.command_us = REDLOCK_SECONDS;
  for (unsigned i = 0; i < BURST; i++) {
    assert_error(rl_lock_extend(locks[i], world->now_us, 0, false), REDLOCK_OK);
  }
  for (unsigned ms = 0; ms < 400; ms++) {
    fake_pass(world, MS);
  }
  assert_int_equal(serve(world, locks, BURST, REDLOCK_E_UNAVAILABLE), 16);
  for (unsigned i = 0; i < BURST; i++) {
    assert_true(rl_lock_remaining(locks[i], world->now_us) > 50 * SECONDS);
  }
}

/* One node, whose window is one command. */
static fake_world *narrow_world(void) {
  fake_world *world = fake_world_new(1);
  world->core.pacer.in_flight_limit = 1;
  world->core.pacer.command_us = REDLOCK_SECONDS;
  return world;
}

static rl_lock *held(fake_world *world, const char *name, redlock_duration ttl_us) {
  redlock_options options = fake_once();
  options.ttl_us = ttl_us;
  options.node_timeout_us = SECONDS;
  rl_lock *lock = fake_lock(world, name, &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  return lock;
}

TEST(extends_exclude_no_acquire) {
  static const char *const names[] = {"a", "b", "c", "d", "e"};
  fake_world *world = narrow_world();
  rl_lock *leases[COUNT_OF(names)];
  for (unsigned i = 0; i < COUNT_OF(names); i++) {
    leases[i] = held(world, names[i], 60 * SECONDS);
  }
  for (unsigned i = 0; i < COUNT_OF(names); i++) {
    assert_error(rl_lock_extend(leases[i], world->now_us, 0, false), REDLOCK_OK);
  }
  rl_lock *lock = fake_lock(world, "wanted", NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  for (unsigned launched = 0; launched < 2 * COUNT_OF(names); launched++) {
    assert_int_equal(world->nodes[0].queued, 1);
    assert_int_equal(fake_next(world, 0), launched == RL_PACER_RENEWALS ? FAKE_SET : FAKE_EXTEND);
    yes(world, 0);
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
      if (rl_lock_result(leases[i]) != REDLOCK_PENDING) {
        assert_error(rl_lock_extend(leases[i], world->now_us, 0, false), REDLOCK_OK);
      }
    }
    fake_turn(world);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* The first of two acquires is out; the second waits for its answer. */
static rl_lock *waiting(fake_world *world, const redlock_options *options) {
  redlock_options patient = fake_once();
  patient.node_timeout_us = 60 * SECONDS;
  rl_lock *out = fake_lock(world, "out", &patient);
  rl_lock *lock = fake_lock(world, "waiting", options);
  assert_error(rl_lock_acquire(out, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[0].sets, 1);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[0].sets, 1);
  assert_false(rl_core_wants_send(&world->core));
  assert_int_equal(rl_core_entropy_wanted(&world->core), 0);
  return lock;
}

TEST(reply_lets_next_round_begin) {
  fake_world *world = narrow_world();
  redlock_options options = fake_once();
  options.node_timeout_us = 60 * SECONDS;
  rl_lock *lock = waiting(world, &options);
  (void)fake_answer(world, 0);
  assert_int_equal(world->nodes[0].sets, 2);
  /* Its time begins with its round. */
  assert_int_equal(lock->round_start_us, world->now_us);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* The processor would be busy with it all the time. */
TEST(waiting_extend_is_checked_when_node_is_behind) {
  fake_world *world = narrow_world();
  redlock_options patient = fake_once();
  patient.node_timeout_us = 60 * SECONDS;
  rl_lock *lease = held(world, "held", 10 * SECONDS); /* Its rounds last a second. */
  rl_lock *out = fake_lock(world, "out", &patient);
  assert_error(rl_lock_acquire(out, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  redlock_time sent_us = world->now_us;
  fake_pass(world, 300 * MS);
  assert_error(rl_lock_extend(lease, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[0].extends, 0);
  assert_false(rl_core_wants_send(&world->core));
  assert_int_equal(rl_core_deadline(&world->core), sent_us + SECONDS + 1);
}

TEST(minority_below_limit_does_not_begin_round) {
  fake_world *world = fake_world_new(3);
  world->core.pacer.in_flight_limit = 1;
  world->core.pacer.command_us = REDLOCK_SECONDS;
  redlock_options options = fake_once();
  options.node_timeout_us = 60 * SECONDS;
  (void)waiting(world, &options);
  for (unsigned ready = 1; ready <= 2; ready++) {
    (void)fake_answer(world, ready - 1);
    for (unsigned i = 0; i < 3; i++) {
      assert_int_equal(world->nodes[i].sets, ready == 2 ? 2 : 1);
    }
  }
}

TEST(wait_limits_delayed_acquire) {
  fake_world *world = narrow_world();
  char message[256];
  redlock_options options = fake_once();
  options.node_timeout_us = 60 * SECONDS;
  options.wait_us = 50 * MS;
  rl_lock *lock = waiting(world, &options);
  assert_int_equal(rl_core_deadline(&world->core), world->now_us + 50 * MS);
  fake_pass(world, 50 * MS - 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_lock_message(lock, message, sizeof message),
                      "'waiting': 0 of 1 nodes granted it (1 needed): 10.0.0.1:6379: too "
                      "many commands are waiting for the node");
  assert_int_equal(world->nodes[0].sets, 1);
}

/* A nested acquire extends what its owner holds, and its budget is the acquire's. */
TEST(wait_limits_delayed_nested_acquire) {
  fake_world *world = narrow_world();
  redlock_options patient = fake_once(), longer = fake_once();
  patient.node_timeout_us = 60 * SECONDS;
  longer.ttl_us = 60 * SECONDS;
  longer.wait_us = 50 * MS;
  rl_lock *outer = fake_lock(world, "held", NULL);
  rl_lock *inner = fake_lock(world, "held", &longer);
  assert_error(rl_reentry_set_owner(outer, world->now_us, "me", 2), REDLOCK_OK);
  assert_error(rl_reentry_set_owner(inner, world->now_us, "me", 2), REDLOCK_OK);
  assert_error(fake_acquire(world, outer), REDLOCK_OK);
  rl_lock *out = fake_lock(world, "out", &patient);
  assert_error(rl_lock_acquire(out, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_acquire(inner, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, 50 * MS - 1);
  assert_int_equal(rl_lock_result(inner), REDLOCK_PENDING);
  fake_pass(world, 1);
  assert_error(rl_lock_result(inner), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->nodes[0].extends, 0);
  assert_int_equal(rl_ring_remaining(inner, world->now_us), 0);
  assert_true(rl_ring_remaining(outer, world->now_us) > 0);
}

/* Other rounds do not wait for a node that has been silent for as long as a round may last. */
TEST(node_that_is_behind_delays_no_round) {
  fake_world *world = narrow_world();
  redlock_options options = fake_once();
  options.node_timeout_us = 100 * MS;
  rl_lock *lock = waiting(world, &options);
  fake_pass(world, 100 * MS);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(rl_core_deadline(&world->core), world->now_us + 1);
  fake_pass(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

/* Three nodes whose window is one command; the last of them answers nothing. */
TEST(hung_minority_delays_no_round) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock(world, "r", NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  world->core.pacer.in_flight_limit = 1;
  world->core.pacer.command_us = REDLOCK_SECONDS;
  for (unsigned i = 0; i < 8; i++) {
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
    fake_turn(world);
    (void)fake_answer(world, 0);
    (void)fake_answer(world, 1);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
  }
  assert_int_equal(world->nodes[2].queued, 8);
}

/* But its outstanding commands stay bounded while it is not known to be behind. */
TEST(overfull_minority_is_waited_for) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock(world, "r", NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  world->core.pacer.in_flight_limit = 1;
  world->core.pacer.command_us = REDLOCK_SECONDS;
  for (unsigned i = 0; i < RL_PACER_OVERFULL; i++) {
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
    fake_turn(world);
    (void)fake_answer(world, 0);
    (void)fake_answer(world, 1);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
  }
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->nodes[0].queued, 0);
  (void)fake_answer(world, 2);
  assert_int_equal(world->nodes[0].queued, 1);
}

/*
 * Whatever the timeout: a lease that two nodes of three keep does not expire because the third
 * hangs.
 */
TEST(overfull_minority_ends_no_lease) {
  fake_world *world = fake_world_new(3);
  redlock_options options = fake_once();
  options.ttl_us = 2 * SECONDS;
  options.node_timeout_us = 60 * SECONDS;
  rl_lock *lock = fake_lock(world, "r", &options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  world->core.pacer.in_flight_limit = 1;
  world->core.pacer.command_us = REDLOCK_SECONDS;
  for (unsigned i = 0; i < RL_PACER_OVERFULL + 1; i++) {
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
    for (unsigned ms = 0; ms < 1000 && rl_lock_result(lock) == REDLOCK_PENDING; ms++) {
      fake_turn(world);
      for (unsigned node = 0; node < 2; node++) {
        if (world->nodes[node].queued > 0) {
          (void)fake_answer(world, node);
        }
      }
      fake_pass(world, 1 * MS);
    }
    assert_error(rl_lock_result(lock), REDLOCK_OK);
  }
}

/* Commands on their way to a distant node are not queued there. */
TEST(distant_node_has_higher_in_flight_limit) {
  static rl_lock *locks[RL_PACER_IN_FLIGHT + 1000];
  fake_world *world = fake_world_new(1);
  redlock_options options = fake_once();
  options.node_timeout_us = SECONDS;
  world->nodes[0].policy = FAKE_SILENT;
  for (unsigned i = 0; i < COUNT_OF(locks); i++) {
    locks[i] = named_lock(world, i, &options);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
  }
  fake_turn(world);
  world->now_us += 10 * MS; /* 1000 commands of 10 us */
  world->nodes[0].blocked = true;
  (void)fake_reply(world, 0, "+OK\r\n");
  fake_turn(world);
  fake_turn(world);
  assert_int_equal(world->core.nodes[0]->link.outstanding_count, COUNT_OF(locks));
  rl_lock *one_more = fake_lock(world, "more", &options);
  assert_error(rl_lock_acquire(one_more, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->core.nodes[0]->link.outstanding_count, COUNT_OF(locks));
}

TEST(one_send_begins_bounded_number_of_rounds) {
  static rl_lock *locks[RL_PACER_MAX + 1];
  fake_world *world = fake_world_new(1);
  for (unsigned i = 0; i < COUNT_OF(locks); i++) {
    locks[i] = named_lock(world, i, NULL);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    yes(world, 0);
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
  }
  for (unsigned i = 0; i < COUNT_OF(locks); i++) {
    assert_error(rl_lock_release(locks[i], world->now_us, false), REDLOCK_OK);
  }
  rl_core_send(&world->core, world->now_us, NULL, 0);
  assert_int_equal(world->core.nodes[0]->link.outstanding_count, RL_PACER_MAX);
  assert_true(rl_core_wants_send(&world->core));
  assert_int_equal(rl_core_deadline(&world->core), 0);
  rl_core_send(&world->core, world->now_us, NULL, 0);
  assert_int_equal(world->core.nodes[0]->link.outstanding_count, RL_PACER_MAX + 1);
  assert_false(rl_core_wants_send(&world->core));
}

/* A lock may end, or go, while it waits. */
TEST(delayed_operation_can_be_cancelled_and_freed) {
  fake_world *world = narrow_world();
  rl_lock *lease = held(world, "held", 10 * SECONDS);
  rl_lock *other = held(world, "other", 10 * SECONDS);
  redlock_options options = fake_once();
  options.node_timeout_us = 60 * SECONDS;
  rl_lock *out = fake_lock(world, "out", &options);
  rl_lock *lock = fake_lock(world, "waiting", &options);
  assert_error(rl_lock_acquire(out, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_extend(lease, world->now_us, 0, false), REDLOCK_OK);
  assert_error(rl_lock_release(other, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  rl_lock_free(other, world->now_us); /* Its release goes out now. */
  rl_lock_free(lease, world->now_us);
  assert_error(rl_lock_result(lock), REDLOCK_E_CANCELLED);
  fake_settle(world);
  assert_int_equal(world->nodes[0].extends, 0);
  assert_int_equal(world->nodes[0].releases, 2);
  assert_int_equal(fake_keys(world, "held") + fake_keys(world, "other"), 0);
}

/* A burst of a fresh client, whose connections are on their way. */
static fake_world *burst_before_connections(rl_lock **locks) {
  redlock_options options = fake_once();
  options.ttl_us = 60 * SECONDS;
  fake_world *world = fake_world_new(3);
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].policy = FAKE_HANGS;
  }
  for (unsigned i = 0; i < BURST; i++) {
    locks[i] = named_lock(world, i, &options);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
  }
  for (unsigned i = 0; i < 10; i++) {
    fake_turn(world);
  }
  return world;
}

static unsigned asking(rl_lock *const *locks) {
  unsigned count = 0;
  for (unsigned i = 0; i < BURST; i++) {
    count += locks[i]->phase == RL_PHASE_ROUND;
  }
  return count;
}

/* Otherwise all would be sent at once on connection, and the last be answered too late. */
TEST(a_burst_before_the_first_connections_is_launched_no_faster_than_after_them) {
  static rl_lock *locks[BURST];
  fake_world *world = burst_before_connections(locks);
  assert_int_equal(asking(locks), RL_PACER_IN_FLIGHT);
  fake_pass(world, 5 * MS);
  assert_int_equal(asking(locks), RL_PACER_IN_FLIGHT);
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].policy = FAKE_ACCEPTS;
    world->nodes[i].connected = true;
    rl_core_connected(&world->core, i, world->now_us);
  }
  fake_turn(world);
  assert_int_equal(serve(world, locks, BURST, REDLOCK_OK), BURST);
}

TEST(connections_in_progress_delay_burst_by_one_attempt) {
  static rl_lock *locks[BURST];
  fake_world *world = burst_before_connections(locks);
  world->now_us += 100 * MS;
  for (unsigned i = 0; i < 10; i++) {
    fake_turn(world);
  }
  assert_int_equal(asking(locks), BURST - RL_PACER_IN_FLIGHT);
  fake_pass(world, 100 * MS);
  for (unsigned i = 0; i < BURST; i++) {
    assert_error(rl_lock_result(locks[i]), REDLOCK_E_UNAVAILABLE);
  }
}
