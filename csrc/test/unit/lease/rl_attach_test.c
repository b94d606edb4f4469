/*
 * Handing a lease over, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "fake_nodes.h"
#include "lease/rl_attach.h"
#include "lease/rl_release.h"
#include "lifecycle/rl_detach.h"
#include "lock/rl_round.h"
#include "rl_test.h"

static const char KEY[] = "orders:42";
static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

static char handed[REDLOCK_TOKEN_LENGTH + 1]; /* the token that was detached */
static unsigned char *bytes;                  /* of what was read last */
static char text[REDLOCK_HANDOVER_MAX];

/* A lock that is held, and |options| for it, or NULL. */
static fake_world *held(unsigned count, rl_lock **lock, const redlock_options *options) {
  fake_world *world = fake_world_new(count);
  *lock = fake_lock(world, KEY, options);
  assert_error(fake_hold(world, *lock), REDLOCK_OK);
  memcpy(handed, rl_attempt_token((*lock)->lease), sizeof handed);
  return world;
}

static void detach(fake_world *world, rl_lock *lock, rl_handover *handover) {
  assert_error(rl_lock_detachable(lock, world->now_us, handover), REDLOCK_OK);
  size_t length = rl_handover_length(handover);
  rl_handover_write(handover, text);
  rl_lock_detach(lock);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  free(bytes);
  assert_error(rl_handover_read(handover, text, length), REDLOCK_OK);
  bytes = handover->bytes;
}

/* Another process: another lock object for what was handed over. Its commands are out. */
static rl_lock *begin(fake_world *world, const rl_handover *handover) {
  redlock_options options = {.ttl_us = handover->ttl_us, .lock_delay_us = handover->lock_delay_us};
  rl_lock *lock = fake_lock(world, KEY, &options);
  assert_error(rl_attach_set(lock, handover), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, true), REDLOCK_OK);
  fake_turn(world);
  return lock;
}

static int attach(fake_world *world, const rl_handover *handover, rl_lock **lock) {
  *lock = begin(world, handover);
  fake_settle(world);
  return rl_lock_result(*lock);
}

/* Only the script of a guard answers this. */
TEST(quoted_handed_token_is_masked) {
  char reply[128];
  rl_lock *lock;
  fake_world *world = held(1, &lock, NULL);
  rl_handover handover;
  detach(world, lock, &handover);
  rl_lock *attached = begin(world, &handover);
  (void)snprintf(reply, sizeof reply, "-ERR bad argument '%s'\r\n", handed);
  (void)fake_reply(world, 0, reply);
  assert_string_equal(rl_round_reason(attached, 0),
                      "ERR bad argument '****************************************'");
}

TEST(detached_lease_is_not_held_and_not_released) {
  rl_lock *lock;
  rl_handover handover;
  fake_world *world = held(3, &lock, NULL);
  detach(world, lock, &handover);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_detachable(lock, world->now_us, &handover), REDLOCK_E_NOT_HELD);
  rl_lock_free(lock, world->now_us);
  rl_core_close(&world->core, world->now_us);
  fake_settle(world);
  fake_pass(world, SECONDS);
  assert_int_equal(fake_holders(world, KEY, handed), 3);
  assert_int_equal(world->core.attempts.live, 0);
}

TEST(second_attach_finds_no_lease) {
  rl_lock *lock, *first, *second;
  rl_handover handover;
  fake_world *world = held(5, &lock, NULL);
  detach(world, lock, &handover);
  assert_error(attach(world, &handover, &first), REDLOCK_OK);
  assert_error(attach(world, &handover, &second), REDLOCK_E_LOST);
  assert_int_equal(rl_lock_remaining(second, world->now_us), 0);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(first->lease)), 5);
  /* Also when the first client has released it, and when another client holds it. */
  assert_error(rl_lock_release(first, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(attach(world, &handover, &second), REDLOCK_E_LOST);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(fake_hold(world, first), REDLOCK_OK);
  assert_error(attach(world, &handover, &second), REDLOCK_E_LOST);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(first->lease)), 5);
}

/* Two at once, the commands of the one before those of the other in every combination of nodes. */
TEST(two_clients_that_attach_are_not_both_granted) {
  unsigned granted[3] = {0, 0, 0};
  for (unsigned order = 0; order < 32 * 4; order++) {
    rl_lock *lock, *locks[2];
    rl_handover handover;
    unsigned winners = 0;
    fake_world *world = held(5, &lock, NULL);
    detach(world, lock, &handover);
    locks[0] = begin(world, &handover);
    locks[1] = begin(world, &handover);
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
  rl_lock *lock, *other;
  rl_handover handover;
  fake_world *world = held(3, &lock, NULL);
  detach(world, lock, &handover);
  world->now_us += 10 * SECONDS;
  assert_error(attach(world, &handover, &other), REDLOCK_E_LOST);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* ATT-6. The keys live on for lock_delay; the lease has ended. */
TEST(lock_delay_belongs_to_no_lease) {
  redlock_options options = {.lock_delay_us = 20 * SECONDS};
  for (unsigned over = 0; over <= 1; over++) {
    rl_lock *lock, *other;
    rl_handover handover;
    fake_world *world = held(3, &lock, &options);
    detach(world, lock, &handover);
    world->now_us += over ? 10 * SECONDS : 9 * SECONDS;
    assert_error(attach(world, &handover, &other), over ? REDLOCK_E_LOST : REDLOCK_OK);
    assert_int_equal(fake_keys(world, KEY), 3);
    assert_true(fake_world_end(world));
  }
}

TEST(forged_token_attaches_nothing) {
  rl_lock *lock, *other;
  rl_handover handover;
  fake_world *world = held(3, &lock, NULL);
  detach(world, lock, &handover);
  handover.token = (const unsigned char *)OTHER;
  assert_error(attach(world, &handover, &other), REDLOCK_E_LOST);
  assert_int_equal(fake_holders(world, KEY, handed), 3);
}

/* ATT-5. The token of a minority is released. */
TEST(attach_by_minority_releases_fresh_token) {
  rl_lock *lock, *other, *third;
  rl_handover handover;
  fake_world *world = held(5, &lock, NULL);
  detach(world, lock, &handover);
  for (unsigned i = 2; i < 5; i++) {
    world->nodes[i].policy = FAKE_REFUSES;
    fake_break(world, i, "it was cut");
  }
  assert_error(attach(world, &handover, &other), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  assert_int_equal(fake_holders(world, KEY, handed), 3);
  assert_int_equal(fake_keys(world, KEY), 3);
  assert_int_equal(rl_lock_remaining(other, world->now_us), 0);
  /* A majority that comes back still has the handed token: it can be attached after all. */
  for (unsigned i = 2; i < 5; i++) {
    world->nodes[i].policy = FAKE_ACCEPTS;
  }
  fake_pass(world, 3 * SECONDS);
  assert_error(attach(world, &handover, &third), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(third->lease)), 3);
}

/* Of three nodes the last has not answered yet. */
static fake_world *held_by_two(rl_lock **lock) {
  fake_world *world = fake_world_new(3);
  *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_acquire(*lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(*lock), REDLOCK_OK);
  memcpy(handed, rl_attempt_token((*lock)->lease), sizeof handed);
  return world;
}

/* ATT-2. A node that may yet execute a SET of the token has no vote. */
TEST(suspect_node_has_no_vote) {
  rl_lock *lock, *other;
  rl_handover handover;
  fake_world *world = held_by_two(&lock);
  detach(world, lock, &handover);
  assert_int_equal(handover.suspect, 4);
  /* The keys of node 0 are lost; then the SET is executed on node 2: a majority has the token. */
  fake_store_remove(&world->nodes[0].store, KEY);
  (void)fake_answer(world, 2);
  assert_int_equal(fake_holders(world, KEY, handed), 2);
  assert_error(attach(world, &handover, &other), REDLOCK_E_LOST);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0); /* Replaced there, and given up. */
}

/* ATT-8. It was behind, and so it was not asked to replace the token that it sets later. */
TEST(handed_token_is_released_on_node_that_was_behind) {
  rl_lock *lock, *other;
  rl_handover handover;
  fake_world *world = held_by_two(&lock);
  detach(world, lock, &handover);
  fake_pass(world, 150 * MS);
  other = begin(world, &handover);
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
  rl_lock *lock, *other;
  rl_handover handover;
  fake_world *world = held_by_two(&lock);
  detach(world, lock, &handover);
  world->nodes[2].policy = FAKE_HANGS;
  fake_break(world, 2, "it was cut");
  other = begin(world, &handover);
  (void)fake_answer(world, 0);
  (void)fake_answer(world, 1);
  assert_error(rl_lock_result(other), REDLOCK_OK);
  assert_int_equal(world->core.nodes[2]->due_count, 1);
  for (unsigned i = 0; i < RL_RELEASE_NODE_MAX; i++) {
    rl_attempt *attempt = rl_attempt_new(&world->core.attempts, lock->resource, NULL,
                                         (const unsigned char *)"12345678901234567890");
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
  rl_handover handover;
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_detachable(lock, world->now_us, &handover), REDLOCK_E_NOT_HELD);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  assert_error(rl_lock_detachable(lock, world->now_us, &handover), REDLOCK_E_BUSY);
  fake_settle(world);
  for (unsigned i = 0; i < 2; i++) {
    fake_store_put(&world->nodes[i].store, KEY, OTHER, REDLOCK_NEVER);
  }
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_detachable(lock, world->now_us, &handover), REDLOCK_E_LOST);
  rl_core_close(&world->core, world->now_us);
  assert_error(rl_lock_detachable(lock, world->now_us, &handover), REDLOCK_E_CLOSED);
}

TEST(detach_after_fire_and_forget_release_is_not_held) {
  rl_handover handover;
  fake_world *world = fake_world_new(3);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_settle(world);
  assert_error(rl_lock_release_send(lock, world->now_us), REDLOCK_OK);
  assert_error(rl_lock_detachable(lock, world->now_us, &handover), REDLOCK_E_NOT_HELD);
  fake_settle(world);
  assert_error(rl_lock_detachable(lock, world->now_us, &handover), REDLOCK_E_NOT_HELD);
}

TEST(unused_attach_leaves_nothing) {
  for (unsigned way = 0; way < 3; way++) {
    rl_lock *lock, *other;
    rl_handover handover;
    fake_world *world = held(3, &lock, NULL);
    detach(world, lock, &handover);
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
    assert_true(fake_world_end(world));
  }
}

TEST(several_resources_are_attached_together) {
  static const char *const names[] = {"a", "b", "c"};
  for (unsigned lost = 0; lost <= 3; lost++) {
    rl_handover handover;
    fake_world *world = fake_world_new(3);
    rl_lock *lock = fake_lock_many(world, names, 3, NULL);
    assert_error(fake_hold(world, lock), REDLOCK_OK);
    memcpy(handed, rl_attempt_token(lock->lease), sizeof handed);
    detach(world, lock, &handover);
    for (unsigned i = 0; i < lost; i++) {
      fake_store_remove(&world->nodes[i].store, names[i]); /* another one on each */
    }
    rl_lock *other = fake_lock_many(world, names, 3, NULL);
    assert_error(rl_attach_set(other, &handover), REDLOCK_OK);
    assert_error(rl_lock_acquire(other, world->now_us, NULL, true), REDLOCK_OK);
    fake_turn(world);
    fake_settle(world);
    assert_error(rl_lock_result(other), lost < 2 ? REDLOCK_OK : REDLOCK_E_LOST);
    for (unsigned k = 0; k < 3 && lost < 2; k++) {
      /*
       * A node that lost a key keeps the handed token on the other nodes; its vote does not count.
       */
      assert_int_equal(fake_holders(world, names[k], rl_attempt_token(other->lease)), 3 - lost);
    }
    for (unsigned k = 0; k < 3; k++) {
      assert_int_equal(fake_holders(world, names[k], handed), lost - (k < lost));
    }
    assert_true(fake_world_end(world));
  }
}
