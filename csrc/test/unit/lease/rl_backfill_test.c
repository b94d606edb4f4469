/*
 * Backfill: nodes that get the key after the decision.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_round.h"

#include "lease_world.h"

/* A lock acquired while a reply of node 2 is overdue for longer than an attempt may last. */
static void take_behind(void) {
  world = fake_world_new(3);
  redlock_options once = fake_once();
  lock = fake_lock(world, "first", &once);
  fake_begin_acquire(world, lock);
  assert_error(let_majority_answer(), REDLOCK_OK);
  fake_pass(world, 101 * MS);
  begin_single_attempt();
  assert_error(let_majority_answer(), REDLOCK_OK);
}

/* The more nodes hold the key, the more of them may forget it. */
TEST(backfill_asks_a_node_that_comes_up_after_the_decision) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_SILENT;
  begin_single_attempt();
  assert_error(let_majority_answer(), REDLOCK_OK);
  redlock_time deadline_us = lock->deadline_us;
  fake_pass(world, 500 * MS);
  fake_reply(world, 2, "+OK\r\n"); /* the handshake */
  assert_int_equal(fake_next(world, 2), FAKE_SET);
  assert_string_equal(world->nodes[2].queue[0].token, rl_attempt_token(lock->lease));
  fake_answer(world, 2);
  assert_int_equal(lock->votes[2].vote, REDLOCK_VOTE_GRANTED);
  assert_int_equal(lock->deadline_us, deadline_us);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* A key that outlives the lease would keep other clients out. */
TEST(backfill_sets_the_rest_of_the_ttl) {
  static const redlock_duration waits_us[] = {0, 1, 999, MS, 1001, 500 * MS, 2900 * MS};
  for (unsigned i = 0; i < COUNT_OF(waits_us); i++) {
    for (unsigned delayed = 0; delayed <= 1; delayed++) {
      redlock_options options = fake_once();
      options.lock_delay_us = delayed ? 250 * MS : 0;
      world = fake_world_new(3);
      world->nodes[2].policy = FAKE_SILENT;
      begin_acquire_of_new_lock(&options);
      assert_error(let_majority_answer(), REDLOCK_OK);
      fake_pass(world, waits_us[i]);
      fake_reply(world, 2, "+OK\r\n"); /* the handshake */
      fake_answer(world, 2);
      redlock_time end_us = FAKE_START_US + 10 * SECONDS + options.lock_delay_us;
      assert_true(key_expiry(2) >= end_us && key_expiry(2) < end_us + MS);
      assert_true(fake_world_end(world));
    }
  }
}

static void assert_joined(rl_lock *self) {
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(self->lease)), world->count);
  assert_int_equal(self->votes[2].vote, REDLOCK_VOTE_GRANTED);
  assert_true(key_expiry(2) >= self->deadline_us);
  assert_error(release(self), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(backfill_asks_a_node_that_has_caught_up) {
  take_behind();
  assert_int_equal(world->nodes[2].sets, 1);
  fake_pass(world, 50 * MS);
  (void)fake_answer(world, 2); /* its outstanding command */
  fake_pass(world, 100 * MS);
  assert_int_equal(world->nodes[2].sets, 2);
  fake_settle(world);
  assert_joined(lock);
}

/* The node denies an extend that overtook nothing: its SET is on its way behind it. */
TEST(extend_does_not_heal_a_node_in_backfill) {
  take_behind();
  begin_extend(0);
  assert_error(let_majority_answer(), REDLOCK_OK);
  (void)fake_answer(world, 2); /* its outstanding command */
  fake_pass(world, 100 * MS);
  assert_int_equal(world->nodes[2].sets, 2); /* it joins */
  (void)fake_answer(world, 2);               /* the extend: no such key */
  assert_int_equal(world->nodes[2].sets, 2);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
}

/* It has answered, but other replies are overdue for longer than an attempt may last. */
TEST(backfill_skips_a_node_that_is_behind) {
  redlock_options once = fake_once();
  world = fake_world_new(3);
  rl_lock *first = fake_lock(world, "first", &once);
  fake_begin_acquire(world, first);
  let_nodes_0_and_1_answer();
  fake_pass(world, 101 * MS);
  once.node_timeout_us = 10 * MS;
  lock = fake_lock(world, KEY, &once);
  fake_begin_acquire(world, lock);
  assert_error(let_majority_answer(), REDLOCK_OK);
  assert_error(rl_lock_extend(first, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world); /* to node 2 as well */
  let_nodes_0_and_1_answer();
  fake_pass(world, 120 * MS);
  (void)fake_answer(world, 2); /* the SET of |first|; the extend has been outstanding for 120 ms */
  fake_pass(world, 100 * MS);
  assert_int_equal(world->nodes[2].sets, 1);
  (void)fake_answer(world, 2);
  fake_pass(world, 100 * MS);
  assert_int_equal(world->nodes[2].sets, 2);
  fake_settle(world);
  assert_joined(lock);
}

/* A search through many locks takes time: no search for each reply of an unstable node. */
TEST(backfill_visits_all_locks_every_100_ms_at_most) {
  take_behind();
  redlock_time start_us = world->now_us;
  (void)fake_answer(world, 2); /* its outstanding command */
  assert_int_equal(fake_next(world, 2), FAKE_SET);
  assert_int_equal(world->core.backfills->at_us, start_us + RL_BACKFILL_EVERY_US);
  /* It answers only when the next lock has been taken without it. */
  rl_lock_free(lock, world->now_us);
  fake_turn(world);
  let_nodes_0_and_1_answer();
  redlock_options quick = fake_once();
  quick.node_timeout_us = MS;
  rl_lock *next = fake_lock(world, "next", &quick);
  fake_pass(world, 6 * MS);
  fake_begin_acquire(world, next);
  let_nodes_0_and_1_answer();
  assert_error(rl_lock_result(next), REDLOCK_OK);
  unsigned sets = world->nodes[2].sets;
  while (world->nodes[2].queued > 0) {
    (void)fake_answer(world, 2);
  }
  assert_int_equal(world->nodes[2].sets, sets);
  assert_int_equal(rl_core_deadline(&world->core), start_us + RL_BACKFILL_EVERY_US);
  fake_pass(world, start_us + RL_BACKFILL_EVERY_US - 1 - world->now_us);
  assert_int_equal(world->nodes[2].sets, sets);
  fake_pass(world, 1);
  assert_int_equal(world->nodes[2].sets, sets + 1);
  fake_settle(world);
  assert_int_equal(rl_core_deadline(&world->core), REDLOCK_NEVER); /* nothing is left to do */
}

/* It has caught up, but the locks have just been gone through; and then its connection breaks. */
TEST(backfill_does_not_wait_for_a_node_that_disconnects_again) {
  take_behind();
  world->core.backfills->at_us = world->now_us + RL_BACKFILL_EVERY_US;
  (void)fake_answer(world, 2); /* its outstanding command */
  assert_int_equal(world->nodes[2].sets, 1);
  world->nodes[2].policy = FAKE_HANGS;
  fake_break(world, 2, "Connection reset by peer");
  fake_pass(world, RL_BACKFILL_EVERY_US);
  assert_true(rl_core_deadline(&world->core) > world->now_us + RL_BACKFILL_EVERY_US);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
}

TEST(backfill_pauses_during_an_operation) {
  take_behind();
  begin_extend(0);
  (void)fake_answer(world, 2); /* its outstanding command */
  assert_int_equal(world->nodes[2].sets, 1);
  fake_pass(world, 100 * MS); /* No node has answered the extend. */
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->nodes[2].sets, 2);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
}

TEST(backfill_asks_a_node_that_is_back) {
  for (unsigned refused = 0; refused <= 1; refused++) {
    world = fake_world_new(3);
    world->nodes[2].policy = refused ? FAKE_REFUSES : FAKE_HANGS;
    begin_single_attempt();
    assert_error(let_majority_answer(), REDLOCK_OK);
    fake_pass(world, 4 * SECONDS); /* longer than a connection may take */
    world->nodes[2].policy = FAKE_ACCEPTS;
    fake_pass(world, SECONDS);
    fake_settle(world);
    assert_joined(lock);
  }
}

/* An extend that fails leaves the lease as it was; one that succeeds carries the node along. */
TEST(backfill_joins_an_extended_lease) {
  for (unsigned failed = 0; failed <= 1; failed++) {
    world = fake_world_new(3);
    world->nodes[2].policy = FAKE_REFUSES;
    begin_single_attempt();
    fake_answer(world, 0);
    fake_answer(world, 1);
    fake_pass(world, 2 * SECONDS);
    begin_extend(20 * SECONDS);
    if (failed) {
      fake_reply(world, 0, "-OOM\r\n");
      fake_reply(world, 1, "-OOM\r\n");
    }
    fake_settle(world);
    assert_error(rl_lock_result(lock), failed ? REDLOCK_E_UNAVAILABLE : REDLOCK_OK);
    world->nodes[2].policy = FAKE_ACCEPTS;
    fake_pass(world, SECONDS);
    fake_settle(world);
    assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
    assert_int_equal(key_expiry(2), FAKE_START_US + (failed ? 10 : 22) * SECONDS);
    assert_error(extend(lock, 30 * SECONDS), REDLOCK_OK);
    assert_int_equal(key_expiry(2), world->now_us + 30 * SECONDS);
  }
}

/* The node may have executed the SET: sent again, it could be executed after its release. */
TEST(backfill_skips_a_node_that_disconnected_during_its_set) {
  open_world_and_begin_single_attempt(3);
  assert_error(let_majority_answer(), REDLOCK_OK);
  assert_int_equal(world->nodes[2].sets, 1);
  fake_break(world, 2, "Connection reset by peer");
  fake_pass(world, SECONDS);
  fake_settle(world);
  assert_int_equal(world->nodes[2].connections, 2);
  assert_int_equal(world->nodes[2].sets, 1);
}

/* |what| happens to the held lock before node 2 comes up: nothing must be set there any more. */
TEST(backfill_ends_with_the_lease) {
  for (unsigned what = 0; what < 6; what++) {
    world = fake_world_new(3);
    world->nodes[2].policy = FAKE_SILENT;
    begin_single_attempt();
    assert_error(let_majority_answer(), REDLOCK_OK);
    if (what == 0) {
      world->now_us = lock->deadline_us;
      rl_core_input(&world->core, 2, world->now_us, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE));
    } else if (what == 1) {
      assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
    } else if (what == 2) {
      rl_lock_expire(lock, world->now_us);
    } else if (what == 3) {
      rl_lock_free(lock, world->now_us);
    } else if (what == 4) {
      world->now_us = lock->deadline_us;
      assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_EXPIRED);
    } else {
      rl_core_close(&world->core, world->now_us);
    }
    if (what == 4) {
      rl_core_input(&world->core, 2, world->now_us, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE));
    } else if (what != 0) {
      fake_reply(world, 2, "+OK\r\n");
    }
    world->nodes[2].policy = FAKE_ACCEPTS;
    fake_settle(world);
    assert_int_equal(world->nodes[2].sets, 0);
  }
}

/* Attempts with keys of |length| bytes, to be released on |node| when it is up. */
static void owe_releases(unsigned node, unsigned count, size_t length) {
  static char name[REDLOCK_KEY_MAX];
  memset(name, 'x', sizeof name);
  rl_resource *resource = rl_resource_new(NULL, 0, name, length);
  assert_non_null(resource);
  for (unsigned i = 0; i < count; i++) {
    rl_attempt *attempt = rl_attempt_new(&world->core.attempts, resource, NULL,
                                         (const unsigned char *)"12345678901234567890", 0, NULL);
    assert_non_null(attempt);
    attempt->sent = (uint32_t)1 << node;
    rl_attempt_will_live(attempt, world->now_us, 10000);
    rl_release_begin(&world->core, world->now_us, attempt, true);
    rl_attempt_unref(&world->core.attempts, attempt);
  }
  rl_resource_unref(resource);
  assert_int_equal(world->core.releases->count, count);
}

/* The releases that are due go first, and what they leave may be too little for another SET. */
TEST(backfill_skips_a_node_with_a_full_queue) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_SILENT;
  begin_single_attempt();
  assert_error(let_majority_answer(), REDLOCK_OK);
  owe_releases(2, RL_LINK_OUTPUT_ACQUIRE_MAX / REDLOCK_KEY_MAX, REDLOCK_KEY_MAX);
  world->nodes[2].blocked = true;
  rl_core_input(&world->core, 2, world->now_us, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE));
  assert_int_equal(world->core.nodes[2]->link.phase, RL_LINK_UP);
  assert_int_equal(world->core.nodes[2]->link.outstanding_count,
                   RL_LINK_OUTPUT_ACQUIRE_MAX / REDLOCK_KEY_MAX);
  assert_int_equal(lock->lease->sent, 3); /* nodes 0 and 1 */
  assert_int_equal(lock->awaited, 0);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
}

/* Outstanding commands are answered first: a backfill waits. */
TEST(backfill_waits_for_outstanding_replies) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_SILENT;
  begin_single_attempt();
  assert_error(let_majority_answer(), REDLOCK_OK);
  owe_releases(2, RL_BACKFILL_WINDOW, 1);
  world->nodes[2].blocked = true;
  rl_core_input(&world->core, 2, world->now_us, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE));
  fake_turn(world);
  assert_int_equal(world->core.nodes[2]->link.outstanding_count, RL_BACKFILL_WINDOW);
  assert_int_equal(lock->lease->sent, 3); /* nodes 0 and 1 */
  rl_core_input(&world->core, 2, world->now_us, ":1\r\n", 4);
  fake_turn(world);
  assert_int_equal(lock->lease->sent, 3);
  fake_pass(world, RL_BACKFILL_EVERY_US);
  assert_int_equal(lock->lease->sent, 7);
  assert_int_equal(world->core.nodes[2]->link.outstanding_count, RL_BACKFILL_WINDOW);
}
