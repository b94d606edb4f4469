/*
 * Bootstrap, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_steps.h"

#include "guarded_world.h"

static int bootstrap(void) {
  return fake_ask(world, lock, RL_OPERATION_BOOTSTRAP);
}

TEST(bootstrapped_nodes_vote_at_once) {
  char message[512];
  open_world_of_new_nodes(3);
  assert_error(bootstrap(), REDLOCK_OK);
  assert_votes(lock, "ggg");
  assert_string_equal(rl_lock_message(lock, message, sizeof message), "");
  for (unsigned i = 0; i < 3; i++) {
    char *end;
    assert_int_equal(strtoull(strchr(world->nodes[i].store.record, ' '), &end, 10),
                     world->now_us - QUARANTINE);
    assert_memory_equal(end, " ready ", 7);
    assert_int_equal(world->nodes[i].sets + world->nodes[i].releases, 0);
  }
  assert_acquire(lock, REDLOCK_OK, "ggg");
}

TEST(bootstrap_takes_nodes_of_other_clients) {
  open_world_of_new_nodes(3);
  for (unsigned i = 0; i < 3; i++) {
    fake_store *store = &world->nodes[i].store;
    (void)snprintf(store->record, sizeof store->record, "run%u 1 ready nodes=5 and so on", i);
  }
  assert_error(fake_acquire(world, lock), REDLOCK_E_UNAVAILABLE);
  assert_error(bootstrap(), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

TEST(majority_replaces_token_and_other_votes_have_reasons) {
  open_world_of_new_nodes(3);
  world->nodes[1].policy = FAKE_REFUSES;
  assert_error(bootstrap(), REDLOCK_OK);
  assert_votes(lock, "geg");
  assert_string_equal(rl_round_reason(lock, 1), "Connection refused");
}

TEST(bootstrap_of_minority_fails) {
  char message[1024];
  open_world_of_new_nodes(3);
  world->nodes[0].policy = world->nodes[1].policy = FAKE_REFUSES;
  assert_error(bootstrap(), REDLOCK_E_UNAVAILABLE);
  assert_contains(rl_lock_message(lock, message, sizeof message),
                  "1 of 3 nodes may vote (2 needed): 10.0.0.1:6379: Connection");
}

TEST(twin_or_node_with_wrong_clock_does_not_vote) {
  open_world_of_new_nodes(5);
  (void)snprintf(world->nodes[4].store.run_id, sizeof world->nodes[4].store.run_id, "run0");
  world->nodes[3].store.ahead_us = 100 * SECONDS;
  (void)fake_acquire(world, lock); /* The clocks are known then. */
  assert_error(bootstrap(), REDLOCK_OK);
  assert_votes(lock, "gggqe");
  assert_string_equal(rl_round_reason(lock, 4), "it is the same server as 10.0.0.1:6379");
}

TEST(refusing_node_does_not_vote) {
  open_world_of_new_nodes(1);
  fake_begin_ask(world, lock, RL_OPERATION_BOOTSTRAP);
  fake_command command = fake_take(world, 0);
  if (strcmp(command.make, "ready") != 0) { /* The guard makes the record meanwhile. */
    fake_deliver(world, 0, "-MISCONF Errors writing to the AOF file\r\n");
    command = fake_take(world, 0);
  }
  assert_string_equal(command.make, "ready");
  fake_deliver(world, 0, "-READONLY You can't write against a read only replica.\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_votes(lock, "e");
  assert_contains(rl_round_reason(lock, 0), "READONLY");
}

TEST(bootstrap_needs_guard) {
  char message[512];
  world = fake_world_new(1);
  lock = new_lock(KEY);
  assert_error(rl_lock_ask(lock, world->now_us, RL_OPERATION_BOOTSTRAP, NULL, false),
               REDLOCK_E_INVALID);
  assert_contains(rl_lock_message(lock, message, sizeof message), "the client has no guard");
}

/* That the question is wrong, too, is reported only of an idle lock. */
static void assert_asked_nothing(int error) {
  static const rl_question wrong = {.token_length = 1, .flags = 64};
  for (rl_operation operation = RL_OPERATION_FIRST_ASKED; operation < RL_OPERATION_COUNT;
       operation++) {
    assert_error(rl_lock_ask(lock, world->now_us, operation, &wrong, false), error);
  }
}

TEST(busy_held_or_closed_lock_is_asked_nothing) {
  world = fake_world_new(3);
  lock = new_lock(KEY);
  fake_begin_acquire(world, lock);
  assert_asked_nothing(REDLOCK_E_BUSY);
  fake_settle(world);
  assert_asked_nothing(REDLOCK_E_HELD);
  assert_error(rl_lock_result(lock), REDLOCK_E_HELD);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_error(fake_ask(world, lock, RL_OPERATION_INSPECT), REDLOCK_OK);
  rl_core_close(&world->core, world->now_us);
  assert_asked_nothing(REDLOCK_E_CLOSED);
  assert_error(rl_lock_result(lock), REDLOCK_E_CLOSED);
}

TEST(broken_connection_is_no_vote) {
  open_world_of_new_nodes(1);
  fake_begin_ask(world, lock, RL_OPERATION_BOOTSTRAP);
  fake_break(world, 0, "Connection reset by peer");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_votes(lock, "u");
}

TEST(late_answer_reaches_guard) {
  char reply[FAKE_REPLY_MAX];
  open_world_of_new_nodes(1);
  (void)fake_acquire(world, lock); /* It is quarantined now. */
  fake_begin_ask(world, lock, RL_OPERATION_BOOTSTRAP);
  assert_string_equal(fake_execute(world, 0, reply).make, "ready");
  fake_pass(world, 1 * SECONDS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_deliver(world, 0, reply);
  assert_false(world->core.nodes[0]->link.guard->asked);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}
