/*
 * Notifications, rule by rule: NTF-1 to NTF-10 of rl_notify.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait/rl_notify.h"

#include "lease/rl_custom_token.h"
#include "waiting_world.h"

/*
 * Begins an acquire. The nodes deny SET, and have received ENQUEUE, which none has answered.
 */
static rl_lock *begin_enqueue(fake_world *world, const redlock_options *options) {
  rl_lock *lock = fake_lock(world, KEY, options);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < world->count; i++) {
    assert_int_equal(fake_answer(world, i).verb, FAKE_SET);
  }
  for (unsigned i = 0; i < world->count; i++) {
    assert_int_equal(fake_next(world, i), FAKE_ENQUEUE);
  }
  return lock;
}

/* |count| other waiters come last in the queue of a node. None of them is connected. */
static void queue_others(fake_world *world, unsigned node, unsigned count) {
  for (unsigned k = 0; k < count; k++) {
    char entry[RL_LINK_ENTRY_SIZE];
    (void)snprintf(entry, sizeof entry, "%s%08x", OTHERS_CHANNEL, k);
    fake_queue_put(&world->nodes[node].store, KEY, entry);
  }
}

/* Time passes until the waiter polls. Returns how long that takes. */
static redlock_duration time_of_poll(fake_world *world) {
  redlock_time begun_us = world->now_us;
  (void)begin_waiter(world);
  while (world->nodes[0].enqueues == 1) {
    pass(world, MS);
  }
  return world->now_us - begun_us;
}

/* ---------------------------------------------------------------------------------------- NTF-1 */

TEST(failed_attempt_enqueues_on_each_node) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].sets, 1);
    assert_int_equal(world->nodes[i].enqueues, 1);
    assert_entry_at(world, i, 0, entry_of_head(lock));
  }
}

TEST(free_key_counts_as_a_notification) {
  fake_world *world = world_with_subscribers(3);
  redlock_options options = patient_options();
  let_other_take(world, 7, REDLOCK_NEVER);
  rl_lock *lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_answer(world, i); /* SET */
    fake_store_remove(&world->nodes[i].store, KEY);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->now_us, FAKE_START_US);
  assert_int_equal(world->nodes[0].sets, 2);
}

TEST(only_nodes_with_notifications_are_asked) {
  fake_world *world = world_with_subscribers(3);
  fake_break_for_good(world, 3 + 2);
  let_other_take(world, 7, REDLOCK_NEVER);
  rl_lock *lock = begin_waiter(world);
  assert_int_equal(world->nodes[0].enqueues, 1);
  assert_int_equal(world->nodes[1].enqueues, 1);
  assert_int_equal(world->nodes[2].enqueues, 0);
  assert_null(fake_queue_at(&world->nodes[2].store, KEY, 0));
  world->nodes[3 + 2].policy = FAKE_ACCEPTS; /* It is asked as soon as they do. */
  pass(world, 5 * SECONDS);
  assert_entry_at(world, 2, 0, entry_of_head(lock));
}

/* Returns how many connections the first fair acquire of a client with |count| nodes makes. */
static unsigned connections_of_client_with(unsigned count) {
  static rl_core core;
  rl_address address;
  rl_options options;
  redlock_settings settings = {0};
  redlock_node node = {.address = "127.0.0.1"};
  redlock_options given = fair_options();
  unsigned char entropy[RL_LOCK_ENTROPY] = {1};
  assert_error(rl_core_init(&core, NULL, 0), REDLOCK_OK);
  assert_error(rl_notify_open(&core), REDLOCK_OK);
  assert_error(rl_address_read(&address, &node, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < count; i++) {
    assert_error(rl_core_add(&core, &address), REDLOCK_OK);
  }
  rl_options_default(&options);
  assert_null(rl_options_read(&options, &given));
  rl_lock *lock = rl_lock_new(&core, KEY, sizeof KEY - 1, &options);
  assert_error(rl_lock_acquire(lock, FAKE_START_US, NULL, false), REDLOCK_OK);
  rl_core_send(&core, FAKE_START_US, entropy, sizeof entropy);
  rl_core_send(&core, FAKE_START_US, entropy, sizeof entropy);
  unsigned connections = rl_core_connection_count(&core);
  rl_lock_free(lock, FAKE_START_US);
  rl_core_free(&core);
  return connections;
}

TEST(client_with_more_than_16_nodes_has_no_subscribers) {
  assert_int_equal(connections_of_client_with(16), 2 * 16);
  assert_int_equal(connections_of_client_with(17), 17);
}

/* ---------------------------------------------------------------------------------------- NTF-2 */

TEST(fair_acquire_queues_first) {
  redlock_options options = fair_options();
  fake_world *world = world_with_subscribers(3);
  rl_lock *lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  assert_int_equal(total_of(world, sets), 0);
  assert_int_equal(total_of(world, enqueues), 3);
  fake_settle(world); /* No other client waits. */
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(total_of(world, sets), 3);
  assert_int_equal(world->now_us, FAKE_START_US);
}

TEST(fair_acquire_does_not_overtake_a_waiter) {
  redlock_options options = fair_options();
  fake_world *world = world_with_subscribers(3);
  enqueue_other(world); /* The lock is free, and they have not come yet. */
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(total_of(world, sets), 0);
  for (unsigned i = 0; i < 3; i++) {
    assert_true(other_is_notified(world, i));
    assert_entry_at(world, i, 1, entry_of_head(lock));
  }
  pass(world, 99 * MS);
  assert_int_equal(total_of(world, sets), 0);
}

/* The release of a lock has notified another client. */
static fake_world *contended_world(void) {
  fake_world *world = world_with_subscribers(3);
  rl_lock *lock = begin_waiter(world);
  enqueue_other(world);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_true(other_is_notified(world, i));
  }
  return world;
}

TEST(acquire_queues_first_with_a_bare_majority_of_subscribers) {
  fake_world *world = contended_world();
  fake_break_for_good(world, 3 + 2);
  rl_lock *lock = begin_waiter(world);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, 1); /* the first lock's */
}

TEST(contention_ends_after_a_second) {
  fake_world *world = contended_world();
  pass(world, SECONDS - 1);
  rl_lock *early = begin_waiter(world);
  assert_error(rl_lock_result(early), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, 1); /* the first lock's */
  assert_entry_at(world, 0, 1, entry_of_head(early));
  fake_free(world, early);
  pass(world, 1);
  rl_lock *lock = begin_waiter(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* An acquire with a token that the caller supplied makes one attempt, which finds the key taken. */
static void fail_with_custom_token(fake_world *world) {
  redlock_options options = patient_options();
  rl_lock *lock = fake_lock(world, KEY, &options);
  let_other_take(world, 7, REDLOCK_NEVER);
  assert_error(rl_custom_token_set(lock, "token", 5), REDLOCK_OK);
  fake_begin_acquire(world, lock);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
}

TEST(acquire_queues_first_after_a_custom_token_found_the_key_taken) {
  fake_world *world = world_with_subscribers(3);
  fail_with_custom_token(world);
  remove_keys_unnoticed(world);
  enqueue_other(world);
  rl_lock *lock = begin_waiter(world);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, 1); /* the one with the token */
}

TEST(custom_token_that_found_the_key_taken_connects_subscribers) {
  fake_world *world = fake_world_new_notifying(3);
  fail_with_custom_token(world);
  assert_int_equal(world->core.notify->ready, 7);
}

/* A node that answers 2 to a plain release breaks the protocol. */
TEST(client_without_notifications_ignores_a_notifying_release) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = begin_waiter(world);
  fake_begin_release(world, lock);
  (void)fake_reply(world, 0, ":2\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* Takes and releases the lock |pairs| times, twice in each second. Returns the ENQUEUEs. */
static unsigned stands_of(fake_world *world, unsigned pairs) {
  unsigned before = total_of(world, enqueues);
  for (unsigned i = 0; i < pairs; i++) {
    rl_lock *lock = begin_waiter(world);
    pass(world, 10 * MS);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_error(fake_release(world, lock), REDLOCK_OK);
    rl_lock_free(lock, world->now_us);
    pass(world, 490 * MS);
  }
  return total_of(world, enqueues) - before;
}

TEST(former_waiter_stops_queueing_first) {
  fake_world *world = world_with_subscribers(3);
  let_other_take(world, 7, world->now_us + 300 * MS);
  rl_lock *lock = begin_waiter(world);
  pass(world, 400 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_true(stands_of(world, 3) > 0);
  assert_int_equal(stands_of(world, 10), 0);
}

TEST(contended_waiter_appends_and_polls_soon) {
  redlock_options options = patient_options();
  fake_world *world = contended_world();
  let_other_take(world, 7, REDLOCK_NEVER);
  rl_lock *lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(fake_answer(world, i).mode, RL_COMMAND_ENQUEUE_APPEND);
  }
  fake_turn(world);
  assert_int_equal(lock->waitlist->ticket->unqueried, 7);
  unsigned stands = world->nodes[0].enqueues;
  pass(world, 49 * MS);
  assert_int_equal(world->nodes[0].enqueues, stands);
  pass(world, 2 * MS);
  assert_int_equal(world->nodes[0].enqueues, stands + 1);
  assert_int_equal(lock->waitlist->ticket->unqueried, 0);
}

/* The ticket is the first on node 0, whose reply shows the key, and the second on the others. */
TEST(appended_head_of_one_node_polls_after_a_delay) {
  fake_world *world = contended_world();
  let_other_take(world, 7, REDLOCK_NEVER);
  fake_queue_clear(&world->nodes[0].store, KEY);
  rl_lock *lock = begin_waiter(world);
  assert_int_equal(lock->waitlist->ticket->unqueried, 6);
  unsigned stands = world->nodes[1].enqueues;
  pass(world, 49 * MS);
  assert_int_equal(world->nodes[1].enqueues, stands);
  pass(world, 2 * MS);
  assert_int_equal(world->nodes[1].enqueues, stands + 1);
}

TEST(acquire_with_time_for_one_attempt_does_not_queue) {
  redlock_options options = fair_options();
  options.wait_us = 6 * MS; /* 5 ms for a late driver, and 1 ms for the notification */
  fake_world *world = world_with_subscribers(3);
  enqueue_other(world);
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(total_of(world, enqueues), 0);
}

/* They close after a minute without use. */
TEST(fair_acquires_that_do_not_queue_keep_the_subscribers) {
  redlock_options options = fair_options();
  options.wait_us = 6 * MS;
  fake_world *world = fake_world_new_notifying(3);
  for (unsigned i = 0; i < 3; i++) {
    rl_lock *lock = begin_acquire_of(world, KEY, &options);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    fake_free(world, lock);
    pass(world, 50 * SECONDS);
    assert_int_equal(world->core.notify->ready, 7);
  }
  assert_int_equal(total_of(world, enqueues), 0);
}

TEST(first_fair_acquire_waits_for_the_subscribers) {
  redlock_options options = fair_options();
  fake_world *world = fake_world_new_notifying(3);
  enqueue_other(world);
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(total_of(world, sets), 0);
  for (unsigned i = 0; i < 3; i++) {
    assert_entry_at(world, i, 1, entry_of_head(lock));
  }
}

TEST(fair_acquire_waits_for_subscribers_as_long_as_an_attempt) {
  redlock_options options = fair_options();
  fake_world *world = fake_world_new_notifying(3);
  for (unsigned i = 3; i < 6; i++) {
    world->nodes[i].policy = FAKE_HANGS;
  }
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  pass(world, 50 * MS - 1); /* a time-out */
  assert_int_equal(total_of(world, sets), 0);
  pass(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(fair_acquire_tries_at_once_if_subscribers_are_refused) {
  redlock_options options = fair_options();
  fake_world *world = fake_world_new_notifying(3);
  for (unsigned i = 3; i < 6; i++) {
    world->nodes[i].policy = i < 5 ? FAKE_REFUSES : FAKE_ACCEPTS;
  }
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  pass(world, 50 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(world->now_us, FAKE_START_US + 50 * MS);
}

/* ---------------------------------------------------------------------------------------- NTF-3 */

TEST(notification_skips_disconnected_waiters) {
  fake_world *world = world_with_taken_key(3);
  for (unsigned i = 0; i < 3; i++) {
    fake_queue_put(&world->nodes[i].store, KEY, OTHERS_ENTRY); /* not connected */
  }
  rl_lock *lock = begin_waiter(world);
  assert_entry_at(world, 0, 1, entry_of_head(lock));
  let_other_release_everywhere(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(world->now_us, FAKE_START_US);
}

TEST(node_that_forbids_publish_gets_the_plain_release) {
  fake_world *world = world_with_subscribers(1);
  world->nodes[0].store.mute = true;
  for (unsigned i = 0; i < 2; i++) {
    rl_lock *lock = begin_waiter(world);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    fake_begin_release(world, lock);
    assert_int_equal(world->nodes[0].queue[0].notifies, i == 0);
    fake_settle(world);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
  }
  const char *reason; /* The client does not enqueue there: a holder may have its rights. */
  assert_false(rl_subscriber_state(&world->core, 0, &reason));
  assert_contains(reason, "may not notify");
  pass(world, RL_SUBSCRIBER_REFUSED_US); /* The user may have the right by now. */
  rl_lock *lock = begin_waiter(world);
  fake_begin_release(world, lock);
  assert_true(world->nodes[0].queue[0].notifies);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* ---------------------------------------------------------------------------------------- NTF-4 */

TEST(waiter_polls_while_a_majority_has_the_key) {
  fake_world *world = world_with_subscribers(3);
  let_other_take(world, 3, REDLOCK_NEVER);
  fake_store_put(&world->nodes[2].store, KEY, OTHER, REDLOCK_NEVER);
  rl_lock *lock = begin_waiter(world);
  pass(world, SLOW - SLOW / 8 - 1);
  assert_int_equal(total_of(world, sets), 3);
  assert_int_equal(total_of(world, enqueues), 3);
  pass(world, SLOW / 4 + 1);
  assert_int_equal(total_of(world, sets), 3);
  assert_int_equal(total_of(world, enqueues), 6);
  assert_null(fake_queue_at(&world->nodes[0].store, KEY, 1)); /* one entry of the waiter */
  pass(world, 8 * SLOW);
  assert_int_equal(total_of(world, sets), 3);
  assert_in_range(total_of(world, enqueues), 6 + 3 * 7, 6 + 3 * 10);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
}

TEST(poll_restores_a_lost_queue) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  for (unsigned i = 0; i < 3; i++) {
    fake_queue_clear(&world->nodes[i].store, KEY);
  }
  pass(world, SLOW + SLOW / 8);
  for (unsigned i = 0; i < 3; i++) {
    assert_entry_at(world, i, 0, entry_of_head(lock));
  }
}

TEST(waiter_polls_when_keys_on_a_majority_expire) {
  static const uint32_t orders[][3] = {{1, 2, 4}, {2, 1, 4}, {4, 2, 1}};
  for (unsigned i = 0; i < COUNT_OF(orders); i++) {
    fake_world *world = world_with_subscribers(3);
    let_other_take(world, orders[i][0], FAKE_START_US + 300 * MS);
    let_other_take(world, orders[i][1], FAKE_START_US + 500 * MS);
    let_other_take(world, orders[i][2], REDLOCK_NEVER);
    rl_lock *lock = begin_waiter(world);
    pass_until(world, FAKE_START_US + 500 * MS);
    assert_error(rl_lock_result(lock), REDLOCK_PENDING);
    assert_int_equal(total_of(world, enqueues), 3);
    pass(world, 2 * MS);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(world->nodes[0].sets, 2);
  }
}

/* 2 ms for each waiter before it, on the node with the fewest. */
TEST(waiter_further_back_polls_later) {
  static const struct {
    unsigned nodes, before[3];
    redlock_duration later_us;
  } rows[] = {{1, {0}, 0},
              {1, {5}, 10 * MS},
              {3, {0, 0, 0}, 0},
              {3, {5, 5, 5}, 10 * MS},
              {3, {6, 5, 5}, 10 * MS}};
  redlock_duration first_us = 0;
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    fake_world *world = world_with_subscribers(rows[i].nodes);
    let_other_take(world, 7, world->now_us + 300 * MS);
    for (unsigned node = 0; node < rows[i].nodes; node++) {
      queue_others(world, node, rows[i].before[node]);
    }
    redlock_duration took_us = time_of_poll(world);
    first_us = i == 0 ? took_us : first_us;
    assert_int_equal(took_us - first_us, rows[i].later_us);
  }
  assert_in_range(first_us, 300 * MS, 304 * MS);
}

TEST(unresponsive_head_is_evicted) {
  fake_world *world = world_with_subscribers(3);
  redlock_options options = fair_options();
  enqueue_other(world);
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  pass(world, 99 * MS);
  assert_string_equal(fake_queue_at(&world->nodes[0].store, KEY, 0), OTHERS_ENTRY);
  pass(world, 2 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_string_not_equal(fake_queue_at(&world->nodes[0].store, KEY, 0), OTHERS_ENTRY);
  assert_int_equal(world->nodes[0].sets, 1);
}

/* The waiter is the head of the queues of two nodes, whose key is held. */
TEST(waiter_behind_an_unresponsive_head_of_one_node_polls_after_a_delay) {
  fake_world *world = world_with_subscribers(3);
  let_other_take(world, 6, REDLOCK_NEVER);
  fake_queue_subscribe(&world->nodes[0].store, 1, OTHERS_CHANNEL);
  fake_queue_put(&world->nodes[0].store, KEY, OTHERS_ENTRY);
  redlock_options options = fair_options();
  rl_lock *lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(fake_answer(world, i).verb, FAKE_ENQUEUE);
  }
  pass(world, 99 * MS);
  assert_int_equal(total_of(world, enqueues), 3);
  pass(world, 2 * MS);
  assert_int_equal(total_of(world, enqueues), 6);
}

/*
 * Six more waiters wait, and their key is free. Two of them leave the queues of the nodes from
 * |first| on.
 */
static rl_lock *begin_behind_six(fake_world *world, unsigned first) {
  redlock_options options = fair_options();
  char entries[6][RL_LINK_ENTRY_SIZE];
  enqueue_other(world);
  for (unsigned k = 1; k < 6; k++) {
    (void)snprintf(entries[k], sizeof entries[k], "%s0000ff%02x", OTHERS_CHANNEL, k);
    for (unsigned i = 0; i < 3; i++) {
      fake_queue_put(&world->nodes[i].store, KEY, entries[k]);
    }
  }
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  for (unsigned i = first; i < 3; i++) {
    fake_queue_clear(&world->nodes[i].store, KEY);
    for (unsigned k = 2; k < 6; k++) {
      fake_queue_put(&world->nodes[i].store, KEY, entries[k]);
    }
    fake_queue_put(&world->nodes[i].store, KEY, entry_of_head(lock));
  }
  return lock;
}

TEST(waiter_does_not_evict_a_head_that_has_just_moved_up) {
  fake_world *world = world_with_subscribers(3);
  (void)begin_behind_six(world, 0);
  unsigned stands = world->nodes[0].enqueues;
  pass(world, 6 * 100 * MS + 2 * MS);
  assert_int_equal(world->nodes[0].enqueues, stands + 1);
  pass(world, 4 * 100 * MS - 10 * MS);
  assert_int_equal(world->nodes[0].enqueues, stands + 1);
  pass(world, 20 * MS);
  assert_int_equal(world->nodes[0].enqueues, stands + 2);
}

TEST(waiter_that_evicted_a_head_polls_soon) {
  fake_world *world = world_with_subscribers(3);
  (void)begin_behind_six(world, 1);
  unsigned stands = world->nodes[0].enqueues;
  pass(world, 6 * 100 * MS + 2 * MS);
  assert_int_equal(world->nodes[0].enqueues, stands + 1);
  pass(world, 110 * MS);
  assert_int_equal(world->nodes[0].enqueues, stands + 2);
}

TEST(waiter_ignores_reports_of_a_node_without_notifications) {
  fake_world *world = world_with_taken_key(3);
  redlock_options options = patient_options();
  rl_lock *lock = begin_enqueue(world, &options);
  for (unsigned i = 0; i < 3; i++) { /* The subscriber is gone before the node answers. */
    refuse_notifications(world, i);
  }
  fake_settle(world);
  remove_keys_unnoticed(world);
  pass(world, DELAY + MS);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(queue_outlives_the_longest_poll_interval) {
  fake_world *world = world_with_taken_key(3);
  redlock_options options = patient_options();
  options.wait_us = 600 * SECONDS;
  options.poll_interval_us = 3600 * SECONDS;
  (void)begin_acquire_of(world, KEY, &options);
  unsigned stands = world->nodes[0].enqueues;
  pass(world, 50 * SECONDS);
  assert_int_equal(world->nodes[0].enqueues, stands + 1);
  pass(world, 50 * SECONDS);
  assert_in_range(world->nodes[0].enqueues, stands + 2, stands + 3);
}

TEST(poll_discards_older_reports) {
  redlock_options options = patient_options();
  options.node_timeout_us = SECONDS;
  fake_world *world = world_with_taken_key(3);
  (void)begin_acquire_of(world, KEY, &options);
  while (world->nodes[0].enqueues == 1) {
    fake_pass(world, MS);
  }
  (void)fake_answer(world, 0); /* The others do not answer: it tries. */
  fake_pass(world, SECONDS - MS);
  assert_int_equal(world->nodes[0].sets, 1);
  fake_pass(world, MS);
  assert_int_equal(world->nodes[0].sets, 2);
}

TEST(waiter_dequeues_only_where_a_queue_had_room) {
  fake_world *world = world_with_taken_key(3);
  enqueue_other(world);
  world->nodes[1].store.queue_max = world->nodes[2].store.queue_max = 1;
  rl_lock *lock = begin_waiter(world);
  fake_free(world, lock);
  assert_int_equal(world->nodes[0].dequeues, 1);
  assert_int_equal(world->nodes[1].dequeues, 0);
  assert_int_equal(world->nodes[2].dequeues, 0);
}

TEST(waiter_polls_a_full_queue) {
  fake_world *world = world_with_taken_key(3);
  enqueue_other(world);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].store.queue_max = 1;
  }
  rl_lock *lock = begin_waiter(world);
  pass(world, 5 * DELAY);
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, 6);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].store.queue_max = 0;
  }
  pass(world, DELAY);
  assert_entry_at(world, 0, 1, entry_of_head(lock)); /* Each attempt asks again. */
}

/* ---------------------------------------------------------------------------------------- NTF-5 */

TEST(waiter_tries_when_a_majority_notifies) {
  fake_world *world = world_with_taken_key(5);
  rl_lock *lock = begin_waiter(world);
  pass(world, 70 * MS);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[0].sets, 1);
    let_other_release(world, i);
    fake_turn(world);
  }
  assert_int_equal(world->nodes[0].sets, 2);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/*
 * How far apart the attempts are, the shortest and the longest time, while node 0 calls in each
 * millisecond.
 */
static void measure_attempts(fake_world *world, const rl_lock *lock, redlock_duration *least_us,
                             redlock_duration *most_us) {
  redlock_time tried_us = 0;
  *least_us = REDLOCK_NEVER;
  *most_us = 0;
  for (unsigned i = 0, sets = world->nodes[1].sets; i < 5000; i++) {
    notify_ticket(world, 0, lock->waitlist->ticket->id);
    pass(world, MS);
    fake_settle(world);
    if (world->nodes[1].sets != sets && tried_us != 0) {
      redlock_duration apart_us = world->now_us - tried_us;
      *least_us = apart_us < *least_us ? apart_us : *least_us;
      *most_us = apart_us > *most_us ? apart_us : *most_us;
    }
    tried_us = world->nodes[1].sets != sets ? world->now_us : tried_us;
    sets = world->nodes[1].sets;
  }
}

/*
 * Two clients that have split the votes call each other: they would split them again if they kept
 * step.
 */
TEST(waiter_without_a_majority_tries_every_50_to_100_ms) {
  redlock_duration least_us, most_us;
  fake_world *world = world_with_subscribers(3);
  let_other_take(world, 6, REDLOCK_NEVER); /* One node has lost the key. */
  redlock_options options = patient_options();
  options.wait_us = 60 * SECONDS;
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  measure_attempts(world, lock, &least_us, &most_us);
  assert_in_range(least_us, 50 * MS, 70 * MS);
  assert_in_range(most_us, 80 * MS, 102 * MS);
}

/* The server notified the waiter twice, which tried a thousand times a second. */
TEST(notifications_of_two_nodes_that_are_one_server_are_no_majority) {
  fake_world *world = world_with_subscribers(3);
  let_other_take(world, 6, REDLOCK_NEVER);
  rl_lock *lock = begin_waiter(world);
  uint32_t id = lock->waitlist->ticket->id;
  unsigned sets = world->nodes[0].sets;
  world->core.nodes[1]->twins = 1;
  notify_ticket(world, 0, id);
  notify_ticket(world, 1, id);
  fake_settle(world);
  assert_int_equal(world->nodes[0].sets, sets);
  world->core.nodes[1]->twins = 0;
  notify_ticket(world, 1, id);
  fake_settle(world);
  assert_int_equal(world->nodes[0].sets, sets + 1);
}

/* Each notification drew a new time, so that the head tried early, and split the votes again. */
TEST(notifications_of_different_slots_keep_the_time_of_the_attempt) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  rl_ticket *ticket = lock->waitlist->ticket;
  ticket->permits = 2; /* The messages of the fake name no slot. */
  notify_ticket(world, 0, ticket->id);
  redlock_time due_us = lock->timer.due_us;
  assert_true(due_us >= world->now_us + 45 * MS);
  for (unsigned sets = world->nodes[0].sets; world->now_us + MS < due_us;) {
    pass(world, MS);
    notify_ticket(world, 1, ticket->id);
    fake_settle(world);
    assert_int_equal(lock->timer.due_us, due_us);
    assert_int_equal(world->nodes[0].sets, sets);
  }
}

TEST(attempt_denied_by_few_keeps_its_delay) {
  redlock_duration least_us, most_us;
  fake_world *world = world_with_subscribers(3);
  let_other_take(world, 2, REDLOCK_NEVER);
  world->nodes[2].policy = FAKE_REFUSES;
  fake_break(world, 2, "Connection reset by peer");
  redlock_options options = patient_options();
  options.wait_us = 60 * SECONDS;
  options.retry_delay_us = 300 * MS;
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  measure_attempts(world, lock, &least_us, &most_us);
  assert_in_range(least_us, 299 * MS, 302 * MS);
  assert_in_range(most_us, 299 * MS, 302 * MS);
}

/* A majority of the queues reports a holder, though only one node denied the attempt. */
TEST(notification_of_a_polling_head_keeps_the_usual_delay) {
  fake_world *world = world_with_subscribers(3);
  let_other_take(world, 3, REDLOCK_NEVER);
  redlock_options options = patient_options();
  rl_lock *lock = fake_lock(world, KEY, &options);
  fake_begin_acquire(world, lock);
  (void)fake_answer(world, 0);
  (void)fake_reply(world, 1, "-OOM command not allowed\r\n");
  (void)fake_reply(world, 2, "-OOM command not allowed\r\n");
  fake_settle(world);
  assert_true(lock->waitlist->ticket->polls);
  let_other_release(world, 1);
  pass(world, DELAY - 1);
  assert_int_equal(world->nodes[1].sets, 1);
  pass(world, 1);
  assert_int_equal(world->nodes[1].sets, 2);
}

TEST(notification_of_a_disconnected_node_does_not_count) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  pass(world, 110 * MS);
  notify_ticket(world, 0, lock->waitlist->ticket->id);
  fake_break_for_good(world, 0);
  notify_ticket(world, 1, lock->waitlist->ticket->id);
  assert_int_equal(world->nodes[1].sets, 1);
  fake_pass(world, MS);
  assert_int_equal(world->nodes[1].sets, 2);
}

TEST(notification_during_an_attempt_counts) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  pass(world, 110 * MS);
  uint32_t id = lock->waitlist->ticket->id;
  notify_ticket(world, 0, id);
  fake_pass(world, MS); /* The attempt is under way, */
  assert_int_equal(world->nodes[0].sets, 2);
  for (unsigned i = 0; i < 3; i++) {
    char reply[FAKE_REPLY_MAX];
    (void)fake_execute(world, i, reply); /* is refused by all, */
    let_other_release(world, i);         /* and the lock is released before they are heard. */
    fake_turn(world);
    fake_deliver(world, i, reply);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* -------------------------------------------------------------------------------- NTF-6, NTF-7 */

/* At once: in a loop that runs seldom, or in a finalizer, the core may not be called for long. */
TEST(waiter_that_gives_up_dequeues_everywhere_at_once) {
  enum { FREED, CANCELLED, CLOSED, WAYS };
  for (unsigned way = 0; way < WAYS; way++) {
    size_t length = 0;
    fake_world *world = world_with_taken_key(3);
    rl_lock *lock = begin_waiter(world);
    assert_null(rl_core_output(&world->core, 0, &length));
    if (way == FREED) {
      rl_lock_free(lock, world->now_us);
    } else if (way == CANCELLED) {
      rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
    } else {
      rl_core_close(&world->core, world->now_us);
      assert_error(rl_lock_result(lock), REDLOCK_E_CLOSED);
    }
    assert_true(rl_core_has_unsent(&world->core));
    assert_int_equal(rl_core_output(&world->core, 0, &length) != NULL, way != CLOSED);
    fake_settle(world);
    assert_int_equal(total_of(world, dequeues), 3);
    assert_queues_are_empty(world);
  }
}

TEST(release_dequeues_in_the_same_script) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  let_other_release_everywhere(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_non_null(fake_queue_at(&world->nodes[0].store, KEY, 0)); /* It stays first: */
  enqueue_other(world);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_string_equal(fake_queue_at(&world->nodes[i].store, KEY, 0), OTHERS_ENTRY);
    assert_true(other_is_notified(world, i));
    assert_int_equal(world->nodes[i].dequeues, 0);
  }
  assert_int_equal(world->core.notify->used_count, 0);
}

TEST(release_dequeues_where_its_set_was_refused) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  let_other_release(world, 0);
  let_other_release(world, 1);
  pass(world, SECONDS);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_non_null(fake_queue_at(&world->nodes[2].store, KEY, 0));
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_queues_are_empty(world);
}

/* NTF-8: the key was freed for this lease. The next waiter would try in vain. */
TEST(late_notification_of_a_holder_is_not_passed_on) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  enqueue_other(world);
  let_other_release(world, 0);
  let_other_release(world, 1);
  pass(world, SECONDS);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  let_other_release(world, 2);
  fake_settle(world);
  assert_false(other_is_notified(world, 2));
  assert_string_not_equal(fake_queue_at(&world->nodes[2].store, KEY, 0), OTHERS_ENTRY);
}

TEST(ticket_is_dequeued_at_the_next_notification) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  fake_break_for_good(world, 2);
  let_other_release(world, 0);
  let_other_release(world, 1);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  fake_free(world, lock);
  assert_null(fake_queue_at(&world->nodes[0].store, KEY, 0));
  assert_non_null(fake_queue_at(&world->nodes[2].store, KEY, 0));
  assert_int_equal(world->core.notify->used_count, 0);
  world->nodes[2].policy = FAKE_ACCEPTS;
  pass(world, 5 * SECONDS);
  let_other_release(world, 2);
  fake_settle(world);
  assert_null(fake_queue_at(&world->nodes[2].store, KEY, 0));
}

TEST(grant_before_the_reply_of_enqueue_dequeues) {
  redlock_options options = patient_options();
  options.node_timeout_us = 500 * MS;
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_enqueue(world, &options);
  char replies[3][FAKE_REPLY_MAX];
  for (unsigned i = 0; i < 3; i++) {
    (void)fake_execute(world, i, replies[i]);
    fake_store_remove(&world->nodes[i].store, KEY);
  }
  fake_pass(world, DELAY); /* The waiter tries: no node has notified it. */
  for (unsigned i = 0; i < 3; i++) {
    char reply[FAKE_REPLY_MAX];
    assert_int_equal(fake_next(world, i), FAKE_SET);
    (void)fake_execute(world, i, reply);
    fake_deliver(world, i, replies[i]);
    fake_deliver(world, i, reply);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_non_null(fake_queue_at(&world->nodes[0].store, KEY, 0));
  fake_free(world, lock);
  assert_queues_are_empty(world);
}

/* ---------------------------------------------------------------------------------------- NTF-8 */

TEST(notification_of_an_unknown_ticket_is_passed_on) {
  char entry[RL_LINK_ENTRY_SIZE];
  fake_world *world = world_with_subscribers(3);
  rl_link_entry(world->core.notify->channel, 0x12345678, entry);
  fake_queue_put(&world->nodes[1].store, KEY, entry); /* It was left behind there. */
  enqueue_other(world);
  let_other_take(world, 7, REDLOCK_NEVER);
  let_other_release(world, 1);
  fake_settle(world);
  assert_int_equal(world->nodes[1].dequeues, 1);
  assert_string_equal(fake_queue_at(&world->nodes[1].store, KEY, 0), OTHERS_ENTRY);
  assert_true(other_is_notified(world, 1));
  assert_int_equal(world->nodes[0].dequeues, 0);
}

TEST(reused_ticket_has_another_id) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *before = begin_waiter(world);
  uint32_t id = before->waitlist->ticket->id;
  fake_free(world, before);
  pass(world, SECONDS);
  rl_lock *lock = begin_waiter(world);
  assert_int_equal(lock->waitlist->ticket->id, id + 0x10000);
  assert_int_equal(world->core.notify->ticket_count, 1);
  pass(world, 60 * MS);
  for (unsigned i = 0; i < 3; i++) {
    notify_ticket(world, i, id); /* late, for the former waiter */
  }
  fake_settle(world);
  pass(world, 5 * MS);
  assert_int_equal(world->nodes[0].sets, 2);
  assert_int_equal(world->nodes[0].dequeues, 2);
  assert_entry_at(world, 0, 0, entry_of_head(lock));
}

TEST(malformed_message_is_ignored) {
  static const char *const said[] = {"",         "0",  "0000000",  "0000000 ", "0000000Gorders:42",
                                     "0000000A", "-1", "00000000", /* a call without a key */
                                     "ffffffff"};
  char much[RL_REPLY_BYTES_MAX + 2];
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  lock->waitlist->ticket->id += 0x10000; /* so that none of them is for it */
  memset(much, 'f', sizeof much - 1);
  much[sizeof much - 1] = '\0';
  for (unsigned i = 0; i < COUNT_OF(said); i++) {
    deliver_message(world, i % 3, said[i]);
  }
  deliver_message(world, 0, much);
  fake_settle(world);
  pass(world, 60 * MS);
  assert_int_equal(total_of(world, dequeues), 0);
  assert_int_equal(total_of(world, sets), 3);
  assert_int_equal(world->core.notify->ready, 7);
  lock->waitlist->ticket->id -= 0x10000;
}

/* ------------------------------------------------------------------------- budgets, and nodes */

/* A majority of the nodes or of the subscribers disconnects. */
TEST(waiter_tries_again_and_again_when_notifications_stop) {
  for (unsigned first = 1; first <= 3 + 1; first += 3) {
    fake_world *world = world_with_taken_key(3);
    rl_lock *lock = begin_waiter(world);
    pass(world, DELAY);
    assert_int_equal(world->nodes[0].sets, 1);
    fake_break_for_good(world, first);
    fake_break_for_good(world, first + 1);
    pass(world, 2 * DELAY + 60 * MS); /* An attempt may take its time-out. */
    assert_int_equal(world->nodes[0].sets, 3);
    assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  }
}

TEST(node_that_came_back_is_asked_again) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  fake_break(world, 1, "Connection reset by peer");
  fake_queue_clear(&world->nodes[1].store, KEY); /* It was restarted. */
  pass(world, 100 * MS);
  assert_entry_at(world, 1, 0, entry_of_head(lock));
  assert_int_equal(world->nodes[1].enqueues, 2);
  assert_int_equal(world->nodes[0].enqueues, 1);
  pass(world, 4 * DELAY);
  assert_int_equal(world->nodes[0].sets, 1); /* It has a majority all the time. */
}

TEST(node_that_forbids_the_queue_is_not_asked_for_a_minute) {
  const char *reason;
  redlock_options options = patient_options();
  options.wait_us = 300 * SECONDS;
  fake_world *world = world_with_taken_key(1);
  rl_lock *lock = begin_enqueue(world, &options);
  (void)fake_reply(world, 0, "-NOPERM this user has no permissions to run 'rpush'\r\n");
  fake_settle(world);
  assert_false(rl_subscriber_state(&world->core, 0, &reason));
  assert_contains(reason, "NOPERM");
  pass(world, 5 * DELAY);
  assert_int_equal(world->nodes[0].sets, 6); /* It polls. */
  pass(world, 50 * SECONDS);
  assert_int_equal(world->nodes[0].enqueues, 1);
  pass(world, 15 * SECONDS);
  assert_true(rl_subscriber_state(&world->core, 0, &reason));
  assert_null(reason);
  assert_entry_at(world, 0, 0, entry_of_head(lock));
}

/* It is known before its client has ever waited: then it does not begin to. */
TEST(client_polls_where_its_releases_may_not_notify) {
  const char *reason;
  fake_world *world = fake_world_new_notifying(1);
  world->nodes[0].store.mute = true;
  rl_lock *lock = begin_waiter(world);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  world->nodes[0].store.mute = false;
  let_other_take(world, 1, REDLOCK_NEVER);
  (void)begin_waiter(world);
  pass(world, 5 * DELAY);
  assert_int_equal(world->nodes[0].enqueues, 0);
  assert_false(rl_subscriber_state(&world->core, 0, &reason));
  assert_contains(reason, "may not notify");
  pass(world, RL_SUBSCRIBER_REFUSED_US);
  assert_true(rl_subscriber_state(&world->core, 0, &reason));
}

/*
 * A waiter that can enqueue but not dequeue would block other waiters. An error about the key does
 * not concern the node.
 */
TEST(client_that_may_not_dequeue_polls_for_a_minute) {
  static const struct {
    const char *answer;
    bool refuses;
  } cases[] = {
      {"-ERR The user executing the script can't run this command or subcommand script: 1\r\n",
       true},
      {"-ERR ACL failure in script: User locks has no permissions to run the 'mget' command\r\n",
       true},
      {"-ERR Error running script (call to f_0123456789012345678901234567890123456789): "
       "@user_script:1: "
       "@user_script: 1: The user executing the script can't run this command or subcommand\r\n",
       true}, /* as Redis 6 says it, of which the end is not kept */
      {"-ERR Unknown Redis command called from script script: 1\r\n", true},
      {"-ERR The user executing the script can't access at least one of the keys\r\n", false},
      {"-WRONGTYPE of another kind\r\n", false},
      {":1\r\n", false},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    const char *reason;
    fake_world *world = world_with_taken_key(1);
    rl_lock_free(begin_waiter(world), world->now_us);
    fake_turn(world);
    assert_int_equal(fake_next(world, 0), FAKE_DEQUEUE);
    (void)fake_reply(world, 0, cases[i].answer);
    fake_settle(world);
    assert_int_equal(rl_subscriber_state(&world->core, 0, &reason), !cases[i].refuses);
    assert_int_equal(reason != NULL, cases[i].refuses);
  }
}

TEST(node_with_a_malformed_reply_is_not_asked_for_a_minute) {
  static const char *const answers[] = {":-1\r\n", "+OK\r\n", "$-1\r\n", "$1\r\n5\r\n",
                                        "-ERR of another kind\r\n"};
  for (unsigned i = 0; i < COUNT_OF(answers); i++) {
    const char *reason;
    redlock_options options = patient_options();
    fake_world *world = world_with_taken_key(1);
    rl_lock *lock = begin_enqueue(world, &options);
    (void)fake_reply(world, 0, answers[i]);
    fake_settle(world);
    assert_false(rl_subscriber_state(&world->core, 0, &reason));
    assert_non_null(reason);
    assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  }
}

/*
 * A key of another type is where one queue would be, or there is no memory for a moment: the others
 * are called.
 */
TEST(key_of_another_type_blocks_only_its_queue) {
  static const char *const answers[] = {"-WRONGTYPE of another kind\r\n",
                                        "-ERR Error running script: WRONGTYPE Operation\r\n",
                                        "-OOM command not allowed\r\n", "-LOADING it loads\r\n",
                                        "-ERR Error running script: -OOM command\r\n"};
  for (unsigned i = 0; i < COUNT_OF(answers); i++) {
    const char *reason;
    redlock_options options = patient_options();
    fake_world *world = world_with_taken_key(1);
    fake_store_put(&world->nodes[0].store, "another", OTHER, REDLOCK_NEVER);
    rl_lock *lock = begin_enqueue(world, &options);
    (void)fake_reply(world, 0, answers[i]);
    fake_turn(world);
    assert_true(rl_subscriber_state(&world->core, 0, &reason));
    assert_null(reason);
    assert_int_equal(lock->waitlist->ticket->enqueued,
                     1); /* Whatever it says, it is left in the end. */
    assert_true(lock->timer.due_us <= world->now_us + DELAY);
    const rl_lock *other = begin_acquire_of(world, "another", &options);
    assert_int_equal(other->waitlist->ticket->held, 1);
  }
}

TEST(forgotten_queue_script_is_sent_as_text) {
  fake_world *world = world_with_taken_key(1);
  rl_lock_free(begin_waiter(world), world->now_us);
  fake_settle(world); /* It knows both scripts by now. */
  world->nodes[0].store.forgot_queue_scripts = true;
  rl_lock *lock = begin_waiter(world);
  assert_entry_at(world, 0, 0, entry_of_head(lock));
  assert_int_equal(world->nodes[0].enqueues, 3); /* by its name, and by its text */
  fake_free(world, lock);
  assert_true(world->core.notify->ready == 1);
}

TEST(forked_child_drops_its_wait_lists_silently) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  rl_lock *queued = begin_waiter(world);
  char channel[RL_NOTIFY_CHANNEL_SIZE];
  memcpy(channel, world->core.notify->channel, sizeof channel);
  rl_core_reset(&world->core);
  for (unsigned i = 0; i < 6; i++) {
    world->nodes[i].connected = false;
    world->nodes[i].queued = 0;
    fake_queue_unsubscribe(&world->nodes[i % 3].store, 0);
  }
  assert_int_equal(rl_core_connection_count(&world->core), 3);
  assert_int_equal(world->core.notify->used_count, 0);
  assert_int_equal(world->core.waitlists->table.count, 0);
  assert_int_equal(world->core.waitlists->queued_count, 0);
  assert_int_equal(world->core.busy_count, 0);
  assert_null(lock->waitlist);
  assert_null(queued->waitlist);
  fake_settle(world);
  assert_int_equal(total_of(world, dequeues), 0);
  rl_lock_free(lock, world->now_us);
  rl_lock *own = begin_waiter(world); /* Its calls come by another channel. */
  assert_string_not_equal(world->core.notify->channel, channel);
  let_other_release_everywhere(world);
  assert_error(rl_lock_result(own), REDLOCK_OK);
}

/* -------------------------------------------------------- servers that want all keys declared */

#define UNDECLARED "-ERR script tried accessing undeclared key\r\n"

TEST(refused_notification_repeats_the_release_without) {
  static const char *const refusals[] = {
      UNDECLARED, "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
      "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"};
  for (unsigned i = 0; i < COUNT_OF(refusals); i++) {
    fake_world *world = world_with_subscribers(1);
    rl_lock *lock = fake_lock(world, KEY, NULL);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    fake_begin_release(world, lock);
    fake_command command = fake_reply(world, 0, refusals[i]);
    assert_true(command.verb == FAKE_RELEASE && command.notifies);
    command = fake_answer(world, 0);
    assert_true(command.verb == FAKE_RELEASE && !command.notifies);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(fake_keys(world, KEY), 0);
    /* The next ones do without at once, for a minute. */
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    fake_begin_release(world, lock);
    assert_false(fake_answer(world, 0).notifies);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
  }
}

TEST(refused_notification_of_a_forced_release_repeats_without) {
  fake_world *world = world_with_taken_key(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_FORCE_RELEASE,
                           &(rl_question){.token = OTHER, .token_length = sizeof OTHER - 1}, false),
               REDLOCK_OK);
  fake_turn(world);
  assert_true(fake_reply(world, 0, UNDECLARED).notifies);
  assert_false(fake_answer(world, 0).notifies);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* It may have been executed: the plain release would find nothing. */
TEST(other_release_error_is_not_a_refusal) {
  fake_world *world = world_with_subscribers(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_begin_release(world, lock);
  (void)fake_reply(world, 0, "-ERR the proxy lost its patience\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

/* ---------------------------------------------------------------------------- several keys */

/* Begins an acquire of KEY and "other", which waits: KEY is taken on all nodes. */
static rl_lock *begin_pair(fake_world *world) {
  static const char *const names[] = {KEY, "other"};
  redlock_options options = patient_options();
  subscribe_to_all_nodes(world);
  let_other_take(world, 7, REDLOCK_NEVER);
  rl_lock *pair = fake_lock_many(world, names, 2, &options);
  assert_error(fake_acquire(world, pair), REDLOCK_PENDING);
  return pair;
}

TEST(first_of_all_queues_tries_when_its_last_key_is_released) {
  fake_world *world = fake_world_new_notifying(3);
  rl_lock *pair = begin_pair(world);
  unsigned sets = world->nodes[0].sets, stands = world->nodes[0].enqueues;
  assert_int_equal(pair->waitlist->ticket->reserved, 7);
  for (unsigned i = 0; i < 3; i++) {
    assert_non_null(fake_queue_at(&world->nodes[i].store, KEY, 0));
    assert_non_null(fake_queue_at(&world->nodes[i].store, "other", 0));
    let_other_release(world, i);
  }
  fake_settle(world);
  assert_error(rl_lock_result(pair), REDLOCK_OK);
  assert_int_equal(world->nodes[0].sets, sets + 1);
  assert_int_equal(world->nodes[0].enqueues, stands);
  assert_error(fake_release(world, pair), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_null(fake_queue_at(&world->nodes[i].store, KEY, 0));
    assert_null(fake_queue_at(&world->nodes[i].store, "other", 0));
  }
}

TEST(waiter_with_a_key_taken_asks_instead_of_trying) {
  fake_world *world = fake_world_new_notifying(3);
  for (unsigned i = 0; i < 3; i++) {
    fake_store_put(&world->nodes[i].store, "other", OTHER, REDLOCK_NEVER);
  }
  rl_lock *pair = begin_pair(world);
  unsigned sets = world->nodes[0].sets, stands = world->nodes[0].enqueues;
  let_other_release_everywhere(world);
  assert_error(rl_lock_result(pair), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, sets);
  assert_int_equal(world->nodes[0].enqueues, stands + 1);
  assert_int_equal(pair->waitlist->ticket->reserved, 7);
  assert_non_null(fake_queue_at(&world->nodes[0].store, KEY, 0));
  fake_pass(world, 100 * MS); /* It keeps KEY, and asks again: POLL-6. */
  fake_settle(world);
  assert_int_equal(world->nodes[0].enqueues, stands + 2);
  assert_int_equal(world->nodes[0].sets, sets);
}

/* NTF-10. The holder of the other key extends its lease for ever. */
TEST(waiter_of_two_keys_reserves_a_free_key_for_one_ttl) {
  fake_world *world = fake_world_new_notifying(3);
  rl_lock *pair = begin_pair(world);
  fake_queue_put(&world->nodes[0].store, "other", OTHERS_ENTRY);
  for (redlock_time end_us = world->now_us + pair->ttl_us - 200 * MS; world->now_us < end_us;) {
    fake_pass(world, 100 * MS);
    fake_settle(world);
    assert_int_equal(pair->waitlist->ticket->reserved, 7);
  }
  assert_non_null(fake_queue_at(&world->nodes[0].store, "other", 1));
  fake_pass(world, 200 * MS);
  fake_settle(world);
  assert_int_equal(pair->waitlist->ticket->reserved, 0);
  /* The node looked for a connected waiter behind it, and removed the other one. */
  assert_null(fake_queue_at(&world->nodes[0].store, "other", 1));
  assert_non_null(fake_queue_at(&world->nodes[0].store, "other", 0));
  assert_error(rl_lock_result(pair), REDLOCK_PENDING);
}
