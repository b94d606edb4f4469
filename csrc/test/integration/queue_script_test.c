/*
 * The scripts of the queues on a real server, called as the library calls them.
 *
 * SPDX-License-Identifier: MIT
 *
 * A queue is a string beside the key. It must expire, and a key that is no queue must stay
 * unchanged.
 */
#include "support.h"
#include "wire/rl_command.h"

#define KEY "r"
#define QUEUE KEY ":redlock-queue"
#define FLAG KEY ":redlock-wait" /* the waiters flag */
#define TOKEN "0123456789012345678901234567890123456789"
#define ENTRY 24 /* bytes of one entry of a queue */

static const char A[] = "000000000000000a00010000", B[] = "000000000000000b00010000",
                  C[] = "000000000000000c00010000";

static const char *node_command(const char *command, const char *first, const char *second) {
  return farm_command(&five, 0, command, first, second, NULL);
}

static long long number(const char *reply) {
  assert_non_null(reply);
  return strtoll(reply, NULL, 10);
}

static const char *enqueue_reply(const char *key, const char *entry, unsigned mode) {
  char digits[16];
  (void)snprintf(digits, sizeof digits, "%u", mode);
  return farm_command(&five, 0, "EVAL", rl_script_text(RL_SCRIPT_ENQUEUE), "1", key, entry, digits,
                      NULL);
}

/* Returns the position in the queue, and 2000 times the remaining lifetime of the key in ms. */
static long long enqueue(const char *entry, unsigned mode) {
  return number(enqueue_reply(KEY, entry, mode));
}

static const char *dequeue(const char *entry) {
  return farm_command(&five, 0, "EVAL", rl_script_text(RL_SCRIPT_DEQUEUE), "1", KEY, entry, NULL);
}

/* Releases the key. |entry| is NULL for a holder that has not waited. */
static long long release(const char *entry) {
  return number(farm_command(&five, 0, "EVAL", rl_script_text(RL_SCRIPT_RELEASE_NOTIFY), "1", KEY,
                             TOKEN, entry, NULL));
}

static void hold(void) {
  assert_string_equal(farm_command(&five, 0, "SET", KEY, TOKEN, "NX", "PX", "60000", NULL), "OK");
}

/* Fills the queue with |first| and entries of disconnected clients. */
static void fill(const char *first) {
  (void)farm_command(&five, 0, "EVAL",
                     "redis.call('SET',KEYS[1],ARGV[1]..string.rep(ARGV[2],1023),'PX',60000)", "1",
                     QUEUE, first, C, NULL);
}

static void assert_queue(const char *first, const char *second) {
  char all[2 * ENTRY + 1];
  (void)snprintf(all, sizeof all, "%s%s", first, second);
  assert_string_equal(node_command("GET", QUEUE, NULL), all);
}

/* The keys beside the lock are gone or expire. */
static void assert_expires(void) {
  static const char *const keys[] = {QUEUE, FLAG};
  for (unsigned i = 0; i < 2; i++) {
    long long left_ms = number(node_command("PTTL", keys[i], NULL));
    assert_true(left_ms == -2 || (left_ms > 0 && left_ms <= 60000));
  }
}

/* Makes a client that waits for another lock, which is returned, and |entry| with its channel. */
static redlock_lock *subscribe(char entry[ENTRY + 1]) {
  redlock_options options = {.wait_us = 600 * REDLOCK_SECONDS,
                             .node_timeout_us = MS(5000),
                             .ttl_us = MS(60000),
                             .retry_delay_us = MS(20)};
  redlock_client *client = client_of(&five, 5, &options);
  farm_command_all(&five, "SET", "other", "x", "PX", "60000", NULL);
  redlock_lock *lock = new_lock(client, "other");
  assert_int_equal(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  const char *queue;
  eventually((pump(client, 1), queue = node_command("GET", "other:redlock-queue", NULL),
              queue != NULL && strlen(queue) == ENTRY));
  (void)snprintf(entry, ENTRY + 1, "%.16sffff0001", queue);
  return lock;
}

/* -------------------------------------------------------------------------------------- tests */

TEST(append_behind_waiters_returns_the_position) {
  hold();
  assert_in_range(enqueue(A, RL_COMMAND_ENQUEUE_NEW) - 1, 30000LL * 2000, 60002LL * 2000);
  (void)node_command("PEXPIRE", QUEUE, "20000");
  assert_int_equal(enqueue(B, RL_COMMAND_ENQUEUE_APPEND), 2000 + 2);
  assert_queue(A, B);
  assert_in_range(number(node_command("PTTL", QUEUE, NULL)), 1, 20000);
}

/* Returns the reply to ENQUEUE_LABEL, and checks that its number is that of ENQUEUE. */
static const char *label_reply(const char *entry, const char *token, const char *mode) {
  static char reply[256];
  if (token != NULL) {
    (void)farm_command(&five, 0, "SET", KEY, token, "PX", "60000", NULL);
  }
  (void)snprintf(reply, sizeof reply, "%s",
                 farm_command(&five, 0, "EVAL", rl_script_text(RL_SCRIPT_ENQUEUE_LABEL), "1", KEY,
                              entry, mode, NULL));
  const char *label = strchr(reply, ':');
  if (token != NULL && strcmp(mode, "0") == 0) {
    assert_in_range(number(reply) - 1, 30000LL * 2000, 60002LL * 2000);
  }
  (void)node_command("DEL", QUEUE, NULL);
  return label != NULL ? label : "";
}

TEST(enqueue_returns_the_label_of_the_holder) {
  static const char *const tokens[][2] = {
      {TOKEN ":host a, pid 7", ":host a, pid 7"},
      {TOKEN ":n\xc3\xa4"
             "chtlich",
       ":n\xc3\xa4"
       "chtlich"},
      {TOKEN ":line\nbreak", ":line\nbreak"}, /* The client checks it. */
      {TOKEN ":a:b", ":a:b"},
      {TOKEN ":1234567890123456789012345678901234567890123456789012345678901234",
       ":1234567890123456789012345678901234567890123456789012345678901234"},
      {TOKEN ":12345678901234567890123456789012345678901234567890123456789012345", ""},
      {TOKEN, ""},
      {TOKEN ":", ""},
      {TOKEN "0:label", ""},
      {"0" TOKEN, ""},
      {"x:label", ""},
      {"", ""},
  };
  for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
    assert_string_equal(label_reply(A, tokens[i][0], "0"), tokens[i][1]);
  }
  (void)node_command("DEL", KEY, NULL);
  assert_string_equal(label_reply(A, NULL, "0"), "");
  (void)farm_command(&five, 0, "HSET", KEY, "field", "1", NULL);
  assert_string_equal(label_reply(A, NULL, "0"), "");
  (void)node_command("DEL", KEY, NULL);
}

TEST(append_to_an_empty_queue_returns_the_state_of_the_key) {
  assert_int_equal(enqueue(A, RL_COMMAND_ENQUEUE_APPEND), 0);
  assert_queue(A, "");
  assert_expires();
  assert_string_equal(dequeue(A), "1");
  assert_int_equal(number(farm_command(&five, 0, "EXISTS", QUEUE, FLAG, NULL)), 0);
  hold();
  long long reply = enqueue(A, RL_COMMAND_ENQUEUE_APPEND);
  assert_int_equal(reply % 2000, 1);
  assert_in_range(reply / 2000, 30000, 60002);
  assert_expires();
}

TEST(repeated_enqueue_renews_the_queue) {
  hold();
  (void)enqueue(A, RL_COMMAND_ENQUEUE_NEW);
  (void)enqueue(B, RL_COMMAND_ENQUEUE_NEW);
  (void)node_command("PEXPIRE", QUEUE, "20000");
  assert_int_equal(enqueue(B, RL_COMMAND_ENQUEUE_CHECK) % 2000, 2);
  assert_queue(A, B);
  assert_in_range(number(node_command("PTTL", QUEUE, NULL)), 30000, 60000);
  assert_int_equal(enqueue(C, RL_COMMAND_ENQUEUE_CHECK) % 2000, 3);
  assert_expires();
}

/* A reply that the key is free would make the ticket the first one. */
TEST(full_queue_rejects_waiters) {
  static const unsigned modes[] = {RL_COMMAND_ENQUEUE_NEW, RL_COMMAND_ENQUEUE_CHECK,
                                   RL_COMMAND_ENQUEUE_APPEND};
  char live[ENTRY + 1];
  redlock_lock *lock = subscribe(live);
  fill(live);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(enqueue(A, modes[i]), 2000); /* The first ticket is notified. */
    hold();
    assert_int_equal(enqueue(A, modes[i]) % 2000, 0);
    (void)node_command("DEL", KEY, NULL);
    assert_int_equal(number(node_command("STRLEN", QUEUE, NULL)), 1024 * ENTRY);
    assert_expires();
  }
  free_with_client(lock);
}

TEST(release_evicts_all_disconnected_waiters) {
  fill(A);
  (void)node_command("SET", FLAG, "1");
  hold();
  assert_int_equal(release(NULL), 1);
  assert_int_equal(number(farm_command(&five, 0, "EXISTS", QUEUE, FLAG, NULL)), 0);
}

TEST(release_notifies_the_first_connected_waiter) {
  char live[ENTRY + 1];
  redlock_lock *lock = subscribe(live);
  hold();
  (void)enqueue(A, RL_COMMAND_ENQUEUE_NEW);
  (void)enqueue(live, RL_COMMAND_ENQUEUE_NEW);
  (void)enqueue(B, RL_COMMAND_ENQUEUE_NEW);
  assert_int_equal(release(NULL), 2);
  assert_queue(live, B);
  assert_expires();
  hold();
  (void)enqueue(C, RL_COMMAND_ENQUEUE_NEW);
  assert_int_equal(release(B), 2); /* The holder is dequeued from any position. */
  assert_queue(live, C);
  assert_int_equal(release(C),
                   0); /* The key is gone, and the first ticket is notified all the same. */
  assert_queue(live, "");
  assert_expires();
  free_with_client(lock);
}

/* Several keys share the queue of their base key. */
TEST(release_of_a_key_notifies_the_queue_of_its_base_key) {
  static const char key[] = KEY "/1";
  char live[ENTRY + 1];
  redlock_lock *lock = subscribe(live);
  for (unsigned i = 0; i < 4; i++) {
    bool held = i % 2 == 0, dequeues = i < 2;
    (void)node_command("DEL", QUEUE, NULL);
    hold();
    (void)enqueue(A, RL_COMMAND_ENQUEUE_NEW);
    (void)enqueue(live, RL_COMMAND_ENQUEUE_NEW);
    (void)node_command("DEL", KEY, NULL);
    (void)node_command("SET", key, held ? TOKEN : "another token");
    assert_int_equal(number(farm_command(&five, 0, "EVAL", rl_script_text(RL_SCRIPT_RELEASE_NOTIFY),
                                         "1", key, TOKEN, dequeues ? A : "", KEY, NULL)),
                     held ? 2 : 0);
    assert_queue(held || dequeues ? "" : A, live);
    assert_int_equal(number(node_command("DEL", key, NULL)), held ? 0 : 1);
    assert_string_equal(node_command("GET", KEY "/1:redlock-queue", NULL), "(nil)");
  }
  free_with_client(lock);
}

/* ENQUEUE_ALL in the queues of KEY and of "s". */
static const char *enqueue_all(const char *entry, const char *before, const char *notified) {
  return farm_command(&five, 0, "EVAL", rl_script_text(RL_SCRIPT_ENQUEUE_ALL), "2", KEY, "s", entry,
                      before, notified, NULL);
}

static void assert_second_queue(const char *first, const char *second) {
  char all[2 * ENTRY + 1];
  (void)snprintf(all, sizeof all, "%s%s", first, second);
  assert_string_equal(node_command("GET", "s:redlock-queue", NULL), all);
}

TEST(waiter_for_two_keys_enters_both_queues_at_once) {
  hold();
  (void)enqueue(B, RL_COMMAND_ENQUEUE_NEW);
  const char *reply = enqueue_all(A, "", "");
  assert_in_range(number(reply) - 2, 30000LL * 2000, 60002LL * 2000);
  assert_non_null(strstr(reply, ":0,0,0")); /* It reserves nothing: B is first in one queue. */
  assert_queue(B, A);
  assert_second_queue(A, "");
  (void)node_command("SET", "s:redlock-queue",
                     C); /* One queue was lost: A goes to the end of both. */
  (void)node_command("SET", QUEUE, A);
  (void)enqueue(B, RL_COMMAND_ENQUEUE_CHECK);
  (void)enqueue_all(A, "", "");
  assert_queue(B, A);
  assert_second_queue(A, ""); /* C is disconnected. */
}

TEST(first_of_both_queues_reserves_the_free_key) {
  char live[ENTRY + 1], behind[ENTRY + 1];
  redlock_lock *lock = subscribe(live);
  (void)snprintf(behind, sizeof behind, "%.16sfffffffe", live);
  hold();
  assert_non_null(strstr(enqueue_all(live, "", ""), ":2,0,0"));
  assert_string_equal(node_command("GET", "s:redlock-reserved", NULL), live);
  assert_in_range(number(node_command("PTTL", "s:redlock-reserved", NULL)), 1,
                  RL_COMMAND_RESERVE_MS);
  (void)node_command("SET", "s:redlock-reserved", live); /* for as long as the test needs */
  const char *const one = rl_script_text(RL_SCRIPT_ENQUEUE);
  for (unsigned i = 0; i < 3; i++) {
    assert_string_equal(farm_command(&five, 0, "EVAL", one, "1", "s", behind, "2", NULL), "2");
    assert_second_queue(live, behind);
  }
  (void)node_command("DEL", "s:redlock-reserved", NULL); /* It asks no more: it is evicted. */
  assert_string_equal(farm_command(&five, 0, "EVAL", one, "1", "s", behind, "2", NULL), "0");
  assert_second_queue(behind, "");
  free_with_client(lock);
}

TEST(first_of_both_queues_that_yields_lets_the_next_one_take_the_free_key) {
  char live[ENTRY + 1], behind[ENTRY + 1];
  redlock_lock *lock = subscribe(live);
  (void)snprintf(behind, sizeof behind, "%.16sfffffffe", live);
  (void)node_command("DEL", QUEUE, "s:redlock-queue");
  hold();
  (void)enqueue_all(live, "", "");
  (void)node_command("DEL", "s:redlock-reserved", NULL);
  (void)farm_command(&five, 0, "APPEND", "s:redlock-queue", C, NULL); /* It is disconnected. */
  (void)farm_command(&five, 0, "APPEND", "s:redlock-queue", behind, NULL);
  assert_non_null(strstr(enqueue_all(live, "2,0,0", RL_COMMAND_YIELDS), ":0,0,0"));
  assert_string_equal(node_command("GET", "s:redlock-reserved", NULL), "(nil)");
  assert_second_queue(live, behind); /* The script notified the entry behind. */
  free_with_client(lock);
}

TEST(release_of_two_keys_notifies_both_queues_and_leaves_them) {
  char live[ENTRY + 1], behind[ENTRY + 1];
  redlock_lock *lock = subscribe(live);
  (void)snprintf(behind, sizeof behind, "%.16s00240048",
                 live); /* has lengths of queues as digits */
  for (unsigned dequeues = 0; dequeues <= 1; dequeues++) {
    (void)node_command("DEL", QUEUE, "s:redlock-queue");
    hold();
    assert_string_equal(node_command("SET", "s", TOKEN), "OK");
    (void)enqueue_all(live, "", "");
    (void)enqueue_all(behind, "", "");
    assert_int_equal(
        number(farm_command(&five, 0, "EVAL", rl_script_text(RL_SCRIPT_RELEASE_ALL_NOTIFY), "2",
                            KEY, "s", TOKEN, dequeues ? behind : NULL, NULL)),
        2);
    assert_queue(live, dequeues ? "" : behind);
    assert_second_queue(live, dequeues ? "" : behind);
    assert_string_equal(enqueue_all(live, "", ""), "0");
  }
  free_with_client(lock);
}

/* Returns the number of commands that scripts and clients have executed. */
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

TEST(release_and_next_acquire_execute_eight_commands) {
  char live[ENTRY + 1];
  redlock_lock *lock = subscribe(live);
  hold();
  (void)enqueue(A, RL_COMMAND_ENQUEUE_NEW);
  (void)enqueue(live, RL_COMMAND_ENQUEUE_APPEND);
  (void)farm_command(&five, 0, "CONFIG", "RESETSTAT", NULL);
  long long before = executed();
  assert_int_equal(release("000000000000000a00010000"), 2); /* EVAL MGET DEL PUBLISH SET */
  hold();                                                   /* SET */
  (void)enqueue(B, RL_COMMAND_ENQUEUE_APPEND);              /* EVAL APPEND */
  assert_int_equal(executed() - before, 8); /* Every sixteenth renews the waiters flag, too. */
  free_with_client(lock);
}

TEST(key_of_another_kind_stays_unchanged) {
  static const unsigned modes[] = {RL_COMMAND_ENQUEUE_NEW, RL_COMMAND_ENQUEUE_CHECK, 2};
  for (unsigned kind = 0; kind < 2; kind++) {
    (void)node_command("DEL", QUEUE, NULL);
    (void)(kind == 0 ? node_command("SET", QUEUE, "precious")
                     : node_command("RPUSH", QUEUE, "precious"));
    for (unsigned i = 0; i < 3; i++) {
      (void)node_command("DEL", KEY, NULL);
      assert_contains(enqueue_reply(KEY, A, modes[i]), "WRONGTYPE");
      hold();
      assert_int_equal(release(A), 1); /* It is no refusal of notifications. */
      assert_string_equal(dequeue(A), "0");
    }
    hold();
    (void)node_command("SET", FLAG, "1");
    assert_int_equal(release(NULL), 1);
    assert_int_equal(number(node_command("PTTL", QUEUE, NULL)), -1);
    assert_int_equal(number(node_command(kind == 0 ? "STRLEN" : "LLEN", QUEUE, NULL)),
                     kind == 0 ? 8 : 1);
  }
}

TEST(long_lifetime_does_not_overflow_the_reply) {
  (void)farm_command(&five, 0, "SET", KEY, TOKEN, "PX", "5000000000000000", NULL);
  long long reply = enqueue(A, RL_COMMAND_ENQUEUE_NEW);
  assert_int_equal(reply % 2000, 1);
  assert_true(reply / 2000 > 1000LL * 3600 * 24 * 365);
  (void)farm_command(&five, 0, "PERSIST", KEY, NULL);
  assert_int_equal(enqueue(A, RL_COMMAND_ENQUEUE_CHECK), 2000 + 1);
}

/* Waiters poll then, and enqueue again when there is memory. */
TEST(queue_without_memory_is_deleted) {
  hold();
  (void)enqueue(A, RL_COMMAND_ENQUEUE_NEW);
  (void)enqueue(B, RL_COMMAND_ENQUEUE_NEW);
  (void)farm_command(&five, 0, "CONFIG", "SET", "maxmemory", "1", NULL);
  long long left = number(dequeue(B));
  assert_contains(enqueue_reply(KEY, B, 0), "OOM");
  (void)farm_command(&five, 0, "CONFIG", "SET", "maxmemory", "0", NULL);
  assert_int_equal(left, 1);
  assert_string_equal(node_command("GET", QUEUE, NULL), "(nil)");
}

/* Waiters that poll at the same time would evict more than one entry. */
TEST(eviction_happens_only_at_the_expected_position) {
  char live[ENTRY + 1], first[ENTRY + 1], second[ENTRY + 1], all[3 * ENTRY + 1];
  redlock_lock *lock = subscribe(live);
  (void)snprintf(first, sizeof first, "%.16sffffffff", live); /* connected, and never comes */
  (void)snprintf(second, sizeof second, "%.16sfffffffe", live);
  (void)snprintf(all, sizeof all, "%s%s%s", first, second, A);
  (void)node_command("SET", QUEUE, all);
  assert_int_equal(enqueue(A, 2), 3);
  assert_int_equal(number(node_command("STRLEN", QUEUE, NULL)), 3 * ENTRY);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(enqueue(A, 3), 2);
    assert_queue(second, A);
  }
  free_with_client(lock);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = five_start, .before = five_reset, .end = five_end});
}
