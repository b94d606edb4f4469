/*
 * What the core counts and reports, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "kept.h"
#include "lease/rl_loss.h"
#include "lock/rl_events.h"
#include "lock/rl_round.h"

static const rl_node_stats *stats_of(const fake_world *world, unsigned node) {
  return &world->core.nodes[node]->stats;
}

static const redlock_outcomes *ended(const fake_world *world, rl_stats_kind kind) {
  return &world->core.stats.operations[kind];
}

static uint64_t count_of(const rl_histogram *histogram) {
  redlock_histogram info;
  rl_histogram_read(histogram, &info);
  return info.count;
}

static void assert_votes(const fake_world *world, unsigned node, redlock_vote vote,
                         uint64_t expected) {
  for (int kind = 0; kind < RL_STATS_VOTES; kind++) {
    assert_int_equal(stats_of(world, node)->votes[kind], kind == (int)vote ? expected : 0);
  }
}

static fake_world *eventful(unsigned count) {
  fake_world *world = fake_world_new(count);
  assert_error(rl_events_open(&world->core.events), REDLOCK_OK);
  return world;
}

static redlock_event next_event(fake_world *world, unsigned *node) {
  const rl_events_entry *entry = rl_events_take(world->core.events);
  if (entry != NULL && node != NULL) {
    *node = entry->node;
  }
  return entry == NULL ? 0 : entry->event;
}

static rl_lock *plain(fake_world *world) {
  redlock_options options = fake_once();
  return fake_lock(world, KEY, &options);
}

/* ---------------------------------------------------------------------------------- operations */

TEST(each_operation_counts_once) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = plain(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(ended(world, RL_STATS_ACQUIRE)->ok, 1);
  assert_int_equal(ended(world, RL_STATS_EXTEND)->ok, 1);
  assert_int_equal(ended(world, RL_STATS_RELEASE)->ok, 1);
  assert_int_equal(world->core.stats.attempts, 1);
  assert_int_equal(count_of(&world->core.stats.acquire_time), 1);
  assert_int_equal(count_of(&world->core.stats.wait_time), 0);
  for (unsigned i = 0; i < 3; i++) {
    bool decides = i < 2; /* After the decision of a release no vote counts. */
    assert_votes(world, i, REDLOCK_VOTE_GRANTED, decides ? 3 : 2);
    assert_int_equal(stats_of(world, i)->late, decides ? 0 : 1);
    assert_int_equal(stats_of(world, i)->connections, 1);
    assert_int_equal(stats_of(world, i)->failures, 0);
    assert_int_equal(count_of(&stats_of(world, i)->latency), 3);
  }
}

TEST(refused_operation_counts_by_its_error) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = plain(world);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_E_NOT_HELD);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_HELD);
  redlock_options wrong = {.ttl_us = 1};
  rl_core_close(&world->core, world->now_us);
  assert_error(rl_lock_acquire(lock, world->now_us, &wrong, false), REDLOCK_E_CLOSED);
  assert_int_equal(ended(world, RL_STATS_EXTEND)->not_held, 1);
  assert_int_equal(ended(world, RL_STATS_RELEASE)->not_held, 2);
  assert_int_equal(ended(world, RL_STATS_ACQUIRE)->ok, 1);
  assert_int_equal(ended(world, RL_STATS_ACQUIRE)->held, 1);
  assert_int_equal(ended(world, RL_STATS_ACQUIRE)->closed, 1);
  fake_settle(world);
}

TEST(automatic_extends_count_apart) {
  rl_lock *lock;
  fake_world *world = held(3, &lock);
  fake_pass(world, THIRD_US);
  fake_settle(world);
  assert_int_equal(ended(world, RL_STATS_AUTO_EXTEND)->ok, 1);
  fake_pass(world, THIRD_US);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK); /* overtakes the next */
  fake_settle(world);
  assert_int_equal(ended(world, RL_STATS_AUTO_EXTEND)->ok, 1);
  assert_int_equal(ended(world, RL_STATS_AUTO_EXTEND)->cancelled, 1);
  assert_int_equal(ended(world, RL_STATS_EXTEND)->ok, 0);
}

TEST(waiting_acquire_is_counted_and_measured) {
  fake_world *world = eventful(1);
  redlock_options options = {.wait_us = 60 * SECONDS};
  fake_store_put(&world->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  rl_lock *lock = fake_lock(world, KEY, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  assert_int_equal(rl_core_waiting(&world->core), 0);
  fake_settle(world);
  assert_int_equal(rl_core_waiting(&world->core), 1);
  fake_pass(world, 3 * SECONDS);
  assert_int_equal(rl_core_waiting(&world->core), 1); /* also while it asks */
  fake_store_remove(&world->nodes[0].store, KEY);
  while (rl_lock_result(lock) == REDLOCK_PENDING) {
    fake_settle(world);
    fake_pass(world, 400 * MS);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(rl_core_waiting(&world->core), 0);
  assert_int_equal(rl_core_count_leases(&world->core, world->now_us), 1);
  assert_int_equal(count_of(&world->core.stats.wait_time), 1);
  assert_int_equal(count_of(&world->core.stats.acquire_time), 1);
  assert_true(world->core.stats.wait_time.sum_us >= 3 * SECONDS);
  assert_int_equal(world->core.stats.attempts, world->nodes[0].sets);
  assert_int_equal(next_event(world, NULL), REDLOCK_EVENT_UP);
  const rl_events_entry *waited = rl_events_take(world->core.events);
  assert_int_equal(waited->event, REDLOCK_EVENT_WAITED);
  assert_error(waited->code, REDLOCK_OK);
  assert_int_equal(waited->waited_us, world->core.stats.wait_time.sum_us);
  assert_null(rl_events_take(world->core.events));
}

TEST(queued_waiters_count_as_waiting) {
  fake_world *world = fake_world_new(1);
  redlock_options options = {.wait_us = 500 * MS};
  fake_store_put(&world->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  for (unsigned i = 0; i < 5; i++) {
    rl_lock *lock = fake_lock(world, KEY, &options);
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  }
  fake_settle(world);
  assert_int_equal(rl_core_waiting(&world->core), 5);
  for (unsigned i = 0; i < 20; i++) {
    fake_pass(world, 100 * MS);
    fake_settle(world);
  }
  assert_int_equal(rl_core_waiting(&world->core), 0);
  assert_int_equal(ended(world, RL_STATS_ACQUIRE)->taken, 5);
  assert_int_equal(count_of(&world->core.stats.wait_time), 5);
  assert_int_equal(count_of(&world->core.stats.acquire_time), 0);
  /* The votes that waiters copy from the head are no votes of the node. */
  assert_votes(world, 0, REDLOCK_VOTE_TAKEN, world->nodes[0].sets);
}

TEST(short_wait_is_no_event) {
  fake_world *world = eventful(1);
  redlock_options options = {.wait_us = 900 * MS};
  fake_store_put(&world->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  rl_lock *lock = fake_lock(world, KEY, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  while (rl_lock_result(lock) == REDLOCK_PENDING) {
    fake_settle(world);
    fake_pass(world, 10 * MS);
  }
  assert_int_equal(count_of(&world->core.stats.wait_time), 1);
  assert_int_equal(next_event(world, NULL), REDLOCK_EVENT_UP);
  assert_int_equal(next_event(world, NULL), 0);
}

/* --------------------------------------------------------------------------------------- votes */

TEST(reply_after_the_round_is_late) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = plain(world);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  for (unsigned i = 0; i < 2; i++) {
    (void)fake_answer(world, i);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  (void)fake_answer(world, 2); /* the grant: its round is over */
  assert_int_equal(stats_of(world, 2)->late, 1);
  assert_votes(world, 2, REDLOCK_VOTE_GRANTED, 0);
  (void)fake_answer(world, 2); /* the release */
  assert_votes(world, 2, REDLOCK_VOTE_GRANTED, 1);
  fake_settle(world);
  assert_votes(world, 0, REDLOCK_VOTE_GRANTED, 2);
  assert_int_equal(stats_of(world, 2)->late, 1);
}

TEST(vote_after_the_decision_counts) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = plain(world);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i);
  }
  assert_votes(world, 2, REDLOCK_VOTE_GRANTED, 1);
  assert_int_equal(stats_of(world, 2)->late, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(node_without_a_reply_votes_unknown_and_its_reply_is_late) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = plain(world);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  for (unsigned i = 0; i < 3; i++) {
    assert_votes(world, i, REDLOCK_VOTE_UNKNOWN, 1);
  }
  (void)fake_answer(world, 0);
  assert_int_equal(stats_of(world, 0)->late, 1);
  assert_votes(world, 0, REDLOCK_VOTE_UNKNOWN, 1);
  fake_settle(world);
  assert_int_equal(stats_of(world, 0)->late, 1); /* Releases of a failed attempt are no votes. */
}

TEST(unreachable_node_votes_error) {
  fake_world *world = fake_world_new(3);
  world->nodes[1].policy = FAKE_REFUSES;
  rl_lock *lock = plain(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_votes(world, 1, REDLOCK_VOTE_ERROR, 1);
  assert_int_equal(stats_of(world, 1)->connections, 0);
  assert_true(stats_of(world, 1)->failures > 0);
}

TEST(heal_is_counted_and_is_no_vote) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = plain(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_store_remove(&world->nodes[2].store, KEY);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_int_equal(stats_of(world, 2)->heals, 1);
  assert_int_equal(stats_of(world, 0)->heals, 0);
  assert_int_equal(stats_of(world, 2)->votes[REDLOCK_VOTE_GRANTED], 1);
  assert_int_equal(stats_of(world, 2)->votes[REDLOCK_VOTE_TAKEN], 1);
  assert_int_equal(stats_of(world, 2)->late, 0);
}

/* A program with blocking calls that sleeps between them reads replies with its next call. */
TEST(reply_of_an_absent_driver_has_no_latency) {
  for (unsigned late = 0; late <= 1; late++) {
    fake_world *world = fake_world_new(3);
    rl_lock *lock = plain(world);
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    for (unsigned i = 0; i < 2; i++) {
      (void)fake_answer(world, i);
    }
    world->core.absent_us = world->now_us;
    world->now_us += MS + late;
    (void)fake_answer(world, 2);
    assert_int_equal(count_of(&stats_of(world, 2)->latency), late ? 0 : 1);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
    fake_turn(world);
    world->now_us += 5 * MS;
    fake_settle(world);
    assert_int_equal(count_of(&stats_of(world, 2)->latency), late ? 1 : 2);
  }
}

/* -------------------------------------------------------------------------------------- losses */

/* Ways in which a program meets an expired lease. */
static void by_release(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
}
static void by_release_send(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
}
static void by_acquire(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
}
static void by_outcome(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_outcome(lock, world->now_us), REDLOCK_E_EXPIRED);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
}
static void by_close(fake_world *world, rl_lock *lock) {
  (void)lock;
  rl_core_close(&world->core, world->now_us);
}
static void by_free(fake_world *world, rl_lock *lock) {
  rl_lock_free(lock, world->now_us);
}

TEST(expired_lease_counts_once) {
  static void (*const ways[])(fake_world * world, rl_lock * lock) = {
      by_release, by_release_send, by_acquire, by_outcome, by_close, by_free};
  redlock_options options[] = {fake_once(), kept(), fake_once()};
  options[2].notify_lost = REDLOCK_YES;
  for (unsigned i = 0; i < COUNT_OF(ways) * COUNT_OF(options); i++) {
    fake_world *world = eventful(1);
    rl_lock *lock = fake_lock(world, KEY, &options[i % COUNT_OF(options)]);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    world->nodes[0].policy = FAKE_HANGS;
    fake_break(world, 0, "Connection reset by peer");
    assert_int_equal(rl_core_count_leases(&world->core, world->now_us), 1);
    world->now_us += LEASE_US;
    assert_int_equal(rl_core_count_leases(&world->core, world->now_us), 0);
    fake_turn(world);
    ways[i / COUNT_OF(options)](world, lock);
    assert_int_equal(world->core.stats.lost_expired, 1);
    unsigned lost = 0;
    for (redlock_event event; (event = next_event(world, NULL)) != 0;) {
      lost += event == REDLOCK_EVENT_LOST;
    }
    assert_int_equal(lost, 1);
  }
}

TEST(denied_lease_counts_once) {
  for (unsigned automatic = 0; automatic <= 1; automatic++) {
    redlock_options options = automatic ? kept() : fake_once();
    rl_lock *lock;
    fake_world *world = held_by(3, &lock, &options);
    for (unsigned i = 0; i < 2; i++) {
      fake_store_put(&world->nodes[i].store, KEY, OTHER, REDLOCK_NEVER);
    }
    if (automatic) {
      fake_pass(world, THIRD_US);
    } else {
      assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
    }
    fake_settle(world);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_LOST);
    assert_int_equal(world->core.stats.lost_denied, 1);
    assert_int_equal(world->core.stats.lost_expired, 0);
    assert_int_equal(ended(world, automatic ? RL_STATS_AUTO_EXTEND : RL_STATS_EXTEND)->lost, 1);
    assert_int_equal(ended(world, RL_STATS_RELEASE)->lost, 1);
  }
}

TEST(warning_and_loss_count_apart) {
  rl_lock *lock;
  fake_world *world = held(3, &lock);
  assert_error(rl_events_open(&world->core.events), REDLOCK_OK);
  refuse_all(world);
  while (world->now_us < FAKE_START_US + LEASE_US) {
    wait_for_core(world);
  }
  assert_int_equal(world->core.stats.warned_unavailable, 1);
  assert_int_equal(world->core.stats.lost_expired, 1);
  assert_true(ended(world, RL_STATS_AUTO_EXTEND)->unavailable > 1);
  unsigned warned = 0, lost = 0;
  for (redlock_event event; (event = next_event(world, NULL)) != 0;) {
    warned += event == REDLOCK_EVENT_WARNED;
    lost += event == REDLOCK_EVENT_LOST;
  }
  assert_int_equal(warned, 1);
  assert_int_equal(lost, 1);
}

TEST(max_hold_is_a_loss_of_its_own) {
  redlock_options options = kept();
  options.max_hold_us = 11 * SECONDS;
  rl_lock *lock;
  fake_world *world = held_by(3, &lock, &options);
  for (unsigned i = 0; i < 30; i++) {
    fake_pass(world, SECONDS);
    fake_settle(world);
  }
  assert_int_equal(world->core.stats.lost_max_hold, 1);
  assert_int_equal(world->core.stats.lost_expired, 0);
}

TEST(released_lease_is_no_loss) {
  static void (*const ways[])(fake_world * world, rl_lock * lock) = {by_release, by_release_send,
                                                                     by_close, by_free};
  for (unsigned i = 0; i < COUNT_OF(ways); i++) {
    fake_world *world = fake_world_new(3);
    rl_lock *lock = plain(world);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    fake_pass(world, LEASE_US - 1);
    ways[i](world, lock);
    fake_settle(world);
    fake_pass(world, SECONDS);
    assert_int_equal(world->core.stats.lost_expired, 0);
  }
}

/* --------------------------------------------------------------------------------------- nodes */

TEST(node_is_reported_up_and_down_once) {
  unsigned node = 9;
  fake_world *world = eventful(3);
  world->nodes[1].policy = FAKE_REFUSES;
  rl_lock *lock = plain(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  for (unsigned i = 0; i < 20; i++) { /* tries again and again */
    fake_pass(world, SECONDS / 2);
    fake_settle(world);
  }
  unsigned up = 0, down = 0;
  for (redlock_event event; (event = next_event(world, &node)) != 0;) {
    up |= event == REDLOCK_EVENT_UP ? 1u << node : 0;
    assert_false(event == REDLOCK_EVENT_DOWN && (down & 1u << node) != 0);
    down |= event == REDLOCK_EVENT_DOWN ? 1u << node : 0;
  }
  assert_int_equal(up, 5);
  assert_int_equal(down, 2);
  world->nodes[1].policy = FAKE_ACCEPTS;
  fake_pass(world, 2 * SECONDS);
  fake_settle(world);
  assert_int_equal(next_event(world, &node), REDLOCK_EVENT_UP);
  assert_int_equal(node, 1);
  assert_int_equal(next_event(world, &node), 0);
}

TEST(closed_idle_connection_is_not_reported_down) {
  fake_world *world = eventful(1);
  rl_lock *lock = plain(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(next_event(world, NULL), REDLOCK_EVENT_UP);
  fake_break(world, 0, "the node closed the connection");
  fake_settle(world);
  assert_int_equal(next_event(world, NULL), 0);
  assert_int_equal(stats_of(world, 0)->connections, 2);
  assert_int_equal(stats_of(world, 0)->failures, 1);
}

TEST(child_begins_at_zero) {
  static const rl_stats nothing = {0};
  static const rl_node_stats nothing_of_node = {0};
  fake_world *world = eventful(3);
  rl_lock *lock = plain(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  for (unsigned i = 0; i < world->count; i++) {
    world->nodes[i].connected = false;
    world->nodes[i].queued = 0;
    fake_store_remove(&world->nodes[i].store, KEY);
  }
  rl_core_reset(&world->core);
  rl_core_reset_stats(&world->core);
  assert_memory_equal(&world->core.stats, &nothing, sizeof nothing);
  assert_memory_equal(stats_of(world, 0), &nothing_of_node, sizeof nothing_of_node);
  assert_int_equal(rl_core_count_leases(&world->core, world->now_us), 0);
  assert_null(rl_events_take(world->core.events));
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(ended(world, RL_STATS_ACQUIRE)->ok, 1);
  assert_int_equal(stats_of(world, 0)->connections, 1);
  assert_int_equal(next_event(world, NULL), REDLOCK_EVENT_UP);
}

TEST(close_keeps_the_counters) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = plain(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  rl_core_close(&world->core, world->now_us);
  fake_settle(world);
  rl_core_reset(&world->core);
  assert_int_equal(ended(world, RL_STATS_ACQUIRE)->ok, 1);
  assert_votes(world, 0, REDLOCK_VOTE_GRANTED, 1);
}
