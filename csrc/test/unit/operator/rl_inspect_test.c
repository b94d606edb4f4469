/*
 * Inspecting, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease_world.h"
#include "lock/rl_round.h"
#include "operator/rl_inspect.h"

static const char ONE[] = "1111111111111111111111111111111111111111";
static const char TWO[] = "two of another library";

static void begin_inspect(void) {
  lock = fake_lock(world, KEY, NULL);
  fake_begin_ask(world, lock, RL_OPERATION_INSPECT);
}

/* Returns the answer of |node|. */
static const rl_inspected *of(unsigned node) {
  const rl_inspected *inspected = rl_inspect_of(lock, node);
  assert_non_null(inspected);
  return inspected;
}

static void put(unsigned node, const char *token, redlock_duration left_us) {
  fake_store_put(&world->nodes[node].store, KEY, token, world->now_us + left_us);
}

TEST(inspection_changes_no_key) {
  world = fake_world_new(3);
  put(0, ONE, 5 * SECONDS);
  begin_inspect();
  fake_settle(world);
  rl_lock_free(lock, world->now_us);
  fake_pass(world, SECONDS);
  assert_int_equal(fake_keys(world, KEY), 1);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].queued, 0);
    assert_int_equal(world->nodes[i].sets + world->nodes[i].releases, 0);
  }
}

TEST(token_of_majority_is_holder) {
  for (unsigned ones = 0; ones <= 5; ones++) {
    world = fake_world_new(5);
    redlock_duration ttl_us = 0;
    unsigned nodes = 0;
    for (unsigned i = 0; i < 5; i++) {
      put(i, i < ones ? ONE : TWO, (i + 1) * SECONDS);
    }
    begin_inspect();
    fake_settle(world);
    const rl_inspected *holder = rl_inspect_holder(lock, &ttl_us, &nodes);
    assert_non_null(holder);
    assert_string_equal(holder->token, ones >= 3 ? ONE : TWO);
    assert_int_equal(nodes, ones >= 3 ? ones : 5 - ones);
    /* The third of its keys, from the longest, is the last that makes a majority. */
    assert_int_equal(ttl_us, (ones >= 3 ? ones - 2 : 3) * SECONDS);
  }
}

TEST(half_of_nodes_is_no_holder) {
  world = fake_world_new(4);
  redlock_duration ttl_us;
  unsigned nodes;
  put(0, ONE, SECONDS);
  put(1, ONE, SECONDS);
  begin_inspect();
  assert_null(rl_inspect_holder(lock, &ttl_us, &nodes));
  fake_settle(world);
  assert_null(rl_inspect_holder(lock, &ttl_us, &nodes));
  assert_null(rl_inspect_of(lock, 4));
}

TEST(late_answer_is_not_of_next_inspection) {
  world = fake_world_new(1);
  begin_inspect();
  fake_pass(world, 101 * MS);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_begin_ask(world, lock, RL_OPERATION_INSPECT);
  put(0, ONE, SECONDS);
  (void)fake_answer(world, 0); /* to the first question */
  assert_int_equal(of(0)->state, REDLOCK_KEY_UNKNOWN);
  fake_store_remove(&world->nodes[0].store, KEY);
  (void)fake_answer(world, 0);
  assert_int_equal(of(0)->state, REDLOCK_KEY_FREE);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(broken_connection_leaves_key_state_unknown) {
  world = fake_world_new(1);
  begin_inspect();
  fake_break(world, 0, "it was cut");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_pass(world, SECONDS);
  assert_int_equal(world->nodes[0].queued, 0);
}

/* Answers of a node, and their meaning. */
TEST(answers_are_read_strictly) {
  static const struct {
    const char *reply;
    redlock_key_state state;
    size_t token_length;
    redlock_duration ttl_us;
    const char *reason;
  } rows[] = {
      {"$15\r\nstring 5000 abc\r\n", REDLOCK_KEY_HELD, 3, 5 * SECONDS, ""},
      {"$17\r\nstring 5000 a b c\r\n", REDLOCK_KEY_HELD, 5, 5 * SECONDS, ""},
      {"$12\r\nstring 5000 \r\n", REDLOCK_KEY_HELD, 0, 5 * SECONDS, ""},
      {"$11\r\nstring 5000\r\n", REDLOCK_KEY_OTHER, 0, 5 * SECONDS,
       "it is a string that is too long for a token"},
      {"$7\r\nhash -1\r\n", REDLOCK_KEY_OTHER, 0, REDLOCK_NEVER, "it is a hash"},
      {"$9\r\nstring -1\r\n", REDLOCK_KEY_OTHER, 0, REDLOCK_NEVER,
       "it is a string that is too long for a token"},
      {"$12\r\nstring x abc\r\n", REDLOCK_KEY_HELD, 3, REDLOCK_NEVER, ""},
      {"$24\r\nlist 9223372036854775807\r\n", REDLOCK_KEY_OTHER, 0, REDLOCK_NEVER, "it is a list"},
      {"$40\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n", REDLOCK_KEY_OTHER, 0, REDLOCK_NEVER,
       "it is a xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
      {"$7\r\n!a\177\1 -1\r\n", REDLOCK_KEY_OTHER, 0, REDLOCK_NEVER, "it is a !a??"},
      {"$15\r\nstring 9000 abc\r\n", REDLOCK_KEY_HELD, 3, 9 * SECONDS, ""},
      {"$6\r\nstring\r\n", REDLOCK_KEY_OTHER, 0, 0, "it is a string that is too long for a token"},
      {"$11\r\nstring  abc\r\n", REDLOCK_KEY_OTHER, 0, 0,
       "it is a string that is too long for a token"},
      {"$0\r\n\r\n", REDLOCK_KEY_OTHER, 0, 0, NULL},
      {"$-1\r\n", REDLOCK_KEY_FREE, 0, 0, ""},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    world = fake_world_new(1);
    begin_inspect();
    (void)fake_reply(world, 0, rows[i].reply);
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_int_equal(of(0)->state, rows[i].state);
    assert_int_equal(of(0)->token_length, rows[i].token_length);
    if (rows[i].reason != NULL) {
      assert_true(of(0)->ttl_us == rows[i].ttl_us);
      assert_string_equal(rl_round_reason(lock, 0), rows[i].reason);
    }
  }
}

TEST(token_may_have_maximal_length) {
  for (size_t more = 0; more <= 1; more++) {
    char value[REDLOCK_TOKEN_MAX + 2], reply[REDLOCK_TOKEN_MAX + 64];
    size_t length = REDLOCK_TOKEN_MAX + more;
    memset(value, 'a', length);
    value[length] = '\0';
    (void)snprintf(reply, sizeof reply, "$%zu\r\nstring 5000 %s\r\n", length + 12, value);
    world = fake_world_new(1);
    begin_inspect();
    (void)fake_reply(world, 0, reply);
    assert_int_equal(of(0)->state, more == 0 ? REDLOCK_KEY_HELD : REDLOCK_KEY_OTHER);
    assert_int_equal(of(0)->token_length, more == 0 ? length : 0);
  }
}

TEST(reply_that_is_no_answer_ends_connection) {
  static const char *const replies[] = {"+OK\r\n", ":1\r\n", "*0\r\n"};
  for (unsigned i = 0; i < COUNT_OF(replies); i++) {
    world = fake_world_new(1);
    begin_inspect();
    (void)fake_reply(world, 0, replies[i]);
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
    assert_int_equal(of(0)->state, REDLOCK_KEY_UNKNOWN);
  }
}

TEST(cancelled_or_freed_lock_leaves_no_answers) {
  for (unsigned freed = 0; freed <= 1; freed++) {
    world = fake_world_new(3);
    begin_inspect();
    if (freed) {
      rl_lock_free(lock, world->now_us);
    } else {
      rl_lock_cancel(lock, world->now_us, REDLOCK_E_CANCELLED);
      assert_error(rl_lock_result(lock), REDLOCK_E_CANCELLED);
    }
    fake_settle(world);
    assert_int_equal(world->core.attempts.live, 0);
  }
}

TEST(every_state_has_its_name) {
  static const char *const names[] = {"unknown", "free", "held", "other"};
  for (int i = 0; i < 4; i++) {
    assert_string_equal(redlock_key_state_name(i), names[i]);
  }
  assert_string_equal(redlock_key_state_name(99), "unknown");
}

/* INSP-5 */
TEST(fence_of_holder_is_that_of_a_majority) {
  static const struct {
    const char *replies[3];
    uint64_t fence;
  } rows[] = {
      {{"$18\r\nstring 5000/17 abc\r\n", "$18\r\nstring 4000/17 abc\r\n", "$-1\r\n"}, 17},
      {{"$18\r\nstring 5000/17 abc\r\n", "$18\r\nstring 4000/18 abc\r\n", "$-1\r\n"}, 0},
      {{"$18\r\nstring 5000/18 abc\r\n", "$18\r\nstring 4000/17 abc\r\n",
        "$18\r\nstring 4000/17 abc\r\n"},
       17},
      {{"$18\r\nstring 5000/17 abc\r\n", "$18\r\nstring 4000/17 abd\r\n",
        "$15\r\nstring 4000 abc\r\n"},
       0},
      {{"$15\r\nstring 5000 abc\r\n", "$15\r\nstring 4000 abc\r\n", "$-1\r\n"}, 0},
      {{"$18\r\nstring 5000/1x abc\r\n", "$18\r\nstring 4000/1x abc\r\n", "$-1\r\n"}, 0},
      {{"$32\r\nstring 5000/9007199254740991 abc\r\n",
        "$32\r\nstring 5000/9007199254740991 abc\r\n", "$-1\r\n"},
       9007199254740991},
      {{"$32\r\nstring 5000/9007199254740992 abc\r\n",
        "$32\r\nstring 5000/9007199254740992 abc\r\n", "$-1\r\n"},
       0},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    world = fake_world_new(3);
    redlock_duration ttl_us;
    unsigned nodes;
    begin_inspect();
    for (unsigned node = 0; node < 3; node++) {
      (void)fake_reply(world, node, rows[i].replies[node]);
    }
    const rl_inspected *holder = rl_inspect_holder(lock, &ttl_us, &nodes);
    assert_non_null(holder);
    assert_string_equal(holder->token, "abc");
    assert_true(ttl_us >= 4 * SECONDS && ttl_us <= 5 * SECONDS);
    assert_true(rl_inspect_holder_fence(lock, holder) == rows[i].fence);
  }
}
