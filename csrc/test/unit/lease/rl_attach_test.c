/*
 * Handing a lease over, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "lease/rl_attach.h"
#include "lease/rl_release.h"
#include "lifecycle/rl_detach.h"
#include "lock/rl_round.h"

#include "lease_world.h"

static rl_handover handover;                  /* of the lease that was detached */
static char handed[REDLOCK_TOKEN_LENGTH + 1]; /* its token */
static unsigned char *bytes;                  /* of |handover| */

static void detach(void) {
  char text[REDLOCK_HANDOVER_MAX];
  memcpy(handed, rl_attempt_token(lock->lease), sizeof handed);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_OK);
  size_t length = rl_handover_length(&handover);
  rl_handover_write(&handover, text);
  rl_lock_detach(lock);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  free(bytes);
  assert_error(rl_handover_read(&handover, text, length), REDLOCK_OK);
  bytes = handover.bytes;
}

static void hold_and_detach(unsigned count, const redlock_options *options) {
  open_world_with_lease(count, options);
  detach();
}

/* Another process: another lock object for what was handed over. Its commands are out. */
static rl_lock *begin_attach(void) {
  redlock_options options = {.ttl_us = handover.ttl_us, .lock_delay_us = handover.lock_delay_us};
  rl_lock *other = fake_lock(world, KEY, &options);
  assert_error(rl_attach_set(other, &handover), REDLOCK_OK);
  fake_begin_acquire(world, other);
  return other;
}

static int attach(rl_lock **other) {
  *other = begin_attach();
  fake_settle(world);
  return rl_lock_result(*other);
}

/* Only the script of a guard answers this. */
TEST(quoted_handed_token_is_masked) {
  char reply[128];
  hold_and_detach(1, NULL);
  rl_lock *attached = begin_attach();
  (void)snprintf(reply, sizeof reply, "-ERR bad argument '%s'\r\n", handed);
  (void)fake_reply(world, 0, reply);
  assert_string_equal(rl_round_reason(attached, 0),
                      "ERR bad argument '****************************************'");
}

TEST(detached_lease_is_not_held_and_not_released) {
  hold_and_detach(3, NULL);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_E_NOT_HELD);
  rl_lock_free(lock, world->now_us);
  rl_core_close(&world->core, world->now_us);
  fake_settle(world);
  fake_pass(world, SECONDS);
  assert_int_equal(fake_holders(world, KEY, handed), 3);
  assert_int_equal(world->core.attempts.live, 0);
}

TEST(second_attach_finds_no_lease) {
  rl_lock *first, *second;
  hold_and_detach(5, NULL);
  assert_error(attach(&first), REDLOCK_OK);
  assert_error(attach(&second), REDLOCK_E_LOST);
  assert_int_equal(rl_lock_remaining(second, world->now_us), 0);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(first->lease)), 5);
  /* Also when the first client has released it, and when another client holds it. */
  assert_error(rl_lock_release(first, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(attach(&second), REDLOCK_E_LOST);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(fake_acquire(world, first), REDLOCK_OK);
  assert_error(attach(&second), REDLOCK_E_LOST);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(first->lease)), 5);
}

TEST(denied_attach_names_the_nodes) {
  rl_lock *first, *second;
  hold_and_detach(3, NULL);
  assert_error(attach(&first), REDLOCK_OK);
  assert_error(attach(&second), REDLOCK_E_LOST);
  assert_message(second, "is lost: 2 of 3 nodes no longer have its token: "
                         "10.0.0.1:6379, 10.0.0.2:6379");
}

/* Its script writes nothing then, so a replica answers the same. */
TEST(denied_attach_does_not_prove_that_a_replica_writes) {
  rl_lock *first, *second;
  hold_and_detach(3, NULL);
  assert_error(attach(&first), REDLOCK_OK);
  world->core.nodes[0]->read_only = true;
  assert_error(attach(&second), REDLOCK_E_LOST);
  assert_true(world->core.nodes[0]->read_only);
}

/* Two at once, the commands of the one before those of the other in every combination of nodes. */
TEST(two_clients_that_attach_are_not_both_granted) {
  unsigned granted[3] = {0, 0, 0};
  for (unsigned order = 0; order < 32 * 4; order++) {
    rl_lock *locks[2];
    unsigned winners = 0;
    hold_and_detach(5, NULL);
    locks[0] = begin_attach();
    locks[1] = begin_attach();
    for (unsigned i = 0; i < 5; i++) {
      if (i < order / 32) { /* nodes that are gone */
        world->nodes[i].policy = FAKE_HANGS;
        fake_break(world, i, "it was cut");
        continue;
      }
      if ((order >> i & 1) !=
          0) { /* The second one's command is executed before the first one's. */
        fake_node *node = &world->nodes[i];
        fake_command swap = node->queue[0];
        char reply[2][FAKE_REPLY_MAX];
        fake_store_execute(&node->store, world->now_us, &node->queue[1], reply[1]);
        fake_store_execute(&node->store, world->now_us, &swap, reply[0]);
        (void)fake_reply(world, i, reply[0]);
        (void)fake_reply(world, i, reply[1]);
      } else {
        (void)fake_answer(world, i);
        (void)fake_answer(world, i);
      }
    }
    fake_pass(world, 200 * MS);
    for (unsigned i = 0; i < 2; i++) {
      if (rl_lock_result(locks[i]) == REDLOCK_OK) {
        winners++;
        assert_true(fake_holders(world, KEY, rl_attempt_token(locks[i]->lease)) >= 3);
      }
    }
    assert_true(winners <= 1);
    granted[winners]++;
    fake_settle(world);
    assert_true(fake_world_end(world));
  }
  assert_true(granted[0] > 0 && granted[1] > 0);
}

TEST(expired_lease_is_not_attached) {
  rl_lock *other;
  hold_and_detach(3, NULL);
  world->now_us += 10 * SECONDS;
  assert_error(attach(&other), REDLOCK_E_LOST);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* ATT-6. The keys live on for lock_delay; the lease has ended. */
TEST(lock_delay_belongs_to_no_lease) {
  redlock_options options = {.lock_delay_us = 20 * SECONDS};
  for (unsigned over = 0; over <= 1; over++) {
    rl_lock *other;
    hold_and_detach(3, &options);
    world->now_us += over ? 10 * SECONDS : 9 * SECONDS;
    assert_error(attach(&other), over ? REDLOCK_E_LOST : REDLOCK_OK);
    assert_int_equal(fake_keys(world, KEY), 3);
  }
}

TEST(forged_token_attaches_nothing) {
  rl_lock *other;
  hold_and_detach(3, NULL);
  handover.token = (const unsigned char *)OTHER;
  assert_error(attach(&other), REDLOCK_E_LOST);
  assert_int_equal(fake_holders(world, KEY, handed), 3);
}

/* ATT-5. The token of a minority is released. */
TEST(attach_by_minority_releases_fresh_token) {
  rl_lock *other, *third;
  hold_and_detach(5, NULL);
  for (unsigned i = 2; i < 5; i++) {
    world->nodes[i].policy = FAKE_REFUSES;
    fake_break(world, i, "it was cut");
  }
  assert_error(attach(&other), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, handed), 3);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_int_equal(rl_lock_remaining(other, world->now_us), 0);
  /* A majority that comes back still has the handed token: it can be attached after all. */
  for (unsigned i = 2; i < 5; i++) {
    world->nodes[i].policy = FAKE_ACCEPTS;
  }
  fake_pass(world, 3 * SECONDS);
  assert_error(attach(&third), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(third->lease)), 3);
}

/* Of three nodes the last has not answered yet. */
static void detach_from_two(void) {
  open_world_and_begin_acquire(3, NULL);
  assert_error(let_majority_answer(), REDLOCK_OK);
  detach();
}

/* ATT-2. A node that may yet execute a SET of the token has no vote. */
TEST(suspect_node_has_no_vote) {
  rl_lock *other;
  detach_from_two();
  assert_int_equal(handover.may_set, 4);
  /* The keys of node 0 are lost; then the SET is executed on node 2: a majority has the token. */
  fake_store_remove(&world->nodes[0].store, KEY);
  (void)fake_answer(world, 2);
  assert_int_equal(fake_holders(world, KEY, handed), 2);
  assert_error(attach(&other), REDLOCK_E_LOST);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0); /* Replaced there, and given up. */
}

/* ATT-8. It was behind, and so it was not asked to replace the token that it sets later. */
TEST(handed_token_is_released_on_node_that_was_behind) {
  detach_from_two();
  fake_pass(world, 150 * MS);
  rl_lock *other = begin_attach();
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(other), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, handed), 0);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(other->lease)),
                   3); /* It has joined. */
  assert_error(rl_lock_release(other, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* ATT-8. Where too much waits for a node, what was never a lease is forgotten first. */
TEST(handed_token_is_forgotten_after_failed_attempts) {
  detach_from_two();
  world->nodes[2].policy = FAKE_HANGS;
  fake_break(world, 2, "it was cut");
  rl_lock *other = begin_attach();
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(other), REDLOCK_OK);
  assert_int_equal(world->core.nodes[2]->due_count, 1);
  for (unsigned i = 0; i < RL_RELEASE_NODE_MAX; i++) {
    rl_attempt *attempt = rl_attempt_new(&world->core.attempts, lock->resource, NULL,
                                         (const unsigned char *)"12345678901234567890", 0, NULL);
    assert_non_null(attempt);
    attempt->sent = 4;
    attempt->expired_us = world->now_us + SECONDS;
    rl_release_begin(&world->core, world->now_us, attempt, true);
    rl_attempt_unref(&world->core.attempts, attempt);
  }
  assert_true(world->core.nodes[2]->due_count < RL_RELEASE_NODE_MAX);
  assert_string_equal(
      rl_attempt_token(RL_LIST_FIRST(&world->core.releases->queue, rl_attempt, queue)), handed);
}

TEST(only_lasting_lease_is_detached) {
  world = fake_world_new(3);
  lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_E_BUSY);
  fake_settle(world);
  let_other_client_hold(2, REDLOCK_NEVER);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_E_LOST);
  rl_core_close(&world->core, world->now_us);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_E_CLOSED);
}

TEST(detach_after_fire_and_forget_release_is_not_held) {
  world = fake_world_new(3);
  lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_E_NOT_HELD);
  fake_settle(world);
  assert_error(rl_lock_describe_lease(lock, world->now_us, &handover), REDLOCK_E_NOT_HELD);
}

TEST(unused_attach_leaves_nothing) {
  for (unsigned way = 0; way < 3; way++) {
    rl_lock *other;
    hold_and_detach(3, NULL);
    rl_lock_free(lock, world->now_us);
    other = fake_lock(world, KEY, NULL);
    assert_error(rl_attach_set(other, &handover), REDLOCK_OK);
    if (way == 0) {
      rl_lock_free(other, world->now_us);
    } else if (way == 1) {
      assert_error(rl_lock_acquire(other, world->now_us, NULL, false), REDLOCK_OK);
      rl_lock_cancel(other, world->now_us, REDLOCK_E_CANCELLED);
    } else {
      rl_core_reset(&world->core);
    }
    assert_true(way == 0 || rl_lock_attach(other) == NULL);
    assert_int_equal(world->core.attempts.live, 0);
    assert_int_equal(fake_holders(world, KEY, handed), 3);
  }
}

TEST(several_resources_are_attached_together) {
  static const char *const names[] = {"a", "b", "c"};
  for (unsigned lost = 0; lost <= 3; lost++) {
    world = fake_world_new(3);
    lock = fake_lock_many(world, names, 3, NULL);
    assert_error(fake_acquire(world, lock), REDLOCK_OK);
    detach();
    for (unsigned i = 0; i < lost; i++) {
      fake_store_remove(&world->nodes[i].store, names[i]); /* another one on each */
    }
    rl_lock *other = fake_lock_many(world, names, 3, NULL);
    assert_error(rl_attach_set(other, &handover), REDLOCK_OK);
    assert_error(acquire(other, NULL), lost < 2 ? REDLOCK_OK : REDLOCK_E_LOST);
    for (unsigned k = 0; k < 3 && lost < 2; k++) {
      /*
       * A node that lost a key keeps the handed token on the other nodes; its vote does not count.
       */
      assert_int_equal(fake_holders(world, names[k], rl_attempt_token(other->lease)), 3 - lost);
    }
    for (unsigned k = 0; k < 3; k++) {
      assert_int_equal(fake_holders(world, names[k], handed), lost - (k < lost));
    }
  }
}
