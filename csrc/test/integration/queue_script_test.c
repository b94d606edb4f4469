/*
 * The scripts of the queues, asked of a real server as the library asks them.
 *
 * SPDX-License-Identifier: MIT
 *
 * A queue is a string beside the key: nothing of it may stay for ever, and what is no queue of ours is left as it is.
 */
#include "support.h"
#include "wire/rl_command.h"

#define KEY "r"
#define QUEUE KEY ":redlock-queue"
#define SIGN KEY ":redlock-wait"
#define TOKEN "0123456789012345678901234567890123456789"
#define ENTRY 24 /* bytes of who stands there */

static const char A[] = "000000000000000a00010000", B[] = "000000000000000b00010000",
                  C[] = "000000000000000c00010000";

static const char *ask(const char *command, const char *first, const char *second) {
  return farm_command(&five, 0, command, first, second, NULL);
}

static long long number(const char *answer) {
  assert_non_null(answer);
  return strtoll(answer, NULL, 10);
}

static long long stand(const char *entry, unsigned mode) {
  char digits[16];
  (void)snprintf(digits, sizeof digits, "%u", mode);
  return number(farm_command(&five, 0, "EVAL", rl_command_script_text(RL_SCRIPT_ENQUEUE), "1", KEY,
                             entry, digits, NULL));
}

static const char *leave(const char *entry) {
  return farm_command(&five, 0, "EVAL", rl_command_script_text(RL_SCRIPT_DEQUEUE), "1", KEY, entry,
                      NULL);
}

/* |entry| is NULL for who has not waited. */
static long long give_back(const char *entry) {
  return number(farm_command(&five, 0, "EVAL", rl_command_script_text(RL_SCRIPT_RELEASE_NOTIFY),
                             "1", KEY, TOKEN, entry, NULL));
}

static void hold(void) {
  assert_string_equal(farm_command(&five, 0, "SET", KEY, TOKEN, "NX", "PX", "60000", NULL), "OK");
}

/* |first| and those behind it, so many of them that it is full. */
static void fill(const char *first) {
  (void)farm_command(&five, 0, "EVAL",
                     "redis.call('SET',KEYS[1],ARGV[1]..string.rep(ARGV[2],1023),'PX',60000)", "1",
                     QUEUE, first, C, NULL);
}

static void assert_stand(const char *first, const char *second) {
  char all[2 * ENTRY + 1];
  (void)snprintf(all, sizeof all, "%s%s", first, second);
  assert_string_equal(ask("GET", QUEUE, NULL), all);
}

/* Whatever is left, goes by itself. */
static void assert_ends(void) {
  static const char *const keys[] = {QUEUE, SIGN};
  for (unsigned i = 0; i < 2; i++) {
    long long left_ms = number(ask("PTTL", keys[i], NULL));
    assert_true(left_ms == -2 || (left_ms > 0 && left_ms <= 60000));
  }
}

/* A client that listens, whose place is none of the test's: its channel is put into |entry|. */
static redlock_client *hear(redlock_lock **lock, char entry[ENTRY + 1]) {
  redlock_options options = {.wait_us = 600 * REDLOCK_SECONDS,
                             .node_timeout_us = MS(5000),
                             .ttl_us = MS(60000),
                             .retry_delay_us = MS(20)};
  redlock_client *client = client_of(&five, 5, &options);
  for (unsigned i = 0; i < 5; i++) {
    (void)farm_command(&five, i, "SET", "heard", "x", "PX", "60000", NULL);
  }
  *lock = new_lock(client, "heard");
  assert_int_equal(redlock_lock_acquire_start(*lock, NULL), REDLOCK_OK);
  const char *queue;
  eventually((pump(client, 1), queue = ask("GET", "heard:redlock-queue", NULL),
              queue != NULL && strlen(queue) == ENTRY));
  (void)snprintf(entry, ENTRY + 1, "%.16sffff0001", queue);
  return client;
}

/* -------------------------------------------------------------------------------------- tests */

static void who_joins_others_is_told_its_position_and_nothing_else(void **state) {
  (void)state;
  hold();
  assert_in_range(stand(A, RL_COMMAND_ENQUEUE_NEW) - 1, 30000LL * 2000, 60002LL * 2000);
  (void)ask("PEXPIRE", QUEUE, "20000");
  assert_int_equal(stand(B, RL_COMMAND_ENQUEUE_APPEND), 2000 + 2);
  assert_stand(A, B);
  assert_in_range(number(ask("PTTL", QUEUE, NULL)), 1, 20000);
}

static void who_joins_nobody_is_told_all_and_leaves_nothing_that_does_not_end(void **state) {
  (void)state;
  assert_int_equal(stand(A, RL_COMMAND_ENQUEUE_APPEND), 0);
  assert_stand(A, "");
  assert_ends();
  assert_string_equal(leave(A), "1");
  assert_int_equal(number(farm_command(&five, 0, "EXISTS", QUEUE, SIGN, NULL)), 0);
  hold();
  long long answer = stand(A, RL_COMMAND_ENQUEUE_APPEND);
  assert_int_equal(answer % 2000, 1);
  assert_in_range(answer / 2000, 30000, 60002);
  assert_ends();
}

static void who_stands_already_is_found_and_lets_the_queue_live_on(void **state) {
  (void)state;
  hold();
  (void)stand(A, RL_COMMAND_ENQUEUE_NEW);
  (void)stand(B, RL_COMMAND_ENQUEUE_NEW);
  (void)ask("PEXPIRE", QUEUE, "20000");
  assert_int_equal(stand(B, RL_COMMAND_ENQUEUE_CHECK) % 2000, 2);
  assert_stand(A, B);
  assert_in_range(number(ask("PTTL", QUEUE, NULL)), 30000, 60000);
  assert_int_equal(stand(C, RL_COMMAND_ENQUEUE_CHECK) % 2000, 3);
  assert_ends();
}

/* Or it would take itself for the first. */
static void in_a_full_queue_nobody_is_told_that_the_key_is_free(void **state) {
  static const unsigned modes[] = {RL_COMMAND_ENQUEUE_NEW, RL_COMMAND_ENQUEUE_CHECK,
                                   RL_COMMAND_ENQUEUE_APPEND};
  (void)state;
  redlock_lock *lock;
  char heard[ENTRY + 1];
  redlock_client *client = hear(&lock, heard);
  fill(heard);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(stand(A, modes[i]), 2000); /* The first hears its call. */
    hold();
    assert_int_equal(stand(A, modes[i]) % 2000, 0);
    (void)ask("DEL", KEY, NULL);
    assert_int_equal(number(ask("STRLEN", QUEUE, NULL)), 1024 * ENTRY);
    assert_ends();
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void all_who_are_dead_leave_it_with_one_call(void **state) {
  (void)state;
  fill(A);
  (void)ask("SET", SIGN, "1");
  hold();
  assert_int_equal(give_back(NULL), 1);
  assert_int_equal(number(farm_command(&five, 0, "EXISTS", QUEUE, SIGN, NULL)), 0);
}

static void a_release_calls_who_is_first_and_lives(void **state) {
  (void)state;
  redlock_lock *lock;
  char heard[ENTRY + 1];
  redlock_client *client = hear(&lock, heard);
  hold();
  (void)stand(A, RL_COMMAND_ENQUEUE_NEW);
  (void)stand(heard, RL_COMMAND_ENQUEUE_NEW);
  (void)stand(B, RL_COMMAND_ENQUEUE_NEW);
  assert_int_equal(give_back(NULL), 2);
  assert_stand(heard, B);
  assert_ends();
  hold();
  (void)stand(C, RL_COMMAND_ENQUEUE_NEW);
  assert_int_equal(give_back(B), 2); /* Who has waited leaves it, wherever it stands. */
  assert_stand(heard, C);
  assert_int_equal(give_back(C), 0); /* The key is gone; the others are called all the same. */
  assert_stand(heard, "");
  assert_ends();
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/* How many commands the server has executed, of all kinds but those of the test. */
static long long executed(void) {
  static const char *const names[] = {"evalsha", "eval", "set",     "append", "get",
                                      "mget",    "pttl", "pexpire", "del",    "publish"};
  const char *info = farm_command(&five, 0, "INFO", "commandstats", NULL);
  long long calls = 0;
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", names[i]);
    const char *found = info == NULL ? NULL : strstr(info, name);
    calls += found == NULL ? 0 : strtoll(found + strlen(name), NULL, 10);
  }
  return calls;
}

static void a_hand_over_costs_a_node_eight_commands(void **state) {
  (void)state;
  redlock_lock *lock;
  char heard[ENTRY + 1];
  redlock_client *client = hear(&lock, heard);
  hold();
  (void)stand(A, RL_COMMAND_ENQUEUE_NEW);
  (void)stand(heard, RL_COMMAND_ENQUEUE_APPEND);
  (void)farm_command(&five, 0, "CONFIG", "RESETSTAT", NULL);
  long long before = executed();
  assert_int_equal(give_back("000000000000000a00010000"), 2); /* EVAL MGET DEL PUBLISH SET */
  hold();                                                     /* SET */
  (void)stand(B, RL_COMMAND_ENQUEUE_APPEND);                  /* EVAL APPEND */
  assert_int_equal(executed() - before, 8); /* One in sixteen lets the sign live on, too. */
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void a_key_that_is_no_queue_is_left_as_it_is(void **state) {
  static const unsigned modes[] = {RL_COMMAND_ENQUEUE_NEW, RL_COMMAND_ENQUEUE_CHECK, 2};
  (void)state;
  for (unsigned kind = 0; kind < 2; kind++) {
    (void)ask("DEL", QUEUE, NULL);
    (void)(kind == 0 ? ask("SET", QUEUE, "precious") : ask("RPUSH", QUEUE, "precious"));
    for (unsigned i = 0; i < 3; i++) {
      (void)ask("DEL", KEY, NULL);
      char digits[16];
      (void)snprintf(digits, sizeof digits, "%u", modes[i]);
      const char *answer = farm_command(&five, 0, "EVAL", rl_command_script_text(RL_SCRIPT_ENQUEUE),
                                        "1", KEY, A, digits, NULL);
      assert_non_null(strstr(answer, "WRONGTYPE"));
      hold();
      assert_int_equal(give_back(A), 1); /* And it does not say that nobody may be called. */
      assert_string_equal(leave(A), "0");
    }
    hold();
    (void)ask("SET", SIGN, "1");
    assert_int_equal(give_back(NULL), 1);
    assert_int_equal(number(ask("PTTL", QUEUE, NULL)), -1);
    assert_int_equal(number(ask(kind == 0 ? "STRLEN" : "LLEN", QUEUE, NULL)), kind == 0 ? 8 : 1);
  }
}

static void a_key_that_lives_for_ages_does_not_overflow_the_answer(void **state) {
  (void)state;
  (void)farm_command(&five, 0, "SET", KEY, TOKEN, "PX", "5000000000000000", NULL);
  long long answer = stand(A, RL_COMMAND_ENQUEUE_NEW);
  assert_int_equal(answer % 2000, 1);
  assert_true(answer / 2000 > 1000LL * 3600 * 24 * 365);
  (void)farm_command(&five, 0, "PERSIST", KEY, NULL);
  assert_int_equal(stand(A, RL_COMMAND_ENQUEUE_CHECK), 2000 + 1);
}

/* Nobody has the key there, then: who waits looks, and stands there again when there is memory. */
static void a_queue_that_there_is_no_memory_for_is_given_up(void **state) {
  (void)state;
  hold();
  (void)stand(A, RL_COMMAND_ENQUEUE_NEW);
  (void)stand(B, RL_COMMAND_ENQUEUE_NEW);
  (void)farm_command(&five, 0, "CONFIG", "SET", "maxmemory", "1", NULL);
  long long left = number(leave(B));
  const char *answer = farm_command(&five, 0, "EVAL", rl_command_script_text(RL_SCRIPT_ENQUEUE),
                                    "1", KEY, B, "0", NULL);
  assert_non_null(strstr(answer, "OOM"));
  (void)farm_command(&five, 0, "CONFIG", "SET", "maxmemory", "0", NULL);
  assert_int_equal(left, 1);
  assert_string_equal(ask("GET", QUEUE, NULL), "(nil)");
}

#define TEST(name) cmocka_unit_test_setup(name, five_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(who_joins_others_is_told_its_position_and_nothing_else),
      TEST(who_joins_nobody_is_told_all_and_leaves_nothing_that_does_not_end),
      TEST(who_stands_already_is_found_and_lets_the_queue_live_on),
      TEST(in_a_full_queue_nobody_is_told_that_the_key_is_free),
      TEST(all_who_are_dead_leave_it_with_one_call),
      TEST(a_release_calls_who_is_first_and_lives),
      TEST(a_hand_over_costs_a_node_eight_commands),
      TEST(a_key_that_is_no_queue_is_left_as_it_is),
      TEST(a_key_that_lives_for_ages_does_not_overflow_the_answer),
      TEST(a_queue_that_there_is_no_memory_for_is_given_up),
  };
  return cmocka_run_group_tests_name("queue", tests, five_start, five_end);
}
