/*
 * A round with nodes that are down, late, connecting or read-only.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease_world.h"
#include "lock/rl_round.h"

TEST(acquire_sends_no_set_to_a_node_that_is_behind) {
  redlock_options once = fake_once();
  open_world_and_begin_single_attempt(3);
  assert_error(let_majority_answer(), REDLOCK_OK);
  rl_lock *second = fake_lock(world, "second", &once);
  world->now_us += 100 * MS; /* Exactly the node timeout is not behind yet. */
  fake_begin_acquire(world, second);
  assert_int_equal(world->nodes[2].sets, 2);
  let_nodes_0_and_1_answer();
  rl_lock *third = fake_lock(world, "third", &once);
  world->now_us += 1;
  fake_begin_acquire(world, third);
  assert_int_equal(world->nodes[2].sets, 2);
  assert_int_equal(third->votes[2].vote, REDLOCK_VOTE_UNKNOWN);
  assert_string_equal(rl_round_reason(third, 2), "no reply for 100 ms");
  let_nodes_0_and_1_answer();
  assert_error(rl_lock_result(third), REDLOCK_OK);
  assert_int_equal(third->lease->sent, 3); /* nodes 0 and 1 */
}

/* A driver needs a moment to read what has come: a short ttl must not make every node late. */
TEST(acquire_asks_a_node_that_is_5_ms_behind) {
  for (unsigned more = 0; more <= 1; more++) {
    redlock_options options = fake_once();
    options.ttl_us = 20 * MS; /* a node timeout of 2 ms */
    open_world_and_begin_acquire(1, &options);
    rl_lock *second = fake_lock(world, "second", &options);
    world->now_us += 5 * MS + more;
    fake_begin_acquire(world, second);
    assert_int_equal(world->nodes[0].sets, more ? 1 : 2);
  }
}

TEST(new_round_forgets_the_last) {
  open_world_with_lease(3, NULL);
  lock->deniers = lock->awaited = 7;
  lock->votes[1] =
      (rl_vote){.settled = true, .vote = REDLOCK_VOTE_TAKEN, .latency_us = 5, .key = 2};
  rl_round_clear(lock);
  assert_int_equal(lock->deniers, 0);
  assert_int_equal(lock->awaited, 0);
  assert_false(lock->votes[1].settled);
  assert_int_equal(lock->votes[1].vote, REDLOCK_VOTE_UNKNOWN);
  assert_int_equal(lock->votes[1].latency_us, RL_VOTE_NO_LATENCY);
  assert_int_equal(lock->votes[1].key, 0);
}

TEST(withdrawn_denial_names_no_key) {
  open_world_with_lease(3, NULL);
  rl_round_clear(lock);
  rl_round_settle(lock, 1, REDLOCK_VOTE_TAKEN, NULL);
  lock->votes[1].key = 2;
  rl_round_withdraw_denial(lock, 1, "a reason");
  assert_int_equal(lock->votes[1].key, 0);
  assert_int_equal(lock->votes[1].vote, REDLOCK_VOTE_ERROR);
  assert_int_equal(lock->quorum.denied, 0);
  assert_int_equal(lock->quorum.failed, 1);
}

TEST(refused_nodes_decide_at_once) {
  world = fake_world_new(5);
  for (unsigned i = 0; i < 3; i++) {
    world->nodes[i].policy = FAKE_REFUSES;
  }
  begin_single_attempt();
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0), "Connection refused");
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_ERROR);
}

TEST(connecting_counts_towards_the_budget_of_the_attempt) {
  world = fake_world_new(3);
  world->nodes[0].policy = FAKE_HANGS;
  world->nodes[1].policy = FAKE_SILENT;
  world->core.nodes[1]->address.tls = true;
  begin_single_attempt();
  fake_answer(world, 2);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0), "no connection within 100 ms");
  assert_string_equal(rl_round_reason(lock, 1),
                      "no connection over TLS within 100 ms; is this a TLS port?");
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_UNKNOWN);
}

TEST(slow_look_up_is_the_reason_of_a_missing_vote) {
  world = fake_world_new(3);
  world->nodes[0].policy = world->nodes[1].policy = world->nodes[2].policy = FAKE_HANGS;
  world->core.nodes[0]->address.tls = true;
  world->core.nodes[1]->address.sentinels.count = 3;
  begin_single_attempt();
  rl_core_looks_up(&world->core, 0, true);
  rl_core_looks_up(&world->core, 1, true);
  rl_core_looks_up(&world->core, 2, true);
  rl_core_looks_up(&world->core, 2, false);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0),
                      "the name server did not give an address within 100 ms");
  assert_string_equal(rl_round_reason(lock, 1),
                      "the Sentinels did not name a master within 100 ms");
  assert_string_equal(rl_round_reason(lock, 2), "no connection within 100 ms");
}

TEST(round_asks_a_node_that_comes_up_in_time) {
  world = fake_world_new(3);
  world->nodes[0].policy = FAKE_SILENT;
  world->nodes[1].policy = FAKE_REFUSES;
  begin_single_attempt();
  fake_answer(world, 2);
  assert_int_equal(fake_next(world, 0), FAKE_SETNAME);
  fake_pass(world, 60 * MS);
  fake_reply(world, 0, "+OK\r\n");
  assert_int_equal(fake_next(world, 0), FAKE_SET);
  fake_pass(world, 39 * MS);
  fake_answer(world, 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, FAKE_START_US + LEASE_US); /* not from when it came up */
}

/* It came up before the decision: its vote counts, and its key ends with the others. */
TEST(node_that_comes_up_in_the_round_gets_the_rest_of_the_ttl) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_SILENT;
  begin_single_attempt();
  fake_answer(world, 0);
  fake_pass(world, 60 * MS);
  fake_reply(world, 2, "+OK\r\n"); /* the handshake */
  fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(key_expiry(2), FAKE_START_US + 10 * SECONDS);
}

static void assert_joined(void) {
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), world->count);
  assert_int_equal(lock->votes[2].vote, REDLOCK_VOTE_GRANTED);
  assert_true(key_expiry(2) >= lock->deadline_us);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* Its vote has been counted as an error: what it would grant later counts for nothing. */
TEST(round_asks_a_refusing_node_once) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_HANGS;
  begin_single_attempt();
  fake_answer(world, 0);
  assert_int_equal(lock->awaited, 4);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_break(world, 2, "Connection refused");
  assert_int_equal(lock->votes[2].vote, REDLOCK_VOTE_ERROR);
  assert_string_equal(rl_round_reason(lock, 2), "Connection refused");
  fake_pass(world, 50 * MS); /* the first back-off */
  assert_int_equal(world->core.nodes[2]->link.phase, RL_LINK_UP);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[2].sets, 0);
  fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(lock->quorum.granted, 2);
  fake_settle(world); /* Now it joins. */
  assert_int_equal(lock->quorum.failed, 0);
  assert_string_equal(rl_round_reason(lock, 2), "");
  assert_joined();
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

TEST(release_waits_for_room_in_a_full_queue) {
  size_t length;
  open_world_and_begin_single_attempt(1);
  fake_settle(world);
  world->nodes[0].policy = FAKE_SILENT;
  fake_break(world, 0, "Connection reset by peer");
  owe_releases(0, RL_LINK_OUTPUT_MAX / REDLOCK_KEY_MAX, REDLOCK_KEY_MAX);
  fake_begin_release(world, lock);
  assert_int_equal(lock->awaited, 1);
  world->nodes[0].blocked = true;
  rl_core_input(&world->core, 0, world->now_us, FAKE_HANDSHAKE, strlen(FAKE_HANDSHAKE));
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0), "too many commands are waiting for the node");
  assert_true(world->core.releases->count > 0);
  (void)rl_core_output(&world->core, 0, &length);
  rl_core_output_sent(&world->core, 0, length);
  assert_false(rl_core_wants_send(&world->core));
  rl_core_input(&world->core, 0, world->now_us, ":1\r\n", 4); /* to the first of them */
  assert_true(rl_core_wants_send(&world->core));
  fake_turn(world);
  assert_int_equal(world->core.releases->count, 0);
  assert_int_equal(world->core.nodes[0]->link.outstanding_count,
                   RL_LINK_OUTPUT_MAX / REDLOCK_KEY_MAX);
}

TEST(acquire_uses_a_node_that_came_back) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_REFUSES;
  begin_single_attempt();
  assert_error(let_majority_answer(), REDLOCK_OK);
  assert_error(fake_release(world, lock), REDLOCK_OK);
  world->nodes[2].policy = FAKE_ACCEPTS;
  fake_pass(world, 50 * MS); /* the first back-off */
  assert_int_equal(world->nodes[2].connections, 1);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 3);
}

/* ------------------------------------------------------------------------- idle connections */

static void open_idle(redlock_duration keep_us) {
  world = fake_world_new(1);
  world->core.keep_us = keep_us;
  lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(world->nodes[0].connections, 1);
}

TEST(idle_connection_is_kept_where_sockets_have_no_keepalive) {
  open_idle(RL_LINK_IDLE_US);
  for (unsigned i = 0; i < 3; i++) {
    redlock_time due_us = world->now_us + 10 * SECONDS;
    assert_int_equal(rl_core_deadline(&world->core), due_us);
    world->nodes[0].policy = FAKE_SILENT; /* The test answers. */
    fake_pass(world, 10 * SECONDS - 1);
    assert_int_equal(world->nodes[0].queued, 0);
    fake_pass(world, 1);
    assert_int_equal(fake_next(world, 0), FAKE_SETNAME);
    (void)fake_reply(world, 0, i == 0 ? "+OK\r\n" : "-NOPERM x\r\n");
    assert_int_equal(world->nodes[0].queued, 0);
  }
  assert_int_equal(world->nodes[0].connections, 1);
}

/* A NAT has forgotten it: what is sent is lost, and nothing tells. */
TEST(idle_connection_that_is_silent_is_replaced_before_it_is_needed) {
  open_idle(RL_LINK_IDLE_US);
  world->nodes[0].policy = FAKE_SILENT;
  fake_pass(world, 10 * SECONDS);
  assert_int_equal(world->nodes[0].queued, 1);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_take(world, 0);
  fake_pass(world, 3 * SECONDS);
  assert_int_equal(world->nodes[0].connections, 2);
  assert_int_equal(world->core.nodes[0]->link.phase, RL_LINK_UP);
  lock = fake_lock(world, "other", NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

TEST(idle_connection_is_left_to_sockets_with_keepalive) {
  open_idle(0);
  world->nodes[0].policy = FAKE_SILENT;
  fake_pass(world, 60 * SECONDS);
  assert_int_equal(world->nodes[0].queued, 0);
}

/* Nodes 0 and 1 are one server. Node 2 does not answer the extend. */
TEST(extend_counts_two_nodes_of_one_server_once) {
  open_world_and_begin_single_attempt(3);
  fake_answer(world, 0);
  (void)fake_reply(world, 1, "$-1\r\n");
  fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  for (unsigned i = 0; i < 2; i++) {
    fake_begin_extend(world, lock, 0);
    if (i == 0) {
      assert_int_equal(fake_reply(world, 1, ":1\r\n").verb, FAKE_EXTEND);
    }
    fake_answer(world, 0);
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    assert_int_equal(lock->votes[1].vote, REDLOCK_VOTE_ERROR);
    assert_string_equal(
        rl_round_reason(lock, 1),
        "it is the same server as another node; each node must be a server of its own");
    fake_answer(world, 2);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(lock->lease->confirmed, 5);
  }
  fake_settle(world);
}

/* ------------------------------------------------------------------------ read-only replicas */

#define READONLY "-READONLY You can't write against a read only replica.\r\n"

/* Node 0 of three refuses to write; the others grant. */
static void held_beside_a_replica(const char *refusal) {
  begin_single_attempt();
  (void)fake_reply(world, 0, refusal);
  fake_answer(world, 1);
  fake_answer(world, 2);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* After a fail-over the name leads to another server, while this connection stays up. */
static void refusing_node_is_connected_anew(const char *refusal, const char *text) {
  world = fake_world_new(3);
  const rl_node *node = world->core.nodes[0];
  lock = fake_lock(world, "first", NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  fake_pass(world, 2 * SECONDS);
  unsigned before = world->nodes[0].connections;
  held_beside_a_replica(refusal);
  assert_int_equal(world->nodes[0].connections, before + 1); /* at once: it had lasted */
  assert_true(node->read_only);
  assert_string_equal(node->error, text);
  fake_settle(world);
  assert_int_equal(node->link.phase, RL_LINK_UP);
  lock = fake_lock(world, "third", NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_int_equal(lock->lease->confirmed & 1, 1);
  assert_false(node->read_only);
  assert_string_equal(node->error, "");
  assert_int_equal(world->nodes[0].connections, before + 1);
}

TEST(readonly_node_is_connected_anew) {
  refusing_node_is_connected_anew(READONLY,
                                  "READONLY You can't write against a read only replica.");
}

/* Its replicas may follow another master, to which its address already leads. */
TEST(master_without_replicas_is_connected_anew) {
  refusing_node_is_connected_anew("-NOREPLICAS Not enough good replicas to write.\r\n",
                                  "NOREPLICAS Not enough good replicas to write.");
}

/*
 * The node was promoted between the two commands. Its key of the second lock would otherwise be
 * forgotten.
 */
TEST(reply_that_follows_a_refusal_to_write_counts) {
  world = fake_world_new(3);
  rl_lock *held = fake_lock(world, "held", NULL);
  assert_error(fake_acquire(world, held), REDLOCK_OK);
  fake_pass(world, 2 * SECONDS);
  begin_single_attempt();
  rl_lock *second = fake_lock(world, "second", NULL);
  fake_begin_acquire(world, second);
  unsigned before = world->nodes[0].connections;
  assert_int_equal(fake_take(world, 0).verb, FAKE_SET);
  assert_int_equal(fake_take(world, 0).verb, FAKE_SET);
  fake_deliver(world, 0, READONLY "+OK\r\n");
  assert_int_equal(world->nodes[0].connections, before + 1);
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_ERROR);
  assert_int_equal(second->votes[0].vote, REDLOCK_VOTE_GRANTED);
  assert_string_equal(world->core.nodes[0]->error,
                      "READONLY You can't write against a read only replica.");
  fake_settle(world);
  assert_error(rl_lock_result(second), REDLOCK_OK);
  assert_int_equal(second->lease->confirmed, 7);
}

TEST(readonly_node_stays_down_until_it_has_written) {
  world = fake_world_new(3);
  const rl_node *node = world->core.nodes[0];
  held_beside_a_replica(
      "-ERR Error running script: @user_script: 1: -READONLY You can't write\r\n");
  fake_pass(world, 60 * MS);
  fake_settle(world);
  assert_int_equal(node->link.phase, RL_LINK_UP);
  assert_true(node->read_only); /* Reading is no proof. */
  rl_lock *inspected = fake_lock(world, "inspected", NULL);
  assert_error(fake_ask(world, inspected, RL_OPERATION_INSPECT), REDLOCK_OK);
  assert_true(node->read_only);
  assert_string_not_equal(node->error, "");
  world->nodes[0].policy = FAKE_REFUSES;
  fake_break(world, 0, "Connection reset by peer");
  assert_false(node->read_only); /* Now it is down for another reason. */
  assert_string_equal(node->error, "Connection refused");
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
}

TEST(permanent_replica_is_not_connected_again_and_again) {
  redlock_options once = fake_once();
  world = fake_world_new(3);
  lock = fake_lock(world, KEY, &once);
  for (unsigned i = 0; i < 1000; i++) { /* 10 s of a lock that is taken and released all the time */
    fake_begin_acquire(world, lock);
    while (world->nodes[0].queued > 0) {
      bool writes = fake_next(world, 0) == FAKE_SET || fake_next(world, 0) == FAKE_RELEASE;
      (void)fake_reply(world, 0, writes ? READONLY : "+OK\r\n");
    }
    fake_answer(world, 1);
    fake_answer(world, 2);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    fake_begin_release(world, lock);
    fake_answer(world, 1);
    fake_answer(world, 2);
    fake_pass(world, 10 * MS);
  }
  assert_true(world->nodes[0].connections >= 8);
  assert_true(world->nodes[0].connections <= 30);
}
