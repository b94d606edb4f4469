/*
 * Acquiring, over scripted nodes and a fake clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock/rl_round.h"

#include "lease_world.h"

/* --------------------------------------------------------------------------------- the decision */

TEST(lease_is_measured_from_before_first_byte) {
  open_world_and_begin_single_attempt(3);
  redlock_time start_us = world->now_us;
  world->now_us += 30 * MS;
  fake_answer(world, 0);
  world->now_us += 7 * MS;
  fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(lock->deadline_us, start_us + LEASE_US);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), LEASE_US - 37 * MS);
  assert_int_equal(rl_lock_remaining(lock, lock->deadline_us - 1), 1);
  assert_int_equal(rl_lock_remaining(lock, lock->deadline_us), 0);
}

TEST(lease_is_measured_from_its_round) {
  world = fake_world_new(1);
  redlock_options once = fake_once();
  lock = fake_lock(world, KEY, &once);
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  world->now_us += 50 * MS;
  fake_turn(world);
  redlock_time start_us = world->now_us;
  fake_answer(world, 0);
  assert_int_equal(lock->deadline_us, start_us + LEASE_US);
}

/* For every N: held with the N/2+1st grant and not before, without waiting for the rest. */
TEST(majority_decides_acquire) {
  for (unsigned count = 1; count <= FAKE_NODES_MAX; count++) {
    open_world_and_begin_single_attempt(count);
    for (unsigned granted = 1; granted <= count / 2 + 1; granted++) {
      assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
      assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
      fake_answer(world, granted - 1);
    }
    assert_error(rl_lock_result(lock), REDLOCK_OK);
    assert_true(rl_lock_remaining(lock, world->now_us) > 0);
    assert_true(lock->lease->held); /* Its release is the last to be forgotten. */
  }
}

/* For every N: with an even N, half of the nodes could still fail, and the lock be unavailable. */
TEST(majority_of_refusals_decides) {
  for (unsigned count = 1; count <= FAKE_NODES_MAX; count++) {
    open_world_and_begin_single_attempt(count);
    unsigned enough = count / 2 + 1;
    for (unsigned refused = 1; refused <= enough; refused++) {
      assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
      fake_store_put(&world->nodes[refused - 1].store, KEY, OTHER, REDLOCK_NEVER);
      fake_answer(world, refused - 1);
    }
    assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  }
}

/*
 * Three of five nodes are down, and two hold the key for another client: no order of the answers
 * makes a lock.
 */
TEST(errors_decide_once_no_majority_is_possible) {
  for (unsigned count = 1; count <= FAKE_NODES_MAX; count++) {
    open_world_and_begin_single_attempt(count);
    unsigned enough = count - count / 2;
    for (unsigned failed = 1; failed <= enough; failed++) {
      assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
      fake_reply(world, failed - 1, "-LOADING Redis is loading the dataset in memory\r\n");
    }
    assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  }
}

TEST(refusal_and_failure_of_three_are_taken) {
  open_world_and_begin_single_attempt(3);
  fake_answer(world, 0);
  fake_store_put(&world->nodes[1].store, KEY, OTHER, REDLOCK_NEVER);
  fake_answer(world, 1);
  fake_reply(world, 2, "-OOM command not allowed\r\n");
  fake_answer_tests(world, lock);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
}

TEST(late_majority_is_expired_and_released) {
  redlock_options options = fake_once();
  options.node_timeout_us = 20 * SECONDS;
  open_world_and_begin_acquire(3, &options);
  fake_answer(world, 0);
  world->now_us += LEASE_US; /* Exactly at the deadline there is no validity left. */
  fake_reply(world, 1, "+OK\r\n");
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 0);
  fake_settle(world);
  assert_int_equal(world->nodes[0].releases, 1);
  assert_int_equal(world->nodes[1].releases, 1);
  assert_int_equal(world->nodes[2].releases, 1);
}

TEST(majority_one_microsecond_before_deadline_is_a_lock) {
  redlock_options options = fake_once();
  options.node_timeout_us = 20 * SECONDS;
  open_world_and_begin_acquire(3, &options);
  redlock_time end_us = world->now_us + LEASE_US;
  /* The replies come byte by byte: silence would end their connections. */
  for (const char *byte = "+OK\r"; *byte != '\0'; byte++) {
    char part[] = {*byte, '\0'};
    fake_pass(world, 2 * SECONDS);
    fake_deliver(world, 0, part);
    fake_deliver(world, 1, part);
  }
  world->now_us = end_us - 1;
  fake_deliver(world, 0, "\n");
  fake_deliver(world, 1, "\n");
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(rl_lock_remaining(lock, world->now_us), 1);
}

TEST(ttl_within_drift_is_expired_and_sends_nothing) {
  world = fake_world_new(3);
  lock = fake_lock(world, KEY, NULL);
  world->core.options.ttl_us = 2 * MS; /* An attached lease may be so short. */
  assert_error(rl_lock_acquire(lock, world->now_us, NULL, false), REDLOCK_OK);
  fake_turn(world);
  assert_error(rl_lock_result(lock), REDLOCK_E_EXPIRED);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].sets, 0);
  }
}

TEST(lock_delay_lengthens_key_and_not_lease) {
  redlock_options options = fake_once();
  options.lock_delay_us = 1500 * MS + 1;
  open_world_and_begin_acquire(1, &options);
  redlock_time start_us = world->now_us;
  assert_int_equal(fake_answer(world, 0).ttl_ms, 11501);
  assert_int_equal(lock->deadline_us, start_us + LEASE_US);
}

TEST(prefix_precedes_resource) {
  world = calloc(1, sizeof *world);
  assert_non_null(world);
  assert_int_equal(fake_world_open(world, 1, "app:"), REDLOCK_OK);
  begin_single_attempt();
  assert_string_equal(fake_take(world, 0).key, "app:orders:42");
  fake_world_close(world);
  free(world);
}

TEST(resource_is_any_bytes) {
  static const char name[] = "a b\0%s\r\n\xff\x80\"'";
  world = fake_world_new(1);
  redlock_options options = fake_once();
  lock = fake_lock_of(world, name, sizeof name - 1, &options);
  fake_begin_acquire(world, lock);
  fake_command set = fake_answer(world, 0);
  assert_int_equal(set.key_length, sizeof name - 1);
  assert_memory_equal(set.key, name, sizeof name - 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  begin_release();
  fake_command release = fake_answer(world, 0);
  assert_int_equal(release.verb, FAKE_RELEASE);
  assert_memory_equal(release.key, name, sizeof name - 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

/* ------------------------------------------------------------------------------ after a failure */

TEST(failed_attempt_is_released_on_each_node_that_got_it) {
  open_world_and_begin_single_attempt(5);
  char token[FAKE_TOKEN_MAX + 1];
  memcpy(token, world->nodes[0].queue[0].token, sizeof token);
  for (unsigned i = 1; i <= 3; i++) {
    fake_store_put(&world->nodes[i].store, KEY, OTHER, REDLOCK_NEVER);
  }
  fake_answer(world, 0); /* granted */
  fake_answer(world, 1);
  fake_answer(world, 2);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_answer(world, 3);
  fake_answer_tests(world, lock);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  /* At once where it was granted; not where it was refused; on node 4 when that has granted it. */
  for (unsigned i = 0; i < 5; i++) {
    if (i == 4) {
      assert_int_equal(world->nodes[i].queued, 1);
      assert_int_equal(fake_next(world, i), FAKE_SET);
      (void)fake_answer(world, i);
    }
    if (i == 0 || i == 4) {
      assert_int_equal(fake_next(world, i), FAKE_RELEASE);
      assert_string_equal(world->nodes[i].queue[0].token, token);
      (void)fake_answer(world, i);
    }
    assert_int_equal(world->nodes[i].queued, 0);
  }
  assert_int_equal(fake_holders(world, KEY, token), 0);
  assert_int_equal(fake_holders(world, KEY, OTHER), 3);
}

TEST(silent_node_gets_release) {
  open_world_and_begin_single_attempt(3);
  fake_answer(world, 0);
  fake_pass(world, 100 * MS - 1);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_pass(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  fake_settle(world);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(world->nodes[i].sets, 1);
    assert_int_equal(world->nodes[i].releases, 1);
  }
  assert_int_equal(fake_keys(world, KEY), 0);
}

TEST(each_attempt_draws_its_own_token) {
  world = fake_world_new(1);
  redlock_options options = fake_once();
  options.retry_count = 2;
  char tokens[3][REDLOCK_TOKEN_LENGTH + 1];
  let_other_client_hold(1, REDLOCK_NEVER);
  begin_acquire_of_new_lock(&options);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
    assert_int_equal(fake_next(world, 0), FAKE_SET);
    memcpy(tokens[i], fake_answer(world, 0).token, sizeof tokens[i]);
    fake_pass(world, 300 * MS);
  }
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  assert_string_not_equal(tokens[0], tokens[1]);
  assert_string_not_equal(tokens[1], tokens[2]);
  assert_string_not_equal(tokens[0], tokens[2]);
  assert_int_equal(world->nodes[0].sets, 3);
}

TEST(late_grant_does_not_count_in_next_attempt) {
  world = fake_world_new(3);
  redlock_options options = fake_once();
  options.retry_count = 1;
  options.retry_delay_us = REDLOCK_DURATION_NONE;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  fake_store_put(&world->nodes[1].store, KEY, OTHER, REDLOCK_NEVER);
  fake_store_put(&world->nodes[2].store, KEY, OTHER, REDLOCK_NEVER);
  begin_acquire_of_new_lock(&options);
  fake_answer(world, 1);
  fake_answer(world, 2);
  fake_pass(world, MS);
  /* Attempt 2 is out on all nodes; node 0 has not answered attempt 1 yet. */
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(world->nodes[0].sets, 2);
  fake_store_remove(&world->nodes[1].store, KEY);
  assert_int_equal(fake_answer(world, 1).verb, FAKE_SET);
  assert_int_equal(fake_answer(world, 0).verb, FAKE_SET); /* granted, of attempt 1 */
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(lock->quorum.granted, 1);
  assert_int_equal(fake_answer(world, 0).verb, FAKE_RELEASE);
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  assert_int_equal(fake_answer(world, 0).verb, FAKE_SET);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
  assert_int_equal(fake_holders(world, KEY, rl_attempt_token(lock->lease)), 2);
}

TEST(broken_connection_makes_vote_unknown_and_next_one_sends_release) {
  char reply[FAKE_REPLY_MAX];
  open_world_and_begin_single_attempt(3);
  (void)fake_execute(world, 0, reply); /* executed; the reply is lost */
  fake_break(world, 0, "Connection reset by peer");
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_UNKNOWN);
  assert_true(lock->votes[0].settled);
  assert_string_equal(rl_round_reason(lock, 0), "Connection reset by peer");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_store_put(&world->nodes[1].store, KEY, OTHER, REDLOCK_NEVER);
  fake_answer(world, 1);
  fake_answer(world, 2);
  fake_answer_tests(world, lock);
  assert_error(rl_lock_result(lock), REDLOCK_E_TAKEN);
  fake_pass(world, 50 * MS);
  fake_settle(world);
  assert_int_equal(world->nodes[0].connections, 2);
  assert_int_equal(world->nodes[0].sets, 1); /* never sent again */
  assert_int_equal(world->nodes[0].releases, 1);
  assert_null(fake_store_token(&world->nodes[0].store, world->now_us, KEY));
}

TEST(unknown_vote_is_not_granted) {
  open_world_and_begin_single_attempt(3);
  fake_answer(world, 0);
  fake_break(world, 1, "Connection reset by peer");
  assert_int_equal(rl_lock_result(lock), REDLOCK_PENDING);
  fake_break(world, 2, "Connection reset by peer");
  assert_error(rl_lock_result(lock), REDLOCK_E_UNAVAILABLE);
}

/* -------------------------------------------------------------------------------------- replies */

typedef struct reply_case {
  const char *reply;
  redlock_vote vote;
  bool breaks;
  const char *error; /* what votes() shows */
} reply_case;

static const reply_case reply_cases[] = {
    {"+OK\r\n", REDLOCK_VOTE_GRANTED, false, ""},
    {"$-1\r\n", REDLOCK_VOTE_TAKEN, false, ""},
    {"*-1\r\n", REDLOCK_VOTE_TAKEN, false, ""},
    {"-WRONGTYPE Operation against a key\r\n", REDLOCK_VOTE_TAKEN, false,
     "WRONGTYPE Operation against a key"},
    {"-ERR Error running script: WRONGTYPE Operation\r\n", REDLOCK_VOTE_TAKEN, false,
     "ERR Error running script: WRONGTYPE Operation"},
    {"-LOADING Redis is loading\r\n", REDLOCK_VOTE_ERROR, false, "LOADING Redis is loading"},
    {"-READONLY You can't write\r\n", REDLOCK_VOTE_ERROR, true, "READONLY You can't write"},
    {"-NOAUTH Authentication required.\r\n", REDLOCK_VOTE_ERROR, false,
     "NOAUTH Authentication required."},
    {"-NOPERM no permissions\r\n", REDLOCK_VOTE_ERROR, false, "NOPERM no permissions"},
    {"-OOM command not allowed\r\n", REDLOCK_VOTE_ERROR, false, "OOM command not allowed"},
    {"-MISCONF Redis is configured\r\n", REDLOCK_VOTE_ERROR, false, "MISCONF Redis is configured"},
    {"-MOVED 3999 127.0.0.1:6381\r\n", REDLOCK_VOTE_ERROR, false, "MOVED 3999 127.0.0.1:6381"},
    {"-MASTERDOWN Link is down\r\n", REDLOCK_VOTE_ERROR, false, "MASTERDOWN Link is down"},
    {"-NOREPLICAS Not enough\r\n", REDLOCK_VOTE_ERROR, true, "NOREPLICAS Not enough"},
    {"-NOSCRIPT no\r\n", REDLOCK_VOTE_ERROR, false, "NOSCRIPT no"}, /* of a SET: only an error */
    {"-ERR max number of clients\r\n", REDLOCK_VOTE_ERROR, false, "ERR max number of clients"},
    {"-\r\n", REDLOCK_VOTE_ERROR, false, "an error without a text"},
    {"+QUEUED\r\n", REDLOCK_VOTE_ERROR, true, NULL},
    {"+ok\r\n", REDLOCK_VOTE_ERROR, true, NULL},
    {"+OKAY\r\n", REDLOCK_VOTE_ERROR, true, NULL},
    {"+\r\n", REDLOCK_VOTE_ERROR, true, NULL},
    {":1\r\n", REDLOCK_VOTE_ERROR, true, NULL},
    {"$2\r\nOK\r\n", REDLOCK_VOTE_ERROR, true, NULL},
    {"*0\r\n", REDLOCK_VOTE_ERROR, true, NULL},
    {"*1\r\n+OK\r\n", REDLOCK_VOTE_ERROR, true, NULL},
    {"HTTP/1.1 400 Bad Request\r\n", REDLOCK_VOTE_UNKNOWN, true, NULL},
    {"$2000000000\r\n", REDLOCK_VOTE_UNKNOWN, true, NULL},
};

/* Only the exact success reply is a vote for the lock. */
TEST(only_ok_grants) {
  for (unsigned i = 0; i < COUNT_OF(reply_cases); i++) {
    const reply_case *row = &reply_cases[i];
    open_world_and_begin_single_attempt(2);
    unsigned before = world->nodes[0].connections;
    fake_reply(world, 0, row->reply);
    assert_int_equal(lock->votes[0].vote, row->vote);
    assert_true(lock->votes[0].settled);
    if (row->error != NULL) {
      assert_string_equal(rl_round_reason(lock, 0), row->error);
    } else {
      assert_string_not_equal(rl_round_reason(lock, 0), "");
    }
    fake_pass(world, 50 * MS);
    assert_int_equal(world->nodes[0].connections, before + (row->breaks ? 1 : 0));
  }
}

/*
 * Servers and proxies quote what they were sent, and cut it, also within the label. @ stands for
 * the digits of the token, which alone are the secret.
 */
TEST(quoted_token_is_masked_in_votes) {
  static const char *const quoted[] = {
      "-ERR unknown command 'SET', with args beginning with: 'orders:42' '@' 'NX' 'PX'\r\n",
      "-READONLY @@ is what you can't write\r\n",
      "-ERR in the middle of a long text xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx@\r\n",
      "-ERR unknown command 'SET', with args: '@:\r\n",
      "-ERR unknown command 'SET', with args: '@:host a\r\n",
      "-ERR unknown command 'SET', with args: '@:host a, pid 7\r\n",
      "-ERR unknown command 'SET', with args: '@:host a, pid 7' 'NX'\r\n",
  };
  for (unsigned i = 0; i < 2 * COUNT_OF(quoted); i++) {
    char reply[512] = "";
    char begins[9];
    redlock_options options = fake_once();
    options.label = i % 2 == 0 ? NULL : "host a, pid 7";
    open_world_and_begin_acquire(1, &options);
    const char *token = rl_attempt_token(lock->attempt);
    assert_string_equal(token + REDLOCK_TOKEN_LENGTH, i % 2 == 0 ? "" : ":host a, pid 7");
    (void)snprintf(begins, sizeof begins, "%.8s", token);
    for (const char *at = quoted[i / 2]; *at != '\0'; at++) {
      strncat(reply, *at == '@' ? token : at, *at == '@' ? REDLOCK_TOKEN_LENGTH : 1);
    }
    (void)fake_reply(world, 0, reply);
    const char *reason = rl_round_reason(lock, 0);
    assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_ERROR);
    assert_non_null(strstr(reason, "********"));
    assert_null(strstr(reason, begins));
    assert_null(strstr(world->core.nodes[0]->error, begins));
  }
}

/* The label of an acquire replaces that of its lock, which replaces that of the client. */
TEST(token_has_the_label_of_the_acquire) {
  static const struct {
    const char *of_client, *of_lock, *of_acquire, *expected;
  } cases[] = {
      {NULL, NULL, NULL, ""},
      {"client", NULL, NULL, ":client"},
      {"client", "lock", NULL, ":lock"},
      {"client", "lock", "acquire", ":acquire"},
      {"client", "", NULL, ""},
      {"client", "", "acquire", ":acquire"},
      {"client", NULL, "", ""},
      {NULL, NULL, "\xc3\xa9", ":\xc3\xa9"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_options of_client = {.label = cases[i].of_client};
    redlock_options of_lock = fake_once();
    redlock_options of_acquire = {.label = cases[i].of_acquire};
    of_lock.label = cases[i].of_lock;
    world = fake_world_new(3);
    assert_null(rl_options_read(&world->core.options, &of_client));
    rl_options options = world->core.options;
    assert_null(rl_options_read(&options, &of_lock));
    lock = rl_lock_new(&world->core, KEY, strlen(KEY), &options);
    assert_error(acquire(lock, &of_acquire), REDLOCK_OK);
    const char *token = rl_attempt_token(lock->lease);
    assert_string_equal(token + REDLOCK_TOKEN_LENGTH, cases[i].expected);
    assert_int_equal(lock->lease->token_length, strlen(token));
    assert_int_equal(fake_keys(world, KEY), 3);
    assert_error(extend(lock, 0), REDLOCK_OK);
    assert_error(release(lock), REDLOCK_OK);
    assert_int_equal(fake_keys(world, KEY), 0);
  }
}

TEST(label_of_unprintable_bytes_is_refused) {
  char message[256];
  char longer[REDLOCK_LABEL_MAX + 2];
  memset(longer, 'x', sizeof longer);
  longer[REDLOCK_LABEL_MAX + 1] = '\0';
  const char *const wrong[] = {longer, "line\nbreak", "\xff", "\xc3"};
  for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
    redlock_options options = {.label = wrong[i]};
    world = fake_world_new(3);
    lock = fake_lock(world, KEY, NULL);
    assert_error(rl_lock_acquire(lock, world->now_us, &options, false), REDLOCK_E_INVALID);
    assert_string_equal(rl_lock_message(lock, message, sizeof message),
                        "'orders:42': label must be at most 64 bytes of UTF-8 without control "
                        "characters");
  }
}

TEST(unexpected_reply_ends_connection) {
  open_world_and_begin_single_attempt(3);
  fake_reply(world, 0, "+OK\r\n+OK\r\n");
  assert_int_equal(lock->votes[0].vote, REDLOCK_VOTE_GRANTED);
  assert_int_equal(world->nodes[0].connections, 2);
  fake_answer(world, 1);
  assert_error(rl_lock_result(lock), REDLOCK_OK);
}

TEST(refusing_nodes_do_not_make_a_busy_loop) {
  world = fake_world_new(1);
  world->nodes[0].policy = FAKE_REFUSES;
  lock = fake_lock(world, KEY, NULL);
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

TEST(taken_lock_is_reported_when_the_budget_expires) {
  world = fake_world_new(3);
  char message[256];
  assert_error(fake_acquire(world, fake_lock(world, KEY, NULL)), REDLOCK_OK);
  redlock_options options = fake_once();
  options.retry_count = 0;
  options.retry_delay_us = 20 * MS;
  options.retry_jitter_us = REDLOCK_DURATION_NONE;
  options.wait_us = 50 * MS;
  lock = fake_lock(world, KEY, &options);
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
