/*
 * Releasing, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_round.h"

#include "lease_world.h"

TEST(lease_ends_before_first_byte_of_release) {
  open_world_with_lease(3, NULL);
  assert_true(rl_lock_remaining(lock, world->now_us) > 0);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_null(lock->lease);
  for (unsigned i = 0; i < 3; i++) {
    size_t length;
    assert_null(rl_core_output(&world->core, i, &length));
    assert_int_equal(world->nodes[i].releases, 0);
  }
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(majority_of_nodes_decides_release) {
  for (unsigned count = 1; count <= FAKE_NODES_MAX; count++) {
    open_world_with_lease(count, NULL);
    begin_release();
    for (unsigned i = 0; i < count; i++) {
      assert_int_equal(world->nodes[i].releases, 1);
      if (i <= count / 2) {
        assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
      } else {
        assert_error(rl_lock_result(lock), REDLOCK_OK);
      }
      (void)fake_answer(world, i);
    }
    assert_int_equal(fake_keys(world, KEY), 0);
  }
}

TEST(release_deletes_only_own_key) {
  open_world_with_lease(3, NULL);
  fake_store_put(&world->nodes[2].store, KEY, OTHER, REDLOCK_NEVER);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, OTHER), 1);
}

TEST(release_of_lost_lock_reports_lost) {
  open_world_with_lease(3, NULL);
  let_other_client_hold(1, REDLOCK_NEVER);
  fake_store_remove(&world->nodes[1].store, KEY);
  assert_error(release(lock), REDLOCK_E_LOST);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(release_of_unheld_lock_is_not_held) {
  world = fake_world_new(1);
  lock = fake_lock(world, KEY, NULL);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(expired_lease_is_released_once) {
  for (unsigned gone = 0; gone <= 1; gone++) {
    open_world_with_lease(3, NULL);
    world->now_us = lock->deadline_us + (gone ? 200 * MS : 0); /* then the keys are gone, too */
    assert_error(release(lock), gone ? REDLOCK_E_EXPIRED : REDLOCK_OK);
    assert_error(release(lock), REDLOCK_E_NOT_HELD);
  }
}

TEST(deleting_and_denying_nodes_make_released_lock) {
  open_world_with_lease(3, NULL);
  begin_release();
  fake_reply(world, 0, ":1\r\n");
  fake_reply(world, 1, ":0\r\n");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING); /* it may still be either */
  fake_reply(world, 2, "-ERR x\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(node_that_refused_set_has_no_key) {
  world = fake_world_new(3);
  fake_store_put(&world->nodes[2].store, KEY, OTHER, REDLOCK_NEVER);
  lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  begin_release();
  fake_reply(world, 0, ":1\r\n");
  fake_reply(world, 1, "-ERR x\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK); /* deleted on one, never on another */
  assert_int_equal(world->nodes[2].releases, 0);
}

TEST(nodes_without_set_have_no_key) {
  world = fake_world_new(3);
  world->nodes[2].policy = FAKE_REFUSES;
  lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  begin_release();
  assert_string_equal(rl_round_reason(lock, 2), "nothing was sent to it");
  fake_reply(world, 0, ":1\r\n");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_reply(world, 1, "-ERR x\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK); /* deleted on one, never on another */
  assert_int_equal(world->nodes[2].releases, 0);
}

/* -------------------------------------------------------------------------------- not confirmed */

TEST(unavailable_release_can_be_repeated) {
  open_world_with_lease(3, NULL);
  begin_release();
  for (unsigned i = 0; i < 3; i++) {
    fake_reply(world, i, "-LOADING Redis is loading\r\n");
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  assert_int_equal(fake_holders(world, KEY, lease_token), 3);
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(release(lock), REDLOCK_E_NOT_HELD);
}

TEST(repeated_release_counts_former_confirmations) {
  open_world_with_lease(3, NULL);
  begin_release();
  fake_reply(world, 0, ":1\r\n");
  fake_reply(world, 1, "-LOADING\r\n");
  fake_reply(world, 2, "-LOADING\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  begin_release();
  assert_int_equal(world->nodes[0].releases, 1);
  assert_int_equal(world->nodes[1].releases, 2);
  fake_reply(world, 1, ":1\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* The first release succeeded, with late replies. The second must not report a loss. */
TEST(late_reply_to_first_release_counts_in_repeated_release) {
  open_world_with_lease(1, NULL);
  begin_release();
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  begin_release();
  fake_settle(world); /* 1 to the first, 0 to the second */
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* redlock.h: "the client goes on trying on its own while the key can still live". */
TEST(freed_lock_releases_token_after_error) {
  for (unsigned again = 0; again <= 1; again++) {
    open_world_with_lease(1, NULL);
    begin_release();
    fake_reply(world, 0, "-LOADING Redis is loading\r\n");
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    fake_pass(world, SECONDS);
    if (again) {
      assert_error(fake_acquire(world, lock), REDLOCK_OK); /* not taken by itself */
    } else {
      rl_lock_free(lock, world->now_us);
      fake_settle(world);
      assert_int_equal(fake_keys(world, KEY), 0);
    }
  }
}

TEST(failed_release_is_repeated) {
  open_world_with_lease(1, NULL);
  begin_release();
  fake_reply(world, 0, "-BUSY Redis is busy running a script\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->nodes[0].releases, 1);
  fake_pass(world, 500 * MS - 1);
  assert_int_equal(world->nodes[0].releases, 1);
  fake_pass(world, 1);
  assert_int_equal(world->nodes[0].releases, 2);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->core.releases->count, 0);
}

TEST(forbidden_release_is_not_repeated) {
  static const char *const errors[] = {"-NOPERM x\r\n", "-NOAUTH x\r\n"};
  for (unsigned i = 0; i < COUNT_OF(errors); i++) {
    open_world_with_lease(1, NULL);
    begin_release();
    fake_reply(world, 0, errors[i]);
    fake_pass(world, SECONDS);
    assert_int_equal(world->nodes[0].releases, 1);
  }
}

TEST(release_ends_at_its_deadline) {
  open_world_with_lease(3, NULL);
  begin_release();
  fake_pass(world, 100 * MS - 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

TEST(reconnection_repeats_release_and_no_set) {
  open_world_with_lease(3, NULL);
  begin_release();
  fake_break(world, 0, "Connection reset by peer");
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_UNKNOWN);
  assert_int_equal(world->nodes[0].connections, 2);
  assert_int_equal(world->nodes[0].releases, 2);
  assert_int_equal(world->nodes[0].sets, 1);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(release_waits_for_node_that_is_down) {
  open_world_with_lease(3, NULL);
  take_down(0);
  assert_error(release(lock), REDLOCK_OK);
  assert_string_equal(rl_round_reason(lock, 0), "Connection refused");
  assert_int_equal(fake_keys(world, KEY), 1);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_pass(world, 2 * SECONDS);
  fake_settle(world);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(release_of_expired_key_is_not_sent) {
  open_world_with_lease(1, NULL);
  take_down(0);
  begin_release();
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->core.releases->count, 1);
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_pass(world, 13 * SECONDS); /* the ttl, a tenth of it, and a second */
  assert_int_equal(world->nodes[0].connections, 2);
  assert_int_equal(world->nodes[0].releases, 0);
  assert_int_equal(world->core.releases->count, 0);
}

TEST(release_goes_on_while_key_can_live) {
  open_world_with_lease(1, NULL);
  take_down(0);
  begin_release();
  world->now_us = FAKE_START_US + 11 * SECONDS; /* a slow clock may have kept it */
  world->nodes[0].policy = FAKE_ACCEPTS;
  fake_turn(world);
  assert_int_equal(world->nodes[0].releases, 1);
}

TEST(node_that_comes_up_after_expiry_gets_no_release) {
  for (unsigned gone = 0; gone <= 1; gone++) {
    redlock_options options = fake_once();
    options.node_timeout_us = 60 * SECONDS;
    open_world_with_lease(1, &options);
    redlock_time expired_us = lock->lease->expired_us;
    assert_int_equal(expired_us, FAKE_START_US + 12 * SECONDS);
    world->now_us = expired_us - SECONDS;
    world->nodes[0].policy = FAKE_SILENT;
    fake_break(world, 0, "Connection reset by peer");
    begin_release();
    assert_int_equal(lock->awaited, 1);
    world->now_us = expired_us - 1 + gone;
    fake_reply(world, 0, "+OK\r\n"); /* the handshake */
    assert_int_equal(world->nodes[0].releases, gone ? 0 : 1);
    assert_string_equal(rl_round_reason(lock, 0), gone ? "its key has expired" : "");
    assert_error(rl_lock_result(lock), gone ? REDLOCK_E_UNAVAILABLE : REDLOCK_PENDING);
  }
}

/* The lock is held, and its node has run the release before. */
static void taught(void) {
  open_world_with_lease(1, NULL);
  begin_release();
  assert_true(fake_answer(world, 0).by_text);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
}

TEST(forgotten_script_is_sent_by_text_after_the_round) {
  taught();
  world->nodes[0].store.forgot_release = true;
  begin_release();
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_false(fake_answer(world, 0).by_text);
  assert_true(fake_answer(world, 0).by_text);
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(noscript_to_text_is_error) {
  taught();
  begin_release();
  assert_int_equal(world->nodes[0].releases, 2);
  fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].releases, 3);
  fake_reply(world, 0, "-NOSCRIPT No matching script.\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(world->nodes[0].releases, 3);
}

/* The lock is freed before the node has answered: the release must do its work all the same. */
TEST(fire_and_forget_release_is_sent_once) {
  open_world_with_lease(1, NULL);
  world->nodes[0].store.forgot_release = true;
  rl_lock_free(lock, world->now_us);
  fake_turn(world);
  assert_true(fake_answer(world, 0).by_text);
  assert_int_equal(fake_keys(world, KEY), 0);
  assert_int_equal(world->nodes[0].releases, 1);
}

TEST(key_of_another_type_is_denied) {
  open_world_with_lease(1, NULL);
  fake_store_put(&world->nodes[0].store, KEY, "", REDLOCK_NEVER);
  assert_error(release(lock), REDLOCK_E_LOST);
}

/* Two nodes refuse heals, and have the key again after fail-overs. */
TEST(release_deletes_restored_keys_after_refused_heals) {
  open_world_with_lease(5, NULL);
  for (unsigned restored = 0; restored < 2; restored++) {
    for (unsigned i = 0; i < 2; i++) {
      fake_store_put(&world->nodes[i].store, KEY, restored ? rl_attempt_token(lock->lease) : OTHER,
                     REDLOCK_NEVER);
    }
    assert_error(extend(lock, 0), REDLOCK_OK);
  }
  assert_error(release(lock), REDLOCK_OK);
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_GRANTED);
  assert_int_equal(fake_keys(world, KEY), 0);
}

/* The release went out before the SET was answered; both are answered alike. */
TEST(release_of_refused_set_is_not_repeated) {
  redlock_options once = fake_once();
  world = fake_world_new(1);
  lock = fake_lock(world, "orders:42", &once);
  fake_begin_acquire(world, lock);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(fake_reply(world, 0, "-MISCONF Errors writing to disk\r\n").verb, FAKE_SET);
  unsigned releases = world->nodes[0].releases;
  while (world->nodes[0].queued > 0) {
    (void)fake_reply(world, 0, "-MISCONF Errors writing to disk\r\n");
  }
  fake_pass(world, 4 * RL_RELEASE_RETRY_US);
  assert_int_equal(world->nodes[0].releases, releases);
  assert_int_equal(world->core.attempts.live, 0);
}
