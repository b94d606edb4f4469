/*
 * The core as a driver sees it: connections, time, output, bounds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <limits.h>

#include "fake_nodes.h"
#include "lock/rl_round.h"
#include "rl_test.h"

static const char KEY[] = "orders:42";

static rl_lock *held(fake_world *world, const redlock_options *options) {
  rl_lock *lock = fake_lock(world, KEY, options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  return lock;
}

static void begin(fake_world *world, rl_lock *lock) {
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, true), REDLOCK_OK);
  fake_turn(world);
}

/* ------------------------------------------------------------------------------- connections */

TEST(no_connection_is_wanted_before_the_first_operation) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  fake_pass(world, 10 * SECONDS);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].connections, 0);
    assert_int_equal(rl_core_wanted_connection(&world->core, i, world->now_us), RL_CONNECTION_NONE);
  }
  assert_int_equal(rl_core_deadline(&world->core), REDLOCK_NEVER);
  begin(world, lock);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].connections, 1);
    assert_int_equal(rl_core_wanted_connection(&world->core, i, world->now_us), RL_CONNECTION_OPEN);
  }
}

/*
 * A random part of each delay is left out: many clients that lose a node do not come back together.
 */
TEST(clients_reconnect_at_random_times) {
  redlock_time at_us[2][6];
  for (unsigned client = 0; client < 2; client++) {
    fake_world *world = fake_world_new(2);
    world->jitter = 0x123456789abcdef + client;
    world->nodes[1].policy = FAKE_REFUSES;
    begin(world, fake_lock(world, KEY, NULL));
    redlock_time begun_us = world->now_us;
    rl_lock_cancel(RL_LIST_FIRST(&world->core.locks, rl_lock, locks), world->now_us,
                   REDLOCK_E_CANCELLED);
    fake_settle(world);
    for (unsigned i = 0; i < COUNT_OF(at_us[0]); i++) {
      fake_pass(world, rl_core_deadline(&world->core) - world->now_us);
      at_us[client][i] = world->now_us - begun_us;
    }
    assert_in_range(at_us[client][5], 25 * MS * 63, 50 * MS * 63);
  }
  for (unsigned i = 1; i < COUNT_OF(at_us[0]); i++) {
    assert_true(at_us[0][i] != at_us[1][i]);
  }
}

/* Back-off has come to a second; the node is reachable again, and an operation needs it. */
TEST(operation_ends_the_back_off_of_needed_nodes) {
  fake_world *world = fake_world_new(1);
  redlock_options options = fake_once();
  world->nodes[0].policy = FAKE_REFUSES;
  rl_lock *lock = fake_lock(world, KEY, &options);
  begin(world, lock);
  for (unsigned i = 0; i < 60; i++) {
    fake_pass(world, 100 * MS);
  }
  redlock_time next_us = rl_core_deadline(&world->core);
  assert_true(next_us > world->now_us + 100 * MS);
  fake_pass(world, 50 * MS);
  world->nodes[0].policy = FAKE_ACCEPTS;
  begin(world, lock);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_true(world->now_us < next_us);
}

/*
 * But a node that refuses is not tried more often than every 50 ms, nor one that majorities do
 * without.
 */
TEST(needed_node_is_tried_every_50_ms_at_most) {
  fake_world *world = fake_world_new(1);
  redlock_options options = fake_once();
  world->nodes[0].policy = FAKE_REFUSES;
  rl_lock *lock = fake_lock(world, KEY, &options);
  begin(world, lock);
  fake_pass(world, 10 * SECONDS);
  unsigned failures = world->core.nodes[0]->failures;
  for (unsigned i = 0; i < 100; i++) {
    begin(world, lock);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    fake_pass(world, 10 * MS);
  }
  assert_in_range(world->core.nodes[0]->failures - failures, 19, 21);
}

TEST(connect_timeout_is_three_seconds) {
  fake_world *world = fake_world_new(1);
  world->nodes[0].policy = FAKE_HANGS;
  rl_lock *lock = fake_lock(world, KEY, NULL);
  begin(world, lock);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  fake_pass(world, 3 * SECONDS - 1);
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_CONNECTING);
  assert_int_equal(rl_core_deadline(&world->core), world->now_us + 1);
  world->now_us++;
  rl_core_advance(&world->core, world->now_us);
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_DOWN);
  assert_string_equal(world->core.nodes[0]->error, "connecting took too long");
}

TEST(connect_timeout_names_the_name_server) {
  fake_world *world = fake_world_new(2);
  world->nodes[0].policy = world->nodes[1].policy = FAKE_HANGS;
  world->core.nodes[1]->address.sentinels.count = 3;
  rl_lock *lock = fake_lock(world, KEY, NULL);
  begin(world, lock);
  rl_core_looks_up(&world->core, 0, true);
  rl_core_looks_up(&world->core, 1, true);
  fake_pass(world, 3 * SECONDS);
  assert_string_equal(world->core.nodes[0]->error, "the name server did not give an address");
  assert_string_equal(world->core.nodes[1]->error, "the Sentinels did not name a master");
  fake_pass(world, SECONDS); /* the back-off */
  begin(world, fake_lock(world, "other", NULL));
  fake_pass(world, 3 * SECONDS); /* This connection has the address at once. */
  assert_string_equal(world->core.nodes[0]->error, "connecting took too long");
}

TEST(silent_handshake_is_given_up) {
  fake_world *world = fake_world_new(1);
  world->nodes[0].policy = FAKE_SILENT;
  rl_lock *lock = fake_lock(world, KEY, NULL);
  begin(world, lock);
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_HANDSHAKE);
  assert_int_equal(world->nodes[0].sets, 0);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  world->now_us += 3 * SECONDS;
  rl_core_advance(&world->core, world->now_us);
  assert_string_equal(world->core.nodes[0]->error, "connected, but the node does not answer");
}

/* Nothing at all for 3 s while a reply is outstanding; an attempt's timeout closes nothing. */
TEST(silent_connection_is_given_up_after_3_s) {
  fake_world *world = fake_world_new(1);
  redlock_options options = fake_once();
  rl_lock *lock = fake_lock(world, KEY, &options);
  begin(world, lock);
  fake_pass(world, 3 * SECONDS - 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->nodes[0].connections, 1);
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_UP);
  world->now_us++;
  rl_core_advance(&world->core, world->now_us);
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_DOWN);
  assert_string_equal(world->core.nodes[0]->error, "the node does not answer any more");
}

TEST(input_for_a_node_that_is_down_is_dropped) {
  fake_world *world = fake_world_new(1);
  rl_core_input(&world->core, 0, world->now_us, "+OK\r\n", 5);
  rl_core_disconnected(&world->core, 0, world->now_us, "again");
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_DOWN);
  assert_string_equal(world->core.nodes[0]->error, "");
}

/* -------------------------------------------------------------------------------------- time */

TEST(time_does_not_go_back) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  begin(world, lock);
  rl_core_advance(&world->core, world->now_us + 50 * MS);
  assert_int_equal(world->core.now_us, world->now_us + 50 * MS);
  rl_core_input(&world->core, 0, world->now_us, "+OK\r\n", 5);
  assert_int_equal(lock->votes[0].latency_us, 50 * MS);
  assert_int_equal(lock->deadline_us, FAKE_START_US + 9898 * MS);
}

TEST(begun_acquire_is_due_and_wants_entropy) {
  fake_world *world = fake_world_new(1);
  rl_lock *first = fake_lock(world, "first", NULL);
  rl_lock *second = fake_lock(world, "second", NULL);
  assert_int_equal(rl_core_entropy_wanted(&world->core), 0);
  assert_false(rl_core_wants_send(&world->core));
  assert_error(rl_lock_acquire(first, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_acquire(second, world->now_us, NULL, false), REDLOCK_OK);
  assert_int_equal(rl_core_entropy_wanted(&world->core), 2 * RL_LOCK_ENTROPY);
  assert_true(rl_core_wants_send(&world->core));
  assert_int_equal(rl_core_deadline(&world->core), 0);
  rl_lock_cancel(second, world->now_us, REDLOCK_E_CANCELLED);
  assert_int_equal(rl_core_entropy_wanted(&world->core), RL_LOCK_ENTROPY);
  fake_settle(world);
  assert_int_equal(rl_core_entropy_wanted(&world->core), 0);
  assert_error(rl_lock_result(first), REDLOCK_OK);
  assert_error(rl_lock_release(first, world->now_us, false), REDLOCK_OK);
  assert_int_equal(rl_core_entropy_wanted(&world->core), 0);
  assert_true(rl_core_wants_send(&world->core));
}

TEST(entropy_for_one_sends_one_acquire) {
  unsigned char entropy[RL_LOCK_ENTROPY] = {1};
  fake_world *world = fake_world_new(1);
  rl_lock *first = fake_lock(world, "first", NULL);
  rl_lock *second = fake_lock(world, "second", NULL);
  assert_error(rl_lock_acquire(first, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_acquire(second, world->now_us, NULL, false), REDLOCK_OK);
  rl_core_send(&world->core, world->now_us, entropy, sizeof entropy);
  assert_int_equal(first->phase, RL_PHASE_ROUND);
  assert_int_equal(second->phase, RL_PHASE_SEND);
  fake_settle(world);
  assert_error(rl_lock_result(second), REDLOCK_OK);
}

/* ------------------------------------------------------------------------------------- output */

TEST(output_is_taken_in_any_pieces) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  fake_command command;
  char bytes[256];
  size_t used = 0;
  size_t length;
  const char *output;
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  world->nodes[0].blocked = true;
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  assert_true(rl_core_has_unsent(&world->core));
  while ((output = rl_core_output(&world->core, 0, &length)) != NULL) {
    assert_true(used < sizeof bytes);
    bytes[used++] = *output;
    rl_core_output_sent(&world->core, 0, 1);
  }
  assert_int_equal(fake_command_parse(&command, bytes, used), used);
  assert_int_equal(command.verb, FAKE_RELEASE);
  assert_false(rl_core_has_unsent(&world->core));
  assert_true(rl_core_has_unanswered(&world->core));
  rl_core_input(&world->core, 0, world->now_us, ":1\r\n", 4);
  assert_false(rl_core_has_unanswered(&world->core));
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(unsent_includes_releases_for_connections_that_are_being_made) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = held(world, NULL);
  world->nodes[0].policy = FAKE_SILENT;
  fake_break(world, 0, "Connection reset by peer");
  assert_false(rl_core_has_unsent(&world->core));
  rl_lock_free(lock, world->now_us);
  assert_true(rl_core_has_unsent(&world->core));
  fake_reply(world, 0, "+OK\r\n");
  assert_false(rl_core_has_unsent(&world->core)); /* it has gone out */
  assert_true(rl_core_has_unanswered(&world->core));
  fake_settle(world);
  assert_false(rl_core_has_unanswered(&world->core));
}

/* A release on a node in back-off does not count as about to be sent. */
TEST(unsent_counts_a_release_by_how_soon_its_node_is_tried) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = held(world, NULL);
  world->nodes[0].policy = FAKE_HANGS;
  world->nodes[0].connected = false;
  rl_core_disconnected(&world->core, 0, world->now_us, "Connection reset by peer");
  assert_false(rl_core_has_unsent(&world->core));
  rl_lock_free(lock, world->now_us);
  assert_true(rl_core_has_unsent(&world->core)); /* It is tried at once, */
  fake_settle(world);
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_CONNECTING);
  assert_true(rl_core_has_unsent(&world->core)); /* it is being tried, */
  rl_core_disconnected(&world->core, 0, world->now_us, "Connection refused");
  assert_false(rl_core_has_unsent(&world->core)); /* and that was of no use. */
  assert_true(rl_core_has_unanswered(&world->core));
  world->now_us += 50 * MS;
  rl_core_advance(&world->core, world->now_us - 1);
  assert_false(rl_core_has_unsent(&world->core));
  rl_core_advance(&world->core, world->now_us);
  assert_true(rl_core_has_unsent(&world->core));
}

TEST(core_does_not_await_a_silent_node) {
  fake_world *world = fake_world_new(2);
  rl_lock *lock = held(world, NULL);
  assert_false(rl_core_awaits_replies(&world->core, world->now_us, REDLOCK_NEVER));
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  world->now_us += 100 * MS;
  assert_true(rl_core_awaits_replies(&world->core, world->now_us, 100 * MS));
  assert_false(rl_core_awaits_replies(&world->core, world->now_us, 100 * MS - 1));
  assert_true(rl_core_has_unanswered(&world->core));
  fake_answer(world, 0);
  assert_true(rl_core_awaits_replies(&world->core, world->now_us, 100 * MS)); /* node 1 */
  fake_answer(world, 1);
  assert_false(rl_core_awaits_replies(&world->core, world->now_us, REDLOCK_NEVER));
}

TEST(core_with_a_lock_accepts_no_nodes) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  const rl_address *address = &world->core.nodes[0]->address;
  assert_error(rl_core_add(&world->core, address), REDLOCK_E_BUSY);
  begin(world, lock);
  rl_lock_free(lock, world->now_us);
  assert_error(rl_core_add(&world->core, address), REDLOCK_E_BUSY);
}

TEST(seventeen_of_32_nodes_grant_a_lock) {
  unsigned char entropy[RL_LOCK_ENTROPY] = {1};
  fake_world *world = fake_world_new(1);
  const rl_address *address = &world->core.nodes[0]->address;
  for (unsigned i = 1; i < REDLOCK_NODES_MAX; i++) {
    assert_error(rl_core_add(&world->core, address), REDLOCK_OK);
  }
  assert_error(rl_core_add(&world->core, address), REDLOCK_E_LIMIT);
  assert_int_equal(world->core.node_count, REDLOCK_NODES_MAX);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
    rl_core_connecting(&world->core, i, world->now_us);
    rl_core_connected(&world->core, i, world->now_us);
    rl_core_input(&world->core, i, world->now_us, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE));
  }
  rl_core_send(&world->core, world->now_us, entropy, sizeof entropy);
  for (unsigned i = 0; i < 17; i++) {
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    rl_core_input(&world->core, REDLOCK_NODES_MAX - 1 - i, world->now_us, "+OK\r\n", 5);
  }
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(lock->attempt == NULL ? lock->lease->sent : 0, UINT32_MAX);
}

/* -------------------------------------------------------------------------------------- bounds */

static void drain(fake_world *world, unsigned node) {
  size_t length;
  while (rl_core_output(&world->core, node, &length) != NULL) {
    rl_core_output_sent(&world->core, node, length);
  }
}

/* A node that takes everything and answers nothing: acquires stop, releases do not. */
TEST(outstanding_replies_are_bounded_and_leave_room_for_releases) {
  fake_world *world = fake_world_new(1);
  world->core.pacer.in_flight_limit = UINT_MAX; /* Everything is sent at once. */
  redlock_options options = fake_once();
  options.node_timeout_us = 60 * SECONDS;
  rl_lock *held = fake_lock(world, "held", &options);
  assert_error(fake_acquire(world, held), REDLOCK_OK);
  world->nodes[0].blocked = true;
  rl_lock *lock = fake_lock(world, KEY, &options);
  unsigned launched = 0;
  for (;;) {
    assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
    fake_turn(world);
    drain(world, 0);
    if (rl_lock_result(lock) != REDLOCK_PENDING) {
      break;
    }
    launched++;
    rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
    assert_true(launched <= RL_LINK_OUTSTANDING_ACQUIRE_MAX);
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0), "too many commands are waiting for the node");
  assert_int_equal(world->core.nodes[0]->link.outstanding_count, RL_LINK_OUTSTANDING_ACQUIRE_MAX);
  assert_error(rl_lock_release(held, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(world->core.nodes[0]->link.outstanding_count,
                   RL_LINK_OUTSTANDING_ACQUIRE_MAX + 1);
  assert_int_equal(rl_lock_result(held), REDLOCK_PENDING);
}

/* When even a release finds no room, it goes out as soon as there is room again. */
TEST(release_without_room_is_sent_later) {
  fake_world *world = fake_world_new(1);
  world->core.pacer.in_flight_limit = UINT_MAX; /* Everything is sent at once. */
  redlock_options options = fake_once();
  options.node_timeout_us = 60 * SECONDS;
  options.ttl_us = 600 * SECONDS;
  rl_lock *lock = held(world, &options);
  world->nodes[0].blocked = true;
  while (world->core.nodes[0]->link.outstanding_count < RL_LINK_OUTSTANDING_MAX) {
    assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
    fake_turn(world);
    drain(world, 0);
    rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  }
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0), "too many commands are waiting for the node");
  assert_int_equal(world->core.releases->count, 1);
  rl_core_input(&world->core, 0, world->now_us, ":1", 2);
  assert_false(rl_core_wants_send(&world->core)); /* That is no reply yet. */
  rl_core_input(&world->core, 0, world->now_us, "\r\n", 2);
  assert_true(rl_core_wants_send(&world->core));
  fake_turn(world);
  assert_int_equal(world->core.releases->count, 0);
  assert_int_equal(world->core.nodes[0]->link.outstanding_count, RL_LINK_OUTSTANDING_MAX);
  rl_core_input(&world->core, 0, world->now_us, ":1\r\n", 4);
  assert_false(rl_core_wants_send(&world->core)); /* Nothing waits for room any more. */
}

/* As much waits to be sent as may. */
static void fill_output(fake_world *world) {
  rl_buffer *output = &world->core.nodes[0]->link.output;
  world->nodes[0].blocked = true;
  assert_non_null(rl_buffer_reserve(output, RL_LINK_OUTPUT_MAX, true));
  memset(output->data, 'x', RL_LINK_OUTPUT_MAX);
  output->tail = RL_LINK_OUTPUT_MAX;
}

TEST(forgotten_script_without_room_is_an_error) {
  for (unsigned releasing = 0; releasing <= 1; releasing++) {
    fake_world *world = fake_world_new(1);
    rl_lock *lock = fake_lock(world, KEY, NULL);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    world->core.nodes[0]->link.knows[RL_SCRIPT_EXTEND] = true;
    world->core.nodes[0]->link.knows[RL_SCRIPT_RELEASE] = true;
    assert_error(releasing ? rl_lock_release(lock, world->now_us, false)
                           : rl_lock_extend(lock, world->now_us, 0, false),
                 REDLOCK_OK);
    fake_turn(world);
    assert_false(fake_take(world, 0).by_text);
    fill_output(world);
    rl_core_input(&world->core, 0, world->now_us, "-NOSCRIPT x\r\n", 13);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_string_equal(rl_round_reason(lock, 0), "NOSCRIPT x");
    assert_int_equal(world->core.nodes[0]->link.outstanding_count, 0);
    rl_buffer_clear(&world->core.nodes[0]->link.output);
    world->nodes[0].blocked = false;
    if (releasing) { /* It is tried again, by its text. */
      fake_pass(world, 500 * MS);
      assert_true(fake_answer(world, 0).by_text);
      assert_int_equal(fake_keys(world, KEY), 0);
    } else {
      assert_true(rl_lock_remaining(lock, world->now_us) > 0);
    }
  }
}

/* Returns a new attempt whose SET went to the nodes |sent|. */
static rl_attempt *sent_to(fake_world *world, const rl_lock *lock, uint32_t sent, bool held_it) {
  rl_attempt *attempt = rl_attempt_new(&world->core.attempts, lock->resource, NULL,
                                       (const unsigned char *)"12345678901234567890", 0, NULL);
  assert_non_null(attempt);
  attempt->sent = sent;
  attempt->held = held_it;
  attempt->expired_us = world->now_us + 60 * SECONDS;
  return attempt;
}

/* Releases |count| leases between two turns, as a garbage collector does. Node 1 is up. */
static void free_many(fake_world *world, const rl_lock *lock, unsigned count, bool kept) {
  for (unsigned i = 0; i < count; i++) {
    rl_attempt *attempt = sent_to(world, lock, 2, true);
    attempt->keep_until_us = (kept ? world->now_us + 30 * SECONDS : 0) & RL_ATTEMPT_KEEP_MAX_US;
    rl_release_begin(&world->core, world->now_us, attempt, false);
    rl_attempt_unref(&world->core.attempts, attempt);
  }
}

TEST(releases_of_many_freed_locks_are_not_dropped) {
  for (unsigned kept = 0; kept <= 1; kept++) {
    fake_world *world = fake_world_new(2);
    free_many(world, held(world, NULL), 50000, kept == 1);
    assert_true(world->core.releases->count <= RL_RELEASE_GROW);
    assert_int_equal(world->core.attempts.live, 50000 + 1);
  }
}

/* The text failed, so that the node lacks the script at the commands behind it. */
TEST(release_behind_a_refused_text_is_sent_as_text) {
  fake_world *world = fake_world_new(2);
  free_many(world, held(world, NULL), 2, true);
  fake_turn(world);
  assert_true(fake_reply(world, 1, "-BUSY a script runs\r\n").by_text);
  assert_false(fake_reply(world, 1, "-NOSCRIPT No matching script.\r\n").by_text);
  assert_true(fake_take(world, 1).by_text);
}

/*
 * Gives up |count| attempts whose SET went to the nodes |sent|, which do not come back; the first
 * |leases| of them were leases. Returns the first.
 */
static const rl_attempt *give_up(fake_world *world, uint32_t sent, const rl_lock *lock,
                                 unsigned count, unsigned leases) {
  const rl_attempt *first = NULL;
  for (unsigned i = 0; i < world->count; i++) {
    if ((sent >> i & 1) != 0) {
      world->nodes[i].policy = FAKE_REFUSES;
      world->core.nodes[i]->link.phase = RL_LINK_DOWN;
      world->core.nodes[i]->connect_at_us = REDLOCK_NEVER;
    }
  }
  for (unsigned i = 0; i < count; i++) {
    rl_attempt *attempt = sent_to(world, lock, sent, i < leases);
    first = i == 0 ? attempt : first;
    rl_release_begin(&world->core, world->now_us, attempt, true);
    rl_attempt_unref(&world->core.attempts, attempt);
  }
  return first;
}

/*
 * Releases for nodes that do not come back are kept for as long as the key can live, and bounded.
 * Those of leases are forgotten last.
 */
TEST(pending_releases_are_bounded) {
  static const struct {
    unsigned count, leases, more_leases; /* the latter are given up in addition */
    size_t left;
    bool first_stays;
  } rows[] = {
      {RL_RELEASE_NODE_MAX + 10, 5, 0, RL_RELEASE_NODE_MAX + 10 - RL_RELEASE_FORGOTTEN, true},
      {RL_RELEASE_NODE_MAX + 1, RL_RELEASE_NODE_MAX + 1, 0,
       RL_RELEASE_NODE_MAX + 1 - RL_RELEASE_FORGOTTEN, false},
      {RL_RELEASE_NODE_MAX, RL_RELEASE_NODE_MAX - 1, 1, RL_RELEASE_NODE_MAX, true},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    fake_world *world = fake_world_new(2);
    rl_lock *lock = held(world, NULL);
    const rl_attempt *first = give_up(world, 2, lock, rows[i].count, rows[i].leases);
    (void)give_up(world, 2, lock, rows[i].more_leases, rows[i].more_leases);
    assert_int_equal(world->core.releases->count, rows[i].left);
    assert_int_equal(world->core.nodes[1]->due_count, rows[i].left);
    assert_int_equal(world->core.attempts.live, rows[i].left + 1);
    assert_int_equal(RL_LIST_FIRST(&world->core.releases->queue, rl_attempt, queue) == first,
                     rows[i].first_stays);
  }
}

/* Node 0 has too many; what is due on node 1 stays, be it of the same attempt. */
TEST(pending_release_is_dropped_on_one_node_only) {
  fake_world *world = fake_world_new(2);
  rl_lock *lock = held(world, NULL);
  unsigned both = RL_RELEASE_NODE_MAX + 1 - 20;
  const rl_attempt *first = give_up(world, 2, lock, 10, 0);
  (void)give_up(world, 1, lock, 20, 0);
  (void)give_up(world, 3, lock, both, 0);
  assert_int_equal(world->core.nodes[0]->due_count, RL_RELEASE_NODE_MAX + 1 - RL_RELEASE_FORGOTTEN);
  assert_int_equal(world->core.nodes[1]->due_count, 10 + both);
  assert_int_equal(world->core.releases->count, 10 + both);
  assert_ptr_equal(RL_LIST_FIRST(&world->core.releases->queue, rl_attempt, queue), first);
}

TEST(core_counts_operations_and_leases) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_false(rl_core_is_busy(&world->core));
  assert_int_equal(rl_core_leases_at_most(&world->core, world->now_us), 0);
  begin(world, lock);
  assert_true(rl_core_is_busy(&world->core));
  assert_int_equal(rl_core_leases_at_most(&world->core, world->now_us), 0);
  fake_settle(world);
  assert_false(rl_core_is_busy(&world->core));
  assert_int_equal(rl_core_leases_at_most(&world->core, world->now_us), 1);
  assert_int_equal(rl_core_leases_at_most(&world->core, lock->deadline_us - 1), 1);
  assert_int_equal(rl_core_leases_at_most(&world->core, lock->deadline_us), 0);
}

/* A peer that greets, as Redis does not, makes every reply look like that to the next command. */
TEST(greeting_peer_does_not_leak_the_password) {
  fake_world *world = fake_world_new(1);
  rl_address *address = &world->core.nodes[0]->address;
  address->has_password = 1;
  address->db = 2;
  (void)snprintf(address->password, sizeof address->password, "s3cr3t-pw");
  address->password_length = strlen(address->password);
  world->nodes[0].policy = FAKE_SILENT;
  rl_lock *lock = fake_lock(world, KEY, NULL);
  redlock_options options = fake_once();
  assert_error(rl_lock_acquire(lock, world->now_us, &options, false), REDLOCK_OK);
  fake_turn(world);
  fake_deliver(world, 0,
               "+OK\r\n-ERR unknown command `AUTH`, with args beginning with: `s3cr3t-pw`, \r\n");
  const rl_node *node = world->core.nodes[0];
  assert_int_equal(node->link.phase, RL_LINK_DOWN);
  assert_null(strstr(node->error, "s3cr3t"));
  assert_non_null(strstr(node->error, "unknown command"));
}

TEST(closing_core_reconnects_for_due_releases) {
  fake_world *world = fake_world_new(3);
  (void)held(world, NULL);
  fake_pass(world, 2 * SECONDS);
  rl_core_close(&world->core, world->now_us);
  for (unsigned i = 0; i < 3; i++) {
    /* The server had closed the idle connection: the release went nowhere. */
    rl_core_disconnected(&world->core, i, world->now_us, "the node closed the connection");
    world->nodes[i].connected = false;
    world->nodes[i].queued = 0;
  }
  assert_true(rl_core_awaits_replies(&world->core, world->now_us, SECONDS));
  fake_turn(world);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_false(rl_core_has_unanswered(&world->core));
}
