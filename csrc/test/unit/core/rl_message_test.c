/*
 * What an operation ended with, as a sentence.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_nodes.h"
#include "lock/rl_round.h"
#include "rl_test.h"

static const char KEY[] = "orders:42";
static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

static void assert_message(const rl_lock *lock, const char *expected) {
  char message[2048];
  assert_string_equal(rl_lock_message(lock, message, sizeof message), expected);
}

static rl_lock *held(fake_world *world) {
  redlock_options once = fake_once();
  rl_lock *lock = fake_lock(world, KEY, &once);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  return lock;
}

/* Extends or releases a held lock; each node answers its reply. */
static void answer(fake_world *world, rl_lock *lock, bool extends, const char *const *replies) {
  assert_error(extends ? rl_lock_extend(lock, world->now_us, 0, false)
                       : rl_lock_release(lock, world->now_us, false),
               REDLOCK_OK);
  fake_turn(world);
  for (unsigned i = 0; i < world->count; i++) {
    fake_reply(world, i, replies[i]);
  }
}

static rl_lock *start(fake_world *world, const char *name, const redlock_options *options) {
  redlock_options once = fake_once();
  rl_lock *lock = fake_lock(world, name, options != NULL ? options : &once);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  assert_message(lock, "");
  fake_turn(world);
  return lock;
}

/* Three nodes, or as many as reply. */
TEST(acquire_names_nodes_and_their_reasons) {
  static const struct {
    unsigned count;
    const char *replies[5]; /* NULL: none within 100 ms */
    const char *message;
  } rows[] = {
      {1, {"+OK\r\n"}, ""},
      {1,
       {"$-1\r\n"},
       "'orders:42' is taken: 1 of 1 nodes hold it for another client: 10.0.0.1:6379"},
      {5,
       {"$-1\r\n", "$-1\r\n", "$-1\r\n", NULL, "-LOADING Redis is loading\r\n"},
       "'orders:42' is taken: 3 of 5 nodes hold it for another client: "
       "10.0.0.1:6379, 10.0.0.2:6379, 10.0.0.3:6379; "
       "without a vote: 10.0.0.5:6379: LOADING Redis is loading"},
      {3,
       {"+OK\r\n", "-OOM command not allowed\r\n", NULL},
       "'orders:42': 1 of 3 nodes granted it (2 needed): "
       "10.0.0.2:6379: OOM command not allowed; 10.0.0.3:6379: no reply within 100 ms"},
      {3,
       {NULL, "$-1\r\n", NULL}, /* "not ours" is the reason of an extend only */
       "'orders:42': 0 of 3 nodes granted it (2 needed): 10.0.0.1:6379: no reply within 100 ms; "
       "10.0.0.2:6379: held by another client; 10.0.0.3:6379: no reply within 100 ms"},
      {1,
       {"-\r\n"},
       "'orders:42': 0 of 1 nodes granted it (1 needed): 10.0.0.1:6379: an error without a text"},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    fake_world *world = fake_world_new(rows[i].count);
    rl_lock *lock = start(world, KEY, NULL);
    for (unsigned node = rows[i].count; node-- > 0;) {
      if (rows[i].replies[node] != NULL) {
        fake_reply(world, node, rows[i].replies[node]);
      }
    }
    fake_pass(world, 100 * MS);
    assert_message(lock, rows[i].message);
  }
}

/* Nodes that say "not yours" are named among those for which an extend or a release failed. */
TEST(lost_key_is_a_reason_like_an_error) {
  static const char *const replies[] = {":0\r\n", "-ERR x\r\n", "-ERR y\r\n"};
  fake_world *world = fake_world_new(3);
  rl_lock *lock = held(world);
  answer(world, lock, true, replies);
  assert_message(lock, "'orders:42': 0 of 3 nodes extended it (2 needed): "
                       "10.0.0.1:6379: lost; 10.0.0.2:6379: ERR x; 10.0.0.3:6379: ERR y");
  answer(world, lock, false, replies);
  assert_message(lock, "'orders:42': 1 of 3 nodes confirmed its release (2 needed): "
                       "10.0.0.1:6379: lost; 10.0.0.2:6379: ERR x; 10.0.0.3:6379: ERR y");
}

TEST(message_omits_the_prefix) {
  fake_world world;
  assert_error(fake_world_open(&world, 1, "shop:"), REDLOCK_OK);
  rl_lock *lock = fake_lock(&world, "a lock", NULL);
  assert_error(rl_lock_release(lock, world.now_us, false), REDLOCK_E_NOT_HELD);
  assert_message(lock, "'a lock': the lock is not held");
  fake_world_close(&world);
}

TEST(extend_and_release_have_their_own_words) {
  static const char *const error = "-ERR x\r\n", *const lost = ":0\r\n";
  fake_world *world = fake_world_new(1);
  rl_lock *lock = held(world);
  answer(world, lock, true, &error);
  assert_message(lock, "'orders:42': 0 of 1 nodes extended it (1 needed): 10.0.0.1:6379: ERR x");
  answer(world, lock, true, &lost);
  assert_message(lock, "'orders:42' is lost: 1 of 1 nodes no longer have its token: 10.0.0.1:6379");
  fake_settle(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  answer(world, lock, false, &error);
  assert_message(lock, "'orders:42': 0 of 1 nodes confirmed its release (1 needed): "
                       "10.0.0.1:6379: ERR x");
}

TEST(expired_message_names_the_cause) {
  redlock_options options = fake_once();
  options.node_timeout_us = 20 * SECONDS;
  fake_world *world = fake_world_new(1);
  rl_lock *lock = start(world, KEY, &options);
  world->now_us += 9900 * MS;
  fake_reply(world, 0, "+OK\r\n");
  assert_message(lock, "'orders:42': the majority came after 9900 ms, too late for a ttl of "
                       "10000 ms");
  fake_settle(world);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  world->now_us = lock->deadline_us;
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_E_EXPIRED);
  assert_message(lock, "'orders:42' was not extended: its lease had expired");
  world->now_us += SECONDS;
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  assert_message(lock, "'orders:42' had expired before it was released");
}

TEST(message_names_a_ttl_without_validity) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  world->core.options.ttl_us = 2 * MS; /* An attached lease may be so short. */
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_message(lock, "'orders:42': a ttl of 2 ms leaves nothing after the drift allowance");
}

/* The votes of the operation before have nothing to do with this one. */
TEST(message_names_a_ttl_without_validity_after_a_success) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = fake_lock(world, KEY, NULL);
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  world->core.options.ttl_us = 2 * MS;
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
  assert_message(lock, "'orders:42': a ttl of 2 ms leaves nothing after the drift allowance");
}

TEST(expired_budget_does_not_show_older_votes) {
  redlock_options options = fake_once();
  fake_world *world = fake_world_new(1);
  rl_lock *lock = start(world, KEY, NULL);
  fake_settle(world);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_OK);
  fake_settle(world);
  options.wait_us = 5 * MS;
  assert_error(rl_lock_acquire(lock, world->now_us, &options, false), REDLOCK_OK);
  world->now_us += 5 * MS;
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  char message[256];
  (void)rl_lock_message(lock, message, sizeof message);
  assert_null(strstr(message, "only 1 of 1"));
}

TEST(other_errors_use_their_sentences) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = start(world, KEY, NULL);
  rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
  assert_message(lock, "'orders:42': the operation was cancelled");
  fake_settle(world);
  assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
  assert_message(lock, "'orders:42': the lock is not held");
  assert_error(fake_acquire(world, lock), REDLOCK_OK);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_E_HELD);
  assert_message(lock, "'orders:42': the lock is held already");
  /* Inside nginx a lock that was given back keeps its result, and not which argument was wrong. */
  assert_error(rl_lock_refuse_argument(lock, RL_OPERATION_EXTEND, "ttl_us is odd"),
               REDLOCK_E_INVALID);
  assert_message(lock, "'orders:42': ttl_us is odd");
  lock->has_refused = false;
  assert_message(lock, "'orders:42': an argument is wrong");
}

TEST(unprintable_and_long_names_are_shown_in_short) {
#define N32 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
  static const char odd[] = "a\0b\n\\\x7f\xc3\xa9%s";
  const struct {
    const char *name;
    size_t length;
    const char *message;
  } rows[] = {
      {odd, sizeof odd - 1, "'a\\x00b\\x0a\\x5c\\x7f\\xc3\\xa9%s': the lock is not held"},
      {N32 N32 "n", 65, "'" N32 N32 "...': the lock is not held"},
      {N32 N32, 64, "'" N32 N32 "': the lock is not held"},
  };
  fake_world *world = fake_world_new(1);
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    rl_lock *lock = fake_lock_of(world, rows[i].name, rows[i].length, NULL);
    assert_error(rl_lock_release(lock, world->now_us, false), REDLOCK_E_NOT_HELD);
    assert_message(lock, rows[i].message);
  }
}

TEST(message_is_cut_to_any_size) {
  char whole[2048];
  fake_world *world = fake_world_new(3);
  rl_lock *lock = start(world, KEY, NULL);
  fake_store_put(&world->nodes[0].store, KEY, OTHER, REDLOCK_NEVER);
  fake_settle(world);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  lock->result = REDLOCK_E_TAKEN; /* any long message */
  (void)rl_lock_message(lock, whole, sizeof whole);
  for (size_t size = 1; size <= strlen(whole) + 2; size++) {
    char *message = malloc(size);
    assert_non_null(message);
    (void)rl_lock_message(lock, message, size);
    assert_true(strlen(message) < size);
    assert_memory_equal(message, whole, strlen(message));
    assert_int_equal(strlen(message), size - 1 < strlen(whole) ? size - 1 : strlen(whole));
    free(message);
  }
}

/* The budget was over when the clock was read before the first byte. */
TEST(message_names_unasked_nodes) {
  static const unsigned char entropy[RL_LOCK_ENTROPY] = {1};
  fake_world *world = fake_world_new(1);
  redlock_options options = {.wait_us = MS};
  rl_lock *lock = fake_lock(world, KEY, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  rl_core_advance(&world->core, world->now_us);
  rl_core_send(&world->core, world->now_us + 2 * MS, entropy, sizeof entropy);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_message(lock, "'orders:42': 0 of 1 nodes granted it (1 needed): "
                       "10.0.0.1:6379: not asked before the budget expired");
  world->now_us += 2 * MS;
}

/*
 * The budget cuts the last attempt short; the connection has been waited for since the first one.
 */
TEST(message_has_the_whole_time_of_a_missing_connection) {
  char message[1024] = "";
  unsigned waited_ms = 0;
  fake_world *world = fake_world_new(1);
  redlock_options options = {.wait_us = 1013 * MS};
  world->nodes[0].policy = FAKE_HANGS;
  rl_lock *lock = fake_lock(world, KEY, &options);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  while (rl_lock_result(lock) == REDLOCK_PENDING) {
    fake_pass(world, MS);
    waited_ms++;
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  (void)rl_lock_message(lock, message, sizeof message);
  const char *found = strstr(message, "no connection within ");
  assert_non_null(found);
  assert_true(waited_ms > 700);
  assert_int_equal(strtoul(found + strlen("no connection within "), NULL, 10), waited_ms);
}

TEST(message_has_the_whole_time_of_a_late_reply) {
  fake_world *world = fake_world_new(1);
  rl_lock *lock = held(world);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0), "no reply within 100 ms");
  fake_pass(world, 900 * MS);
  assert_error(rl_lock_extend(lock, world->now_us, 0, false), REDLOCK_OK);
  fake_turn(world);
  fake_pass(world, 100 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  assert_string_equal(rl_round_reason(lock, 0), "no reply within 1100 ms");
}
