/*
 * Subscribers: the second connection to a node, for its notifications; SUB-1 to SUB-4.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait/rl_subscriber.h"

#include "waiting_world.h"

static bool arrives(fake_world *world, unsigned node) {
  const char *reason;
  return rl_subscriber_state(&world->core, node, &reason);
}

static void assert_reason(fake_world *world, unsigned node, const char *part) {
  const char *reason;
  assert_false(rl_subscriber_state(&world->core, node, &reason));
  assert_non_null(reason);
  assert_contains(reason, part);
}

static fake_node *subscriber_of(fake_world *world, unsigned node) {
  return &world->nodes[world->count + node];
}

/* A lock waits on one node. The test answers for its subscriber. */
static fake_world *by_hand(void) {
  fake_world *world = fake_world_new_notifying(1);
  subscriber_of(world, 0)->policy = FAKE_SILENT;
  let_other_take(world, 1, REDLOCK_NEVER);
  redlock_options options = patient_options();
  options.wait_us = 600 * SECONDS;
  (void)begin_acquire_of(world, KEY, &options);
  return world;
}

/* The subscriber's handshake is answered up to its last command, which is returned. */
static fake_command shake_hands(fake_world *world) {
  assert_int_equal(fake_next(world, 1), FAKE_SETNAME);
  (void)fake_reply(world, 1, "+OK\r\n");
  assert_int_equal(fake_next(world, 1), FAKE_SUBSCRIBE);
  return fake_take(world, 1);
}

/* ---------------------------------------------------------------------------------------- SUB-1 */

TEST(first_waiter_creates_the_subscribers) {
  fake_world *world = fake_world_new_notifying(3);
  redlock_options options = patient_options();
  rl_lock *lock = begin_acquire_of(world, "free", &options);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(rl_core_connection_count(&world->core), 3);
  assert_false(arrives(world, 0));
  let_other_take(world, 7, REDLOCK_NEVER);
  (void)begin_waiter(world);
  assert_int_equal(rl_core_connection_count(&world->core), 6);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(subscriber_of(world, i)->connections, 1);
    assert_true(arrives(world, i));
    assert_string_equal(world->nodes[i].store.subscribers[0],
                        world->core.notify->channel + strlen(RL_COMMAND_CHANNEL));
  }
}

TEST(subscriber_logs_in_like_its_node) {
  static fake_world world;
  rl_address address;
  redlock_settings settings = {0};
  redlock_node node = {.address = "10.0.0.1", .username = "u", .password = "secret", .db = 3};
  memset(&world, 0, sizeof world);
  world.now_us = FAKE_START_US;
  world.count = 1;
  assert_error(rl_core_init(&world.core, NULL, 0), REDLOCK_OK);
  assert_error(rl_notify_open(&world.core), REDLOCK_OK);
  assert_error(rl_address_read(&address, &node, &settings, NULL, 0), REDLOCK_OK);
  assert_error(rl_core_add(&world.core, &address), REDLOCK_OK);
  subscriber_of(&world, 0)->policy = FAKE_SILENT;
  let_other_take(&world, 1, REDLOCK_NEVER);
  (void)begin_waiter(&world);
  assert_string_equal(fake_reply(&world, 1, "+OK\r\n").line, "AUTH u secret");
  assert_string_equal(fake_reply(&world, 1, "+OK\r\n").line, "SELECT 3");
  assert_string_equal(fake_reply(&world, 1, "+OK\r\n").line, "CLIENT SETNAME redlock");
  assert_int_equal(fake_next(&world, 1), FAKE_SUBSCRIBE);
  fake_world_close(&world);
}

/* Adds a node to a client without a driver. */
static void add_node(rl_core *core) {
  char name[32];
  rl_address address;
  redlock_settings settings = {0};
  (void)snprintf(name, sizeof name, "10.0.0.%u", 1 + core->node_count);
  redlock_node node = {.address = name};
  assert_error(rl_address_read(&address, &node, &settings, NULL, 0), REDLOCK_OK);
  assert_error(rl_core_add(core, &address), REDLOCK_OK);
}

/* A client of more nodes has no subscribers, so a release that may not notify refuses none. */
TEST(client_of_17_nodes_refuses_no_subscriber) {
  rl_core core;
  assert_error(rl_core_init(&core, NULL, 0), REDLOCK_OK);
  assert_error(rl_notify_open(&core), REDLOCK_OK);
  while (core.node_count < RL_NOTIFY_NODES_MAX) {
    add_node(&core);
  }
  (void)rl_subscriber_mute(&core, core.nodes[15], FAKE_START_US);
  assert_int_equal(core.notify->refused, 1u << 15);
  core.notify->refused = 0;
  while (core.node_count < REDLOCK_NODES_MAX) {
    add_node(&core);
    (void)rl_subscriber_mute(&core, core.nodes[15], FAKE_START_US);
    (void)rl_subscriber_mute(&core, core.nodes[core.node_count - 1], FAKE_START_US);
    assert_int_equal(core.notify->refused, 0);
  }
  rl_core_free(&core);
}

TEST(forbidden_subscription_is_retried_after_a_minute) {
  fake_world *world = by_hand();
  (void)shake_hands(world);
  fake_deliver(world, 1, "-NOPERM this user has no permissions to access a channel\r\n");
  assert_reason(world, 0, "NOPERM");
  assert_int_equal(subscriber_of(world, 0)->connected, false);
  pass(world, 59 * SECONDS);
  assert_int_equal(subscriber_of(world, 0)->connections, 1);
  subscriber_of(world, 0)->policy = FAKE_ACCEPTS;
  pass(world, 2 * SECONDS);
  assert_int_equal(subscriber_of(world, 0)->connections, 2);
  assert_true(arrives(world, 0));
}

TEST(forbidden_subscription_is_retried_when_the_node_reconnects) {
  fake_world *world = by_hand();
  (void)shake_hands(world);
  fake_deliver(world, 1, "-NOPERM this user has no permissions to access a channel\r\n");
  subscriber_of(world, 0)->policy = FAKE_ACCEPTS;
  fake_break(world, 0, "Connection reset by peer");
  pass(world, 2 * SECONDS);
  assert_true(arrives(world, 0));
}

TEST(malformed_reply_closes_the_subscriber) {
  static const char *const answers[] = {"+OK\r\n",
                                        ":1\r\n",
                                        "*0\r\n",
                                        "*1\r\n:1\r\n",
                                        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:1\r\n",
                                        "-ERR unknown command 'SUBSCRIBE'\r\n",
                                        "nonsense\r\n"};
  for (unsigned i = 0; i < COUNT_OF(answers); i++) {
    fake_world *world = by_hand();
    (void)shake_hands(world);
    fake_deliver(world, 1, answers[i]);
    assert_false(arrives(world, 0));
    assert_false(subscriber_of(world, 0)->connected);
    pass(world, 5 * DELAY); /* The node itself goes on. */
    assert_int_equal(world->nodes[0].connections, 1);
    assert_int_equal(world->nodes[0].sets, 6);
  }
}

/* ---------------------------------------------------------------------------------------- SUB-2 */

TEST(notifications_count_only_after_the_probe) {
  fake_world *world = by_hand();
  (void)shake_hands(world);
  char reply[128];
  (void)snprintf(reply, sizeof reply, "*3\r\n$9\r\nsubscribe\r\n$29\r\n%s\r\n:1\r\n",
                 world->core.notify->channel);
  fake_deliver(world, 1, reply);
  assert_int_equal(fake_next(world, 0), FAKE_PUBLISH);
  assert_false(arrives(world, 0));
  (void)fake_reply(world, 0, ":1\r\n");
  assert_true(arrives(world, 0));
  assert_int_equal(fake_next(world, 0), FAKE_ENQUEUE);
}

/* The node accepts the subscription, and has received the probe. */
static void subscribe(fake_world *world) {
  (void)shake_hands(world);
  fake_deliver(world, 1, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n");
  assert_int_equal(fake_next(world, 0), FAKE_PUBLISH);
}

static void subscribe_and_probe(fake_world *world, const char *answer) {
  subscribe(world);
  (void)fake_reply(world, 0, answer);
}

/* Its connection may have been cut a moment before, unnoticed. */
TEST(subscriber_without_the_probe_reconnects_once) {
  fake_world *world = by_hand();
  subscribe_and_probe(world, ":0\r\n");
  fake_settle(world);
  assert_reason(world, 0, "do not arrive");
  assert_false(subscriber_of(world, 0)->connected);
  pass(world, 200 * MS);
  assert_int_equal(subscriber_of(world, 0)->connections, 2);
  subscribe_and_probe(world, ":1\r\n");
  assert_true(arrives(world, 0));
  fake_settle(world);
  assert_true(subscriber_of(world, 0)->connected);
  /* That is forgotten: the next time there is another chance, too. */
  fake_break(world, 1, "Connection reset by peer");
  pass(world, 200 * MS);
  subscribe_and_probe(world, ":0\r\n");
  pass(world, 500 * MS);
  assert_int_equal(subscriber_of(world, 0)->connections, 4);
}

TEST(two_undelivered_probes_turn_notifications_off) {
  fake_world *world = by_hand();
  subscribe_and_probe(world, ":0\r\n");
  pass(world, 200 * MS);
  subscribe_and_probe(world, ":0\r\n");
  assert_reason(world, 0, "do not arrive");
  assert_int_equal(world->nodes[0].enqueues, 0);
  pass(world, 58 * SECONDS);
  assert_int_equal(subscriber_of(world, 0)->connections, 2);
  assert_false(subscriber_of(world, 0)->connected);
  pass(world, 4 * SECONDS);
  assert_int_equal(subscriber_of(world, 0)->connections, 3);
}

TEST(later_refusal_does_not_postpone_other_nodes) {
  fake_world *world = fake_world_new_notifying(2);
  let_other_take(world, 3, REDLOCK_NEVER);
  redlock_options options = patient_options();
  options.wait_us = 600 * SECONDS;
  (void)begin_acquire_of(world, KEY, &options);
  refuse_notifications(world, 0);
  fake_settle(world);
  pass(world, 40 * SECONDS);
  refuse_notifications(world, 1);
  fake_settle(world);
  pass(world, 25 * SECONDS);
  assert_true(arrives(world, 0));
  assert_false(arrives(world, 1));
  pass(world, 40 * SECONDS);
  assert_true(arrives(world, 1));
}

TEST(refused_probe_turns_notifications_off) {
  static const struct {
    const char *answer, *reason;
  } rows[] = {{"+OK\r\n", "do not arrive"},
              {"$-1\r\n", "do not arrive"},
              {"-NOPERM no channel\r\n", "NOPERM"},
              {"-ERR unknown command\r\n", "unknown command"}};
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    fake_world *world = by_hand();
    subscribe_and_probe(world, rows[i].answer);
    assert_reason(world, 0, rows[i].reason);
    fake_settle(world);
    assert_int_equal(world->nodes[0].enqueues, 0);
    assert_false(subscriber_of(world, 0)->connected);
    pass(world, 58 * SECONDS);
    assert_int_equal(subscriber_of(world, 0)->connections, 1);
    pass(world, 4 * SECONDS);
    assert_int_equal(subscriber_of(world, 0)->connections, 2);
  }
}

TEST(subscriber_that_ends_before_the_probe_is_not_ready) {
  fake_world *world = by_hand();
  subscribe(world);
  fake_break(world, 1, "Connection reset by peer");
  (void)fake_reply(world, 0, ":1\r\n");
  assert_false(arrives(world, 0));
}

TEST(node_that_comes_back_is_probed_again) {
  fake_world *world = world_with_taken_key(3);
  (void)begin_waiter(world);
  fake_break(world, 1, "Connection reset by peer");
  assert_false(arrives(world, 1));
  pass(world, 200 * MS);
  assert_true(arrives(world, 1));
  assert_true(arrives(world, 0));
}

TEST(subscriber_reconnects) {
  const char *reason;
  fake_world *world = world_with_taken_key(3);
  (void)begin_waiter(world);
  fake_break(world, 3 + 1, "Connection reset by peer");
  assert_reason(world, 1, "reset by peer");
  pass(world, 200 * MS);
  assert_true(rl_subscriber_state(&world->core, 1, &reason));
  assert_null(reason);
  assert_int_equal(world->nodes[1].connections, 1);
  assert_int_equal(subscriber_of(world, 1)->connections, 2);
}

/* ---------------------------------------------------------------------------------------- SUB-4 */

TEST(silent_subscriber_gets_a_ping_while_a_lock_waits) {
  fake_world *world = world_with_taken_key(1);
  subscriber_of(world, 0)->policy = FAKE_SILENT;
  (void)begin_waiter(world);
  pass(world, 3 * SECONDS - 1);
  assert_int_equal(fake_next(world, 1), FAKE_OTHER);
  world->now_us += 1;
  fake_turn(world);
  assert_int_equal(fake_next(world, 1), FAKE_PING);
  (void)fake_reply(world, 1, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
  assert_true(arrives(world, 0));
  for (unsigned i = 0; i < 300; i++) {
    fake_pass(world, 10 * MS);
    if (world->nodes[0].queued > 0) {
      (void)fake_answer(world, 0);
    }
  }
  assert_int_equal(fake_next(world, 1), FAKE_PING);
}

TEST(subscriber_without_pong_reconnects) {
  fake_world *world = world_with_taken_key(1);
  subscriber_of(world, 0)->blocked = true; /* A NAT has forgotten it. */
  (void)begin_waiter(world);
  assert_true(arrives(world, 0));
  pass(world, 3 * SECONDS + 10 * MS);
  assert_true(arrives(world, 0));
  pass_until(world, FAKE_START_US + 6 * SECONDS - 1);
  assert_true(arrives(world, 0));
  pass(world, 1);
  assert_reason(world, 0, "does not answer any more");
  subscriber_of(world, 0)->blocked = false;
  pass(world, 3 * SECONDS);
  assert_true(arrives(world, 0));
  assert_int_equal(subscriber_of(world, 0)->connections, 2);
  assert_int_equal(world->nodes[0].connections, 1);
}

TEST(message_ends_the_silence) {
  fake_world *world = world_with_taken_key(1);
  subscriber_of(world, 0)->policy = FAKE_SILENT;
  (void)begin_waiter(world);
  for (unsigned i = 0; i < 10; i++) {
    pass(world, 2 * SECONDS);
    deliver_message(world, 0, "");
  }
  assert_int_equal(fake_next(world, 1), FAKE_OTHER);
}

TEST(subscriber_may_be_silent_without_waiters) {
  fake_world *world = world_with_subscribers(1);
  subscriber_of(world, 0)->policy = FAKE_SILENT;
  pass(world, 59 * SECONDS);
  assert_int_equal(fake_next(world, 1), FAKE_OTHER);
  assert_true(arrives(world, 0));
}

TEST(unexpected_pong_closes_the_subscriber) {
  static const char *const bytes[] = {"*2\r\n$4\r\npong\r\n$0\r\n\r\n", "+OK\r\n",
                                      "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:2\r\n",
                                      "-ERR whatever\r\n", "\r\n\r\n"};
  for (unsigned i = 0; i < COUNT_OF(bytes); i++) {
    fake_world *world = world_with_subscribers(1);
    fake_deliver(world, 1, bytes[i]);
    assert_false(arrives(world, 0));
    assert_int_equal(world->nodes[0].connections, 1);
  }
}

/* ------------------------------------------------------------------------------ their end */

TEST(subscribers_close_after_a_minute_without_waiters) {
  const char *reason;
  fake_world *world = world_with_subscribers(3);
  pass_until(world, FAKE_START_US + 60 * SECONDS - 1);
  assert_true(subscriber_of(world, 0)->connected);
  pass(world, 1);
  for (unsigned i = 0; i < 3; i++) {
    assert_false(subscriber_of(world, i)->connected);
    assert_false(rl_subscriber_state(&world->core, i, &reason));
    assert_null(reason); /* Nothing is wrong. */
  }
  assert_true(rl_core_deadline(&world->core) == REDLOCK_NEVER);
  let_other_take(world, 7, REDLOCK_NEVER);
  (void)begin_waiter(world);
  pass(world, DELAY);
  for (unsigned i = 0; i < 3; i++) {
    assert_true(arrives(world, i));
  }
}

TEST(idle_minute_begins_after_the_last_waiter) {
  fake_world *world = world_with_taken_key(1);
  redlock_options options = patient_options();
  options.wait_us = 600 * SECONDS;
  rl_lock *lock = begin_acquire_of(world, KEY, &options);
  pass(world, 70 * SECONDS);
  assert_int_equal(subscriber_of(world, 0)->connections, 1);
  let_other_release_everywhere(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  pass(world, 59 * SECONDS);
  assert_true(arrives(world, 0));
  pass(world, 2 * SECONDS);
  assert_false(arrives(world, 0));
}

TEST(probe_without_room_is_repeated) {
  static const char subscribed[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
  fake_world *world = by_hand();
  rl_link *link = &world->core.nodes[0]->link;
  (void)shake_hands(world);
  uint32_t outstanding = link->outstanding_count;
  link->outstanding_count = RL_LINK_OUTSTANDING_MAX;
  rl_core_input(&world->core, 1, world->now_us, subscribed, sizeof subscribed - 1);
  rl_core_send(&world->core, world->now_us, NULL, 0);
  link->outstanding_count = outstanding;
  fake_settle(world);
  assert_false(subscriber_of(world, 0)->connected);
  pass(world, 200 * MS);
  assert_int_equal(subscriber_of(world, 0)->connections, 2);
  subscribe_and_probe(world, ":1\r\n");
  assert_true(arrives(world, 0));
}

TEST(closed_client_has_no_subscribers) {
  fake_world *world = world_with_taken_key(3);
  (void)begin_waiter(world);
  rl_core_close(&world->core, world->now_us);
  fake_settle(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_false(subscriber_of(world, i)->connected);
  }
}

TEST(subscriber_backs_off) {
  unsigned tries = 0;
  fake_world *world = fake_world_new_notifying(1);
  subscriber_of(world, 0)->policy = FAKE_REFUSES;
  let_other_take(world, 1, REDLOCK_NEVER);
  (void)begin_waiter(world);
  redlock_time tried_us = 0;
  while (world->now_us < FAKE_START_US + 30 * SECONDS) {
    pass(world, MS);
    redlock_time at_us = rl_core_peer(&world->core, 1)->tried_us;
    tries += at_us != tried_us;
    tried_us = at_us;
  }
  assert_in_range(tries, 25, 70);
  assert_reason(world, 0, "refused");
  assert_int_equal(world->nodes[0].connections, 1);
}

TEST(subscriber_reads_bytes_in_any_pieces) {
  fake_world *world = world_with_taken_key(3);
  rl_lock *lock = begin_waiter(world);
  pass(world, 60 * MS);
  for (unsigned i = 0; i < 2; i++) {
    char message[200];
    int length = snprintf(
        message, sizeof message, "*3\r\n$7\r\nmessage\r\n$29\r\n%s\r\n$%zu\r\n%08x%s\r\n",
        world->core.notify->channel, 8 + sizeof KEY - 1, (unsigned)lock->waitlist->ticket->id, KEY);
    for (int at = 0; at < length; at++) {
      rl_core_input(&world->core, 3 + i, world->now_us, message + at, 1);
    }
  }
  fake_turn(world);
  assert_int_equal(world->nodes[0].sets, 2);
}
