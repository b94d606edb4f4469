/*
 * Bugs that were found, each by its symptom, so that they do not come back. Fake clock, scripted
 * nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"
#include "lock/rl_round.h"
#include "rl_test.h"

static const char KEY[] = "orders:42";

/* Returns a lock that all nodes have granted. |options| may be NULL. */
static rl_lock *held(fake_world *world, const redlock_options *options) {
  rl_lock *lock = fake_lock(world, KEY, options);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  return lock;
}

TEST(extend_keeps_drift_and_lock_delay_of_its_acquire) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  redlock_options options = fake_once();
  options.drift_factor = 0.2;
  options.lock_delay_us = 30 * SECONDS;
  assert_error(rl_lock_acquire(lock, world->now_us, &options, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 8 * SECONDS - 2 * MS);
  assert_error(rl_lock_extend(lock, world->now_us, 100 * SECONDS, false), REDLOCK_OK);
  fake_turn(world);
  fake_command command = fake_answer(world, 0);
  assert_int_equal(command.verb, FAKE_EXTEND);
  assert_int_equal(command.ttl_ms, 130000);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 80 * SECONDS - 2 * MS);
}

TEST(refusing_nodes_do_not_make_a_busy_loop) {
  fake_world *world = fake_world_new(1);
  world->nodes[0].policy = FAKE_REFUSES;
  rl_lock *lock = fake_lock(world, KEY, NULL);
  redlock_options options = fake_once();
  options.retry_count = 0;
  options.retry_delay_us = REDLOCK_DURATION_NONE;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  options.wait_us = SECONDS;
  assert_error(rl_lock_acquire(lock, world->now_us, &options, false), REDLOCK_OK);
  fake_turn(world);
  unsigned turns = 0;
  while (rl_lock_result(lock) == REDLOCK_PENDING) {
    redlock_time deadline_us = rl_core_deadline(&world->core);
    fake_pass(world, rl_time_sub(deadline_us, world->now_us));
    assert_true(++turns <= 1100);
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
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

/* The error makes the core send the script; the second reply comes before that. */
TEST(reply_that_precedes_its_command_is_no_vote) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = held(world, NULL);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  redlock_duration left_us = rl_lock_remaining(lock, world->now_us);
  assert_error(rl_lock_extend(lock, world->now_us, 100 * SECONDS, false), REDLOCK_OK);
  fake_turn(world);
  fake_command command = fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n:1\r\n");
  assert_false(command.by_text);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), left_us);
}

TEST(release_of_an_expired_lease_without_majority_is_expired) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = held(world, NULL);
  world->now_us += 9950 * MS; /* past the deadline, before the keys' end */
  fake_store_remove(&world->nodes[1].store, KEY);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
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

/*
 * The node begins to answer with |text|, byte by byte: silence would end its connection. Returns
 * what is left of it after that time.
 */
static const char *trickle(fake_world *world, const char *text, redlock_duration duration_us) {
  redlock_time end_us = world->now_us + duration_us;
  while (world->now_us + 2900 * MS < end_us) {
    char part[] = {*text++, '\0'};
    assert_int_not_equal(part[0], '\r');
    fake_pass(world, 2900 * MS);
    fake_deliver(world, 0, part);
  }
  fake_pass(world, end_us - world->now_us);
  return text;
}

/* The last command for the key was on its way for as long as the node was silent. */
TEST(late_extend_as_text_leaves_no_key) {
  fake_world *world = fake_world_new(1);
  redlock_options options = fake_once();
  options.ttl_us = 100 * SECONDS;
  options.node_timeout_us = 100 * SECONDS;
  rl_lock *lock = held(world, &options);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  assert_int_equal(fake_next(world, 0), FAKE_EXTEND);
  (void)fake_take(world, 0);
  fake_deliver(world, 0,
               trickle(world, "-NOSCRIPT No matching script. Please use EVAL.\r\n", 95 * SECONDS));
  (void)fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  fake_pass(world, 30 * SECONDS); /* past what the first extend could have made of it */
  assert_int_equal(fake_keys(world, KEY), 1);
  world->nodes[0].policy = FAKE_SILENT;
  fake_break(world, 0, "the node closed the connection");
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(extend_read_after_its_connection_broke_leaves_no_key) {
  fake_world *world = fake_world_new(1);
  redlock_options options = fake_once();
  char reply[FAKE_REPLY_MAX];
  options.ttl_us = 100 * SECONDS;
  rl_lock *lock = held(world, &options);
  fake_pass(world, 10 * SECONDS);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  (void)trickle(world, "-ERR it takes so long that nobody waits for the end", 85 * SECONDS);
  (void)fake_execute(world, 0, reply);
  world->nodes[0].policy = FAKE_SILENT;
  fake_break(world, 0, "the node closed the connection");
  fake_pass(world, 30 * SECONDS);
  assert_int_equal(fake_keys(world, KEY), 1);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_pass(world, 2 * SECONDS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(set_answered_with_garbage_leaves_no_key) {
  fake_world *world = fake_world_new(1);
  redlock_options options = fake_once();
  char reply[FAKE_REPLY_MAX];
  options.ttl_us = SECONDS;
  rl_lock *lock = fake_lock(world, KEY, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, 2500 * MS); /* past what a SET that is read at once could live */
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  (void)fake_execute(world, 0, reply);
  fake_deliver(world, 0, ":7\r\n");
  assert_int_equal(fake_keys(world, KEY), 1);
  fake_pass(world, 100 * MS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(release_does_not_wait_for_unsent_commands) {
  fake_world *world = fake_world_new(3);
  redlock_options options = fake_once();
  options.ttl_us = 10 * SECONDS;
  options.node_timeout_us = 60 * SECONDS;
  rl_lock *lock = held(world, &options);
  fake_pass(world, 11 * SECONDS);
  for (unsigned i = 1; i < 3; i++) {
    world->nodes[i].policy = FAKE_SILENT;
    fake_break(world, i, "the node closed the connection");
  }
  fake_pass(world, 500 * MS);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, SECONDS); /* The key has expired. */
  assert_error(rl_lock_result(lock), REDLOCK_PENDING);
  world->nodes[1].policy = FAKE_ACCEPTS;
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 1), "its key has expired");
}

TEST(taken_lock_is_reported_when_the_budget_expires) {
  fake_world *world = fake_world_new(3);
  char message[256];
  (void)held(world, NULL);
  redlock_options options = fake_once();
  options.retry_count = 0;
  options.retry_delay_us = 20 * MS;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  options.wait_us = 50 * MS;
  rl_lock *lock = fake_lock(world, KEY, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(lock->phase, RL_PHASE_DELAY);
  fake_pass(world, 20 * MS);
  assert_int_equal(lock->phase, RL_PHASE_ROUND);
  (void)fake_reply(world, 1, "$-1\r\n");
  fake_pass(world, 30 * MS); /* The others have not answered the second attempt. */
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_non_null(strstr(rl_lock_message(lock, message, sizeof message),
                         "was taken, and the last attempt was not answered in time"));
  assert_non_null(strstr(message, "no reply within 30 ms"));
}

TEST(a_refused_call_between_the_decision_and_a_late_answer_does_not_stop_the_heal) {
  fake_world *world = fake_world_new(3);
  rl_lock *lock = held(world, NULL);
  fake_store_remove(&world->nodes[2].store, KEY);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_HELD);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
}
