/*
 * Wait lists: locks of one client that wait for the same resource; WAIT-1 to WAIT-4.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait/rl_waitlist.h"

#include "lease/rl_custom_token.h"
#include "lease/rl_reentry.h"
#include "wait/rl_notify.h"
#include "waiting_world.h"

static rl_lock *begin_without_answers(fake_world *world, const char *key,
                                      const redlock_options *options) {
  rl_lock *lock = fake_lock(world, key, options);
  assert_non_null(lock);
  fake_begin_acquire(world, lock);
  return lock;
}

static void assert_queued(const rl_lock *lock, const rl_lock *front) {
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(lock->phase, RL_PHASE_QUEUED);
  assert_non_null(lock->waitlist);
  assert_ptr_equal(lock->waitlist->head, front);
}

static const char *message_of(const rl_lock *lock) {
  static char message[400];
  return rl_lock_message(lock, message, sizeof message);
}

/* |count| locks of one client wait for the key. */
static void begin_many(fake_world *world, rl_lock **locks, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    locks[i] = begin_waiter(world);
  }
}

/* --------------------------------------------------------------------------------------- WAIT-1 */

TEST(second_waiter_is_queued) {
  fake_world *world = fake_world_new(3);
  let_other_take(world, 7, REDLOCK_NEVER);
  rl_lock *front = begin_waiter(world);
  rl_lock *second = begin_waiter(world);
  rl_lock *third = begin_waiter(world);
  assert_int_equal(front->phase, RL_PHASE_DELAY);
  assert_queued(second, front);
  assert_queued(third, front);
  assert_int_equal(world->core.waitlists->table.count, 1);
  assert_int_equal(world->core.waitlists->queued_count, 2);
  assert_int_equal(world->nodes[0].sets, 1);
}

TEST(single_attempt_joins_no_wait_list) {
  redlock_options once = fake_once();
  fake_world *world = fake_world_new(3);
  let_other_take(world, 7, REDLOCK_NEVER);
  rl_lock *front = begin_waiter(world);
  rl_lock *lock = begin_acquire_of(world, KEY, &once);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_int_equal(world->nodes[0].sets, 2);
  assert_int_equal(front->phase, RL_PHASE_DELAY);
}

TEST(locks_on_the_same_resources_share_a_wait_list) {
  static const char *const names[][2] = {{KEY, "other"}, {KEY, "other"}, {"other", KEY}};
  redlock_options options = patient_options();
  fake_world *world = fake_world_new(3);
  rl_lock *locks[3];
  let_other_take(world, 7, REDLOCK_NEVER);
  rl_lock *one = begin_waiter(world);
  for (unsigned i = 0; i < 3; i++) {
    locks[i] = fake_lock_many(world, names[i], 2, &options);
    assert_error(rl_lock_acquire(locks[i], world->now_us, NULL, false), REDLOCK_OK);
    fake_settle(world);
  }
  assert_ptr_equal(one->waitlist->head, one);
  assert_ptr_equal(locks[0]->waitlist->head, locks[0]);
  assert_queued(locks[1], locks[0]);
  assert_ptr_equal(locks[2]->waitlist->head, locks[2]);
  assert_int_equal(world->core.waitlists->table.count, 3);
  assert_int_equal(world->nodes[0].sets, 3);
}

TEST(lock_on_more_than_eight_resources_joins_no_wait_list) {
  redlock_resource names[9];
  rl_options options;
  rl_options_default(&options);
  for (unsigned i = 0; i < 9; i++) {
    names[i] = (redlock_resource){&"123456789"[i], 1};
  }
  for (unsigned count = 8; count <= 9; count++) {
    fake_world *world = fake_world_new(1);
    rl_lock *lock = rl_lock_new_many(&world->core, names, count, &options);
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
    (void)rl_waitlist_enter(lock, world->now_us, (const unsigned char *)"some random bytes");
    assert_int_equal(lock->waitlist != NULL, count == 8);
    rl_lock_free(lock, world->now_us);
  }
}

/* A waiter that polls every 50 ms does not depend on a head that polls once a minute. */
TEST(waiter_with_other_options_joins_another_wait_list) {
  enum { KINDS = 7 };
  redlock_options seldom = patient_options();
  redlock_options others[KINDS];
  fake_world *world = fake_world_new(3);
  for (unsigned i = 0; i < KINDS; i++) {
    others[i] = patient_options();
  }
  seldom.retry_delay_us = 60 * REDLOCK_SECONDS;
  others[0].retry_jitter_us = MS;
  others[1].poll_interval_us = 7 * REDLOCK_SECONDS;
  others[2].notify = REDLOCK_NO;
  others[4].fence = REDLOCK_YES; /* A fencing token may fail for one waiter and not for the next. */
  others[5].node_timeout_us = 2 * MS;
  others[6].drift_factor = 0.5;
  let_other_take(world, 7, FAKE_START_US + DELAY / 2);
  rl_lock *front = begin_acquire_of(world, KEY, &seldom);
  rl_lock *often = begin_acquire_of(world, KEY, &others[3]);
  assert_ptr_not_equal(often->waitlist, front->waitlist);
  assert_queued(begin_acquire_of(world, KEY, &seldom), front);
  assert_queued(begin_acquire_of(world, KEY, &others[3]), often);
  for (unsigned i = 0; i < KINDS; i++) {
    if (i == 3) {
      continue;
    }
    rl_lock *lock = begin_acquire_of(world, KEY, &others[i]);
    assert_ptr_equal(lock->waitlist->head, lock);
    assert_int_equal(world->core.waitlists->table.count, 3);
    rl_lock_free(lock, world->now_us);
  }
  pass(world, 2 * DELAY);
  assert_error(rl_lock_result(front), REDLOCK_PENDING);
  assert_error(rl_lock_result(often), REDLOCK_OK);
}

/* A waiter beyond the limit enters a list of other options, but of the same |notify|. */
TEST(waiter_with_one_more_kind_of_options_is_queued) {
  enum { KINDS = 64 };
  fake_world *world = fake_world_new(1);
  let_other_take(world, 1, REDLOCK_NEVER);
  for (unsigned i = 0; i < 4 * KINDS; i++) {
    redlock_options options = patient_options();
    options.retry_delay_us = (1 + i) * MS;
    options.notify = i < 2 * KINDS ? REDLOCK_YES : REDLOCK_NO;
    const rl_lock *lock = begin_acquire_of(world, KEY, &options);
    assert_non_null(lock->waitlist);
    assert_int_equal(lock->phase == RL_PHASE_QUEUED, i % (2 * KINDS) >= KINDS);
    assert_int_equal(lock->waitlist->head->current->notify, options.notify);
  }
  assert_int_equal(world->core.waitlists->table.count, 2 * KINDS);
  assert_int_equal(world->core.waitlists->queued_count, 2 * KINDS);
}

TEST(locks_with_owners_or_tokens_share_a_wait_list) {
  redlock_options options = patient_options();
  fake_world *world = fake_world_new_notifying(3);
  subscribe_to_all_nodes(world);
  let_other_take(world, 7, REDLOCK_NEVER);
  unsigned before = world->nodes[0].sets;
  rl_lock *front = begin_waiter(world);
  rl_lock *owned = fake_lock(world, KEY, &options);
  rl_lock *supplied = fake_lock(world, KEY, &options);
  assert_error(rl_reentry_set_owner(owned, world->now_us, "me", 2), REDLOCK_OK);
  assert_error(rl_custom_token_set(supplied, "a token", 7), REDLOCK_OK);
  assert_error(rl_lock_acquire(owned, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_acquire(supplied, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  assert_queued(owned, front);
  assert_queued(supplied, front);
  for (unsigned i = 0; i < 3; i++) {
    let_other_release(world, i);
  }
  for (unsigned i = 0; i < 3; i++) {
    rl_lock *const locks[] = {front, owned, supplied};
    pass(world, SECONDS);
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
    assert_error(fake_release(world, locks[i]), REDLOCK_OK);
  }
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_int_equal(world->nodes[0].sets, before + 4);
}

TEST(each_resource_has_its_own_wait_list) {
  enum { MANY = 200 };
  redlock_options options = patient_options();
  rl_lock *fronts[MANY], *others[MANY];
  fake_world *world = fake_world_new(1);
  for (unsigned i = 0; i < MANY; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "resource with number %u", i);
    fronts[i] = begin_without_answers(world, name, &options);
    others[i] = begin_without_answers(world, name, &options);
    assert_int_equal(fake_reply(world, 0, "$-1\r\n").verb, FAKE_SET);
    fake_settle(world);
  }
  assert_int_equal(world->core.waitlists->table.count, MANY);
  for (unsigned i = 0; i < MANY; i++) {
    assert_queued(others[i], fronts[i]);
    assert_ptr_equal(rl_waitlist_find(&world->core, fronts[i]->resource), fronts[i]->waitlist);
  }
  for (unsigned i = 0; i < MANY; i += 2) {
    rl_lock_free(fronts[i], world->now_us);
    rl_lock_free(others[i], world->now_us);
  }
  assert_int_equal(world->core.waitlists->table.count, MANY / 2);
  for (unsigned i = 1; i < MANY; i += 2) {
    assert_queued(others[i], fronts[i]);
  }
}

/* --------------------------------------------------------------------------------------- WAIT-2 */

/* A waiter is queued behind a head that may wait for a minute. */
TEST(queued_waiter_keeps_its_budget) {
  static const struct {
    redlock_duration wait_us, limit_us;
    int retry_count;
  } rows[] = {{500 * MS, 500 * MS, 0}, {0, 2 * DELAY, 2}};
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    redlock_options brief = patient_options();
    brief.wait_us = rows[i].wait_us;
    brief.retry_count = rows[i].retry_count;
    fake_world *world = fake_world_new(3);
    let_other_take(world, 7, REDLOCK_NEVER);
    (void)begin_waiter(world);
    pass(world, 30 * MS);
    rl_lock *lock = begin_acquire_of(world, KEY, &brief);
    pass(world, rows[i].limit_us - 1);
    assert_error(rl_lock_result(lock), REDLOCK_PENDING);
    pass(world, 1);
    assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
    assert_contains(message_of(lock), "is taken: 2 of 3 nodes hold it");
    assert_null(strstr(message_of(lock), "without a vote")); /* The head has asked the node. */
    assert_int_equal(world->core.waitlists->queued_count, 0);
  }
}

TEST(waiter_behind_a_head_without_votes_reports_not_asked) {
  redlock_options brief = patient_options();
  brief.wait_us = 20 * MS;
  redlock_options options = patient_options();
  fake_world *world = fake_world_new(3);
  (void)begin_without_answers(world, KEY, &options);
  rl_lock *lock = begin_without_answers(world, KEY, &brief);
  fake_pass(world, 20 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_contains(message_of(lock), "not asked before the budget expired");
}

/* The head polls every 2 s. The last reports named a holder. */
TEST(waiter_of_silent_nodes_does_not_report_taken) {
  redlock_options brief = patient_options();
  brief.wait_us = 500 * MS;
  fake_world *world = world_with_subscribers(3);
  rl_lock *held = begin_waiter(world);
  rl_lock *front = begin_waiter(world);
  rl_lock *lock = begin_acquire_of(world, KEY, &brief);
  assert_error(rl_lock_result(held), REDLOCK_OK);
  assert_queued(lock, front);
  assert_error(rl_lock_release(held, world->now_us, false), REDLOCK_OK);
  for (unsigned i = 0; i < 51; i++) { /* No node answers any more. */
    fake_pass(world, 10 * MS);
  }
  assert_error(rl_lock_result(front), REDLOCK_PENDING);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

TEST(waiter_behind_a_queued_head_copies_its_reports) {
  redlock_options brief = patient_options(), first = fair_options();
  brief.wait_us = 100 * MS;
  fake_world *world = world_with_taken_key(3);
  (void)begin_acquire_of(world, KEY, &first);
  rl_lock *lock = begin_acquire_of(world, KEY, &brief);
  pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_contains(message_of(lock), "2 of 3 nodes hold it");
  assert_int_equal(total_of(world, sets), 0);
}

TEST(waiter_behind_an_own_lock_reports_taken) {
  redlock_options brief = patient_options();
  brief.wait_us = 100 * MS;
  fake_world *world = fake_world_new(3);
  let_other_take(world, 7, FAKE_START_US + 150 * MS);
  rl_lock *first = begin_waiter(world);
  (void)begin_waiter(world);
  pass(world, DELAY);
  assert_error(rl_lock_result(first), REDLOCK_OK);
  rl_lock *lock = begin_acquire_of(world, KEY, &brief);
  pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_contains(message_of(lock), "3 of 3 nodes");
}

/* --------------------------------------------------------------------------------------- WAIT-3 */

TEST(waiters_acquire_in_order_of_arrival) {
  enum { MANY = 20 };
  redlock_options options = patient_options();
  rl_lock *locks[MANY];
  fake_world *world = world_with_taken_key(3);
  for (unsigned i = 0; i < MANY; i++) {
    locks[i] = begin_without_answers(world, KEY, &options);
  }
  fake_settle(world);
  let_other_release_everywhere(world);
  for (unsigned i = 0; i < MANY; i++) {
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
    if (i + 1 < MANY) {
      assert_error(rl_lock_result(locks[i + 1]), REDLOCK_PENDING);
    }
    assert_error(fake_release(world, locks[i]), REDLOCK_OK);
    pass(world, 60 * MS);
  }
  assert_null(fake_queue_at(&world->nodes[0].store, KEY, 0));
}

TEST(new_head_waits_first_after_a_grant) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *first = begin_waiter(world);
  rl_lock *next = begin_waiter(world);
  let_other_release_everywhere(world);
  assert_error(rl_lock_result(first), REDLOCK_OK);
  assert_int_equal(next->phase, RL_PHASE_DELAY);
  assert_int_equal(world->nodes[0].sets, 2);
  assert_entry_at(world, 0, 1, entry_of_head(next));
  pass(world, 5 * DELAY);
  assert_int_equal(world->nodes[0].sets, 2);
}

TEST(new_head_takes_over_the_ticket) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *first = begin_waiter(world);
  rl_lock *next = begin_waiter(world);
  char entry[RL_LINK_ENTRY_SIZE];
  memcpy(entry, entry_of_head(first), sizeof entry);
  rl_lock_cancel(first, world->now_us, REDLOCK_E_CANCELLED);
  fake_settle(world);
  assert_int_equal(next->phase, RL_PHASE_DELAY);
  assert_string_equal(entry_of_head(next), entry);
  assert_entry_at(world, 0, 0, entry);
  assert_int_equal(total_of(world, dequeues), 0);
  assert_int_equal(total_of(world, sets), 3);
}

TEST(new_head_tries_at_once_after_a_cancelled_head) {
  redlock_options options = patient_options();
  fake_world *world = fake_world_new(3);
  rl_lock *first = begin_without_answers(world, KEY, &options);
  rl_lock *next = begin_without_answers(world, KEY, &options);
  rl_lock_cancel(first, world->now_us, REDLOCK_E_CANCELLED);
  fake_settle(world);
  assert_error(rl_lock_result(next), REDLOCK_OK);
  assert_int_equal(world->now_us, FAKE_START_US);
}

/*
 * Nodes that were slow are not asked again when the budget is too short for them, but once by each:
 * they may be fast now.
 */
TEST(promoted_waiter_makes_one_attempt) {
  redlock_options options = patient_options();
  fake_world *world = fake_world_new(3);
  options.wait_us = 100 * MS;
  rl_lock *first = begin_without_answers(world, KEY, &options);
  options.wait_us = 200 * MS;
  rl_lock *next = begin_without_answers(world, KEY, &options);
  assert_queued(next, first);
  while (rl_lock_result(first) == REDLOCK_PENDING) { /* No node answers. */
    world->now_us = rl_core_deadline(&world->core);
    fake_turn(world);
  }
  assert_error(rl_lock_result(first), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(next->result, REDLOCK_E_UNAVAILABLE); /* So far. */
  fake_settle(world);
  for (unsigned i = 0; i < 3; i++) {
    world->core.nodes[i]->link.fastest_us = 10 * SECONDS;
  }
  pass_until(world, FAKE_START_US + 199 * MS);
  assert_error(rl_lock_result(next), REDLOCK_OK);
}

TEST(cancelled_waiter_keeps_the_order) {
  rl_lock *locks[5];
  fake_world *world = fake_world_new(3);
  let_other_take(world, 7, REDLOCK_NEVER);
  begin_many(world, locks, 5);
  rl_lock_cancel(locks[4], world->now_us, REDLOCK_E_CANCELLED);
  rl_lock_cancel(locks[1], world->now_us, REDLOCK_E_CANCELLED);
  rl_lock_free(locks[2], world->now_us);
  assert_error(rl_lock_result(locks[1]), REDLOCK_E_CANCELLED);
  assert_int_equal(world->core.waitlists->queued_count, 1);
  assert_queued(locks[3], locks[0]);
  fake_free(world, locks[0]);
  assert_int_equal(world->core.waitlists->queued_count, 0);
  assert_ptr_equal(locks[3]->waitlist->head, locks[3]);
  rl_lock_cancel(locks[3], world->now_us, REDLOCK_E_CANCELLED);
  assert_int_equal(world->core.waitlists->table.count, 0);
  assert_int_equal(world->core.busy_count, 0);
}

TEST(close_ends_the_whole_wait_list) {
  for (unsigned calling = 0; calling < 2; calling++) {
    rl_lock *locks[3];
    fake_world *world = calling ? world_with_subscribers(3) : fake_world_new(3);
    let_other_take(world, 7, REDLOCK_NEVER);
    begin_many(world, locks, 3);
    rl_core_close(&world->core, world->now_us);
    for (unsigned i = 0; i < 3; i++) {
      assert_error(rl_lock_result(locks[i]), REDLOCK_E_CLOSED);
      assert_null(locks[i]->waitlist);
    }
    assert_int_equal(world->core.waitlists->table.count, 0);
    assert_int_equal(world->core.waitlists->queued_count, 0);
    fake_settle(world);
    assert_int_equal(world->nodes[0].sets, 1);
  }
}

TEST(waiters_may_leave_in_any_order) {
  for (unsigned order = 0; order < 24; order++) {
    rl_lock *locks[4];
    unsigned left = order;
    fake_world *world = world_with_taken_key(3);
    begin_many(world, locks, 4);
    for (unsigned count = 4; count > 0; count--) {
      unsigned at = left % count;
      left /= count;
      rl_lock_free(locks[at], world->now_us);
      locks[at] = locks[count - 1];
      fake_settle(world);
      assert_int_equal(world->core.waitlists->table.count, count > 1);
    }
    assert_null(fake_queue_at(&world->nodes[1].store, KEY, 0));
    assert_int_equal(world->core.notify->used_count, 0);
  }
}

/* --------------------------------------------------------------------------------------- WAIT-4 */

TEST(own_release_lets_the_head_try_at_once) {
  fake_world *world = fake_world_new(3); /* without calls */
  rl_lock *held = begin_waiter(world);
  rl_lock *next = begin_waiter(world);
  assert_error(rl_lock_result(held), REDLOCK_OK);
  assert_error(rl_lock_result(next), REDLOCK_PENDING);
  pass(world, 10 * MS);
  assert_error(fake_release(world, held), REDLOCK_OK);
  assert_error(rl_lock_result(next), REDLOCK_OK);
  assert_int_equal(world->now_us, FAKE_START_US + 10 * MS);
}

TEST(client_keeps_a_resource_for_a_few_delays_only) {
  enum { MANY = 100 };
  redlock_options options = patient_options();
  rl_lock *locks[MANY];
  unsigned at_once = 0, waited = 0;
  redlock_duration longest_us = 0, run_us = 0;
  fake_world *world = fake_world_new(3);
  for (unsigned i = 0; i < MANY; i++) {
    locks[i] = begin_without_answers(world, KEY, &options);
  }
  fake_settle(world);
  for (unsigned i = 0; i + 1 < MANY; i++) {
    assert_error(rl_lock_result(locks[i]), REDLOCK_OK);
    pass(world, 50 * MS);
    run_us += 50 * MS;
    assert_error(fake_release(world, locks[i]), REDLOCK_OK);
    if (rl_lock_result(locks[i + 1]) == REDLOCK_OK) {
      at_once++;
      longest_us = rl_time_max(longest_us, run_us);
      continue;
    }
    waited++; /* Another client may have its turn. */
    run_us = 0;
    pass(world, DELAY);
  }
  assert_true(at_once > waited);
  assert_true(waited >= 2);
  assert_true(longest_us <= 6 * DELAY);
}

/* Nor by two lines in turns. */
TEST(two_wait_lists_keep_a_resource_no_longer_than_one) {
  enum { MANY = 40 };
  rl_lock *locks[MANY];
  bool had[MANY] = {false};
  redlock_duration run_us = 0;
  unsigned held = 0;
  fake_world *world = fake_world_new(3);
  for (unsigned i = 0; i < MANY; i++) {
    redlock_options options = patient_options();
    options.poll_interval_us = i % 2 == 0 ? SLOW : 2 * SLOW;
    locks[i] = begin_without_answers(world, KEY, &options);
  }
  fake_settle(world);
  for (unsigned k = 0; k < MANY && held < MANY; k++) {
    for (held = 0; held < MANY && (had[held] || rl_lock_result(locks[held]) != REDLOCK_OK);) {
      held++;
    }
    if (held < MANY) {
      had[held] = true;
      pass(world, 50 * MS);
      run_us += 50 * MS;
      assert_error(fake_release(world, locks[held]), REDLOCK_OK);
    }
  }
  assert_int_equal(held, MANY); /* Another client may have its turn. */
  assert_true(run_us >= 5 * DELAY && run_us <= 5 * DELAY + 150 * MS);
  assert_true(had[0] && had[2] && had[1] && had[3]); /* Both lines have had it. */
}

TEST(own_release_does_not_overtake_the_queue) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *first = begin_waiter(world);
  rl_lock *next = begin_waiter(world);
  for (unsigned i = 0; i < 3; i++) {
    let_other_release(world, i);
  }
  enqueue_other(world); /* Between the two: they stood before the next one did. */
  fake_settle(world);
  assert_error(rl_lock_result(first), REDLOCK_OK);
  assert_entry_at(world, 0, 2, entry_of_head(next));
  pass(world, 60 * MS);
  assert_error(fake_release(world, first), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_true(other_is_notified(world, i));
  }
  assert_error(rl_lock_result(next), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, 2);
}
