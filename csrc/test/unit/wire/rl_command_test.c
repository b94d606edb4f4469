/*
 * Commands, byte for byte against what hiredis formats.
 *
 * SPDX-License-Identifier: MIT
 */
#include <hiredis/hiredis.h>

#include "rl_test.h"
#include "wire/rl_command.h"

static const char TOKEN[] = "0123456789abcdef0123456789abcdef01234567";

/* ------------------------------------------------------------------------------ byte for byte */

static rl_buffer buffer; /* of the test */
static size_t from;      /* where the next command begins */

static int begin(void **state) {
  buffer = (rl_buffer){0};
  from = 0;
  return 0;
}

static int end(void **state) {
  rl_buffer_free(&buffer);
  return 0;
}

/* The command that was appended last is that of hiredis. */
static void assert_formatted(int count, const char **words, const size_t *lengths) {
  char *formatted;
  long long length = redisFormatCommandArgv(&formatted, count, words, lengths);
  assert_true(length > 0);
  assert_int_equal(buffer.tail - from, length);
  assert_memory_equal(buffer.data + from, formatted, (size_t)length);
  redisFreeCommand(formatted);
  from = buffer.tail;
}

/* The same for words without a NUL. */
static void assert_words(int count, const char **words) {
  size_t lengths[20];
  assert_in_range(count, 1, COUNT_OF(lengths));
  for (int i = 0; i < count; i++) {
    lengths[i] = strlen(words[i]);
  }
  assert_formatted(count, words, lengths);
}

/* A key and TOKEN. */
static rl_command_key key_of(const char *key, size_t length) {
  return (rl_command_key){key, length, TOKEN, 40, 1, NULL, {NULL, 0}};
}

static const uint64_t ttls_ms[] = {0, 1, 9, 10, 99, 100, 10000, 31622400000, UINT64_MAX};

/* Keys of these lengths: lengths of one to four digits, and binary bytes in all of them. */
static const size_t key_lengths[] = {0, 1, 9, 10, 99, 100, 999, 1000, REDLOCK_KEY_MAX};

static void fill(char *key, size_t length) {
  for (size_t i = 0; i < length; i++) {
    key[i] = (char)(i * 7 + length);
  }
}

TEST(native_commands_equal_hiredis) {
  char key[REDLOCK_KEY_MAX], flag[REDLOCK_KEY_MAX + sizeof RL_COMMAND_WAIT];
  for (unsigned i = 0; i < COUNT_OF(key_lengths); i++) {
    size_t length = key_lengths[i];
    fill(key, length);
    rl_command_key name = key_of(key, length);
    const char *delifeq[] = {"DELIFEQ", key, TOKEN}, *delex[] = {"DELEX", key, "IFEQ", TOKEN};
    const size_t delifeq_lengths[] = {7, length, 40}, delex_lengths[] = {5, length, 4, 40};
    assert_true(rl_command_delete_if(&buffer, &name, false, true));
    assert_formatted(3, delifeq, delifeq_lengths);
    assert_true(rl_command_delete_if(&buffer, &name, true, true));
    assert_formatted(4, delex, delex_lengths);
    for (unsigned k = 0; k < 2; k++) { /* The second time the lock has a base key. */
      size_t base = k == 0 ? length : 5;
      name.base = k == 0 ? name.base : rl_command_word("basis");
      memcpy(flag, k == 0 ? key : "basis", base);
      memcpy(flag + base, RL_COMMAND_WAIT, strlen(RL_COMMAND_WAIT));
      const char *exists[] = {"EXISTS", flag};
      const size_t exists_lengths[] = {6, base + strlen(RL_COMMAND_WAIT)};
      assert_true(rl_command_flag(&buffer, &name));
      assert_formatted(2, exists, exists_lengths);
    }
    for (unsigned k = 0; k < COUNT_OF(ttls_ms); k++) {
      char ttl[24];
      (void)snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)ttls_ms[k]);
      const char *words[] = {"SET", key, TOKEN, "IFEQ", TOKEN, "PX", ttl};
      const size_t lengths[] = {3, length, 40, 4, 40, 2, strlen(ttl)};
      assert_true(rl_command_set_if(&buffer, &name, ttls_ms[k]));
      assert_formatted(7, words, lengths);
    }
  }
}

TEST(set_equals_hiredis) {
  char key[REDLOCK_KEY_MAX];
  for (unsigned i = 0; i < COUNT_OF(key_lengths); i++) {
    for (unsigned k = 0; k < COUNT_OF(ttls_ms); k++) {
      char ttl[24];
      (void)snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)ttls_ms[k]);
      fill(key, key_lengths[i]);
      rl_command_key name = key_of(key, key_lengths[i]);
      const char *words[] = {"SET", key, TOKEN, "NX", "PX", ttl};
      const size_t lengths[] = {3, key_lengths[i], 40, 2, 2, strlen(ttl)};
      assert_int_equal(rl_command_set(&buffer, &name, ttls_ms[k]), 1);
      assert_formatted(6, words, lengths);
    }
  }
}

static const char ENTRY[] = "00112233445566aa00000007";

/* The expected arguments of a command. */
typedef struct command_words {
  const char *words[REDLOCK_RESOURCES_MAX + 6];
  size_t lengths[REDLOCK_RESOURCES_MAX + 6];
  int count;
} command_words;

static void add(command_words *expected, const char *word, size_t length) {
  expected->words[expected->count] = word;
  expected->lengths[expected->count++] = length;
}

static void add_text(command_words *expected, const char *word) {
  add(expected, word, strlen(word));
}

static void add_script(command_words *expected, rl_script script, bool by_text) {
  expected->count = 0;
  add_text(expected, by_text ? "EVAL" : "EVALSHA");
  add_text(expected, by_text ? rl_script_text(script) : rl_script_sha1(script));
}

/* EVALSHA or EVAL, script, number of keys, keys, token, life or entry. */
static void assert_script(rl_script script, bool by_text, const rl_command_key *key,
                          uint64_t ttl_ms, const char *entry) {
  bool notifies = script == RL_SCRIPT_RELEASE_NOTIFY || script == RL_SCRIPT_RELEASE_ALL_NOTIFY;
  bool releases = notifies || script == RL_SCRIPT_RELEASE || script == RL_SCRIPT_RELEASE_ALL;
  char number[8], ttl[24];
  const char *at = key->key;
  command_words expected;
  (void)snprintf(number, sizeof number, "%u", key->count);
  (void)snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)ttl_ms);
  add_script(&expected, script, by_text);
  add_text(&expected, number);
  for (unsigned i = 0; i < key->count; i++) {
    size_t length = key->lengths == NULL ? key->key_length : key->lengths[i];
    add(&expected, at, length);
    at += length;
  }
  add_text(&expected, TOKEN);
  if (key->base.bytes != NULL) {
    add_text(&expected, entry != NULL ? entry : "");
    add(&expected, key->base.bytes, key->base.length);
  } else if (!releases || entry != NULL) {
    add_text(&expected, releases ? entry : ttl);
  }
  assert_true(notifies ? rl_command_release(&buffer, script, by_text, key, entry, true)
                       : rl_command_script(&buffer, script, by_text, key, ttl_ms, true));
  assert_formatted(expected.count, expected.words, expected.lengths);
}

TEST(scripts_equal_hiredis) {
  char key[REDLOCK_KEY_MAX];
  for (unsigned i = 0; i < COUNT_OF(key_lengths) * COUNT_OF(ttls_ms) * 2; i++) {
    size_t length = key_lengths[i / 2 / COUNT_OF(ttls_ms)];
    uint64_t ttl_ms = ttls_ms[i / 2 % COUNT_OF(ttls_ms)];
    rl_command_key name = key_of(key, length);
    fill(key, length);
    assert_script(RL_SCRIPT_RELEASE, i % 2 == 1, &name, ttl_ms, NULL);
    assert_script(RL_SCRIPT_EXTEND, i % 2 == 1, &name, ttl_ms, NULL);
    assert_script(RL_SCRIPT_RELEASE_NOTIFY, i % 2 == 1, &name, 0, NULL);
    assert_script(RL_SCRIPT_RELEASE_NOTIFY, i % 2 == 1, &name, 0, ENTRY);
    name.base = (rl_command_bytes){key, length / 2};
    assert_script(RL_SCRIPT_RELEASE_NOTIFY, i % 2 == 1, &name, 0, NULL);
    assert_script(RL_SCRIPT_RELEASE_NOTIFY, i % 2 == 1, &name, 0, ENTRY);
  }
}

TEST(scripts_of_several_keys_equal_hiredis) {
  static const unsigned counts[] = {2, 3, 9, 10, REDLOCK_RESOURCES_MAX};
  static const rl_script scripts[] = {RL_SCRIPT_RELEASE_ALL, RL_SCRIPT_EXTEND_ALL,
                                      RL_SCRIPT_ACQUIRE_ALL, RL_SCRIPT_HEAL_ALL,
                                      RL_SCRIPT_RELEASE_ALL_NOTIFY};
  static char keys[REDLOCK_RESOURCES_MAX * REDLOCK_KEY_MAX];
  uint16_t lengths[REDLOCK_RESOURCES_MAX];
  fill(keys, sizeof keys);
  for (unsigned i = 0; i < COUNT_OF(counts) * COUNT_OF(scripts) * 2; i++) {
    rl_command_key key = {keys,    0,        TOKEN, 40, counts[i / 2 / COUNT_OF(scripts)],
                          lengths, {NULL, 0}};
    for (unsigned k = 0; k < key.count; k++) {
      lengths[k] = (uint16_t)key_lengths[(k + i) % COUNT_OF(key_lengths)];
      key.key_length += lengths[k];
    }
    assert_script(scripts[i / 2 % COUNT_OF(scripts)], i % 2 == 1, &key, 10000, NULL);
  }
}

/* The counters follow the keys; the base key is the last argument. */
static void assert_hold(const rl_command_key *key, unsigned i) {
  bool by_text = i % 2 == 1, fenced = i / 2 % 2 == 1;
  rl_script script = i / 4 % 2 == 1 ? RL_SCRIPT_HOLD_NOTIFY : RL_SCRIPT_HOLD;
  const char *entry = i / 8 % 2 == 1 ? ENTRY : NULL;
  static char counters[REDLOCK_RESOURCES_MAX][REDLOCK_KEY_MAX + sizeof RL_COMMAND_COUNTER];
  char number[24], count[24];
  command_words expected;
  const char *at = key->key;
  (void)snprintf(number, sizeof number, "%u", key->count * (fenced ? 2 : 1));
  (void)snprintf(count, sizeof count, "%u", key->count);
  add_script(&expected, script, by_text);
  add_text(&expected, number);
  for (unsigned k = 0; k < key->count; k++) {
    size_t length = key->lengths == NULL ? key->key_length : key->lengths[k];
    add(&expected, at, length);
    memcpy(counters[k], at, length);
    memcpy(counters[k] + length, RL_COMMAND_COUNTER, sizeof RL_COMMAND_COUNTER);
    at += length;
  }
  for (unsigned k = 0; k < key->count && fenced; k++) {
    size_t length = key->lengths == NULL ? key->key_length : key->lengths[k];
    add(&expected, counters[k], length + sizeof RL_COMMAND_COUNTER - 1);
  }
  add_text(&expected, TOKEN);
  add_text(&expected, "31622400000");
  add_text(&expected, count);
  if (script == RL_SCRIPT_HOLD_NOTIFY) {
    add_text(&expected, entry != NULL ? entry : "");
  }
  if (script == RL_SCRIPT_HOLD_NOTIFY && key->base.bytes != NULL) {
    add(&expected, key->base.bytes, key->base.length);
  }
  assert_true(rl_command_hold(&buffer, script, by_text, key, 31622400000, fenced, entry, true));
  assert_formatted(expected.count, expected.words, expected.lengths);
}

TEST(releases_that_keep_keys_equal_hiredis) {
  static char keys[3 * REDLOCK_KEY_MAX];
  uint16_t lengths[3];
  fill(keys, sizeof keys);
  for (unsigned i = 0; i < COUNT_OF(key_lengths) * 16; i++) {
    rl_command_key one = key_of(keys, key_lengths[i / 16]);
    rl_command_key three = {keys, 0, TOKEN, 40, 3, lengths, {NULL, 0}};
    for (unsigned k = 0; k < 3; k++) {
      lengths[k] = (uint16_t)key_lengths[(k + i) % COUNT_OF(key_lengths)];
      three.key_length += lengths[k];
    }
    assert_hold(&one, i);
    assert_hold(&three, i);
    one.base = (rl_command_bytes){keys, one.key_length / 2};
    assert_hold(&one, i);
  }
}

TEST(enqueue_in_several_queues_equals_hiredis) {
  static const uint16_t lengths[] = {1, 2};
  rl_command_key key = {"abb", 3, ENTRY, 24, 2, lengths, {NULL, 0}};
  const char *expected[] = {
      "EVALSHA", rl_script_sha1(RL_SCRIPT_ENQUEUE_ALL), "2", "a", "bb", ENTRY, "0,1,2", "01"};
  assert_true(rl_command_enqueue_all(&buffer, false, &key, "0,1,2", "01"));
  assert_words(8, expected);
}

TEST(queue_scripts_equal_hiredis) {
  static const char *const modes[] = {"0", "1", "2"};
  char key[REDLOCK_KEY_MAX];
  for (unsigned i = 0; i < COUNT_OF(key_lengths) * 2 * 4; i++) {
    size_t length = key_lengths[i / 8];
    bool by_text = i / 4 % 2 == 1, enqueues = i % 4 < 3;
    rl_script script = !enqueues        ? RL_SCRIPT_DEQUEUE
                       : i / 8 % 2 == 1 ? RL_SCRIPT_ENQUEUE_LABEL
                                        : RL_SCRIPT_ENQUEUE;
    command_words expected;
    fill(key, length);
    add_script(&expected, script, by_text);
    add_text(&expected, "1");
    add(&expected, key, length);
    add_text(&expected, ENTRY);
    if (enqueues) {
      add_text(&expected, modes[i % 4]);
    }
    assert_true(rl_command_queue(&buffer, script, by_text, key, length, ENTRY, i % 4 % 3, 0));
    assert_formatted(expected.count, expected.words, expected.lengths);
  }
}

TEST(scripts_of_a_semaphore_equal_hiredis) {
  char key[REDLOCK_KEY_MAX];
  for (unsigned i = 0; i < COUNT_OF(key_lengths) * 2 * 3; i++) {
    static const rl_script scripts[] = {RL_SCRIPT_SLOTS, RL_SCRIPT_ENQUEUE_SLOTS,
                                        RL_SCRIPT_DEQUEUE_SLOTS};
    size_t length = key_lengths[i / 6];
    rl_script script = scripts[i % 3];
    bool by_text = i / 3 % 2 == 1;
    const rl_command_bytes base = {key, length};
    command_words expected;
    fill(key, length);
    add_script(&expected, script, by_text);
    add_text(&expected, "1");
    add(&expected, key, length);
    if (script != RL_SCRIPT_SLOTS) {
      add_text(&expected, ENTRY);
    }
    if (script == RL_SCRIPT_ENQUEUE_SLOTS) {
      add_text(&expected, "2");
    }
    add_text(&expected, "1024");
    assert_true(script == RL_SCRIPT_SLOTS
                    ? rl_command_slots(&buffer, by_text, &base, 1024)
                    : rl_command_queue(&buffer, script, by_text, key, length, ENTRY, 2, 1024));
    assert_formatted(expected.count, expected.words, expected.lengths);
  }
}

TEST(arguments_equal_hiredis) {
  char secret[600];
  for (size_t i = 0; i < sizeof secret; i++) {
    secret[i] = (char)i; /* every byte */
  }
  const char *auth[] = {"AUTH", "", secret};
  const char *select[] = {"SELECT", "15"};
  const size_t auth_lengths[] = {4, 0, sizeof secret - 1};
  const size_t select_lengths[] = {6, 2};
  const rl_command_bytes auth_arguments[] = {{"AUTH", 4}, {"", 0}, {secret, sizeof secret - 1}};
  const rl_command_bytes select_arguments[] = {{"SELECT", 6}, {"15", 2}};
  assert_int_equal(rl_command_arguments(&buffer, auth_arguments, 3), 1);
  assert_formatted(3, auth, auth_lengths);
  assert_int_equal(rl_command_arguments(&buffer, select_arguments, 2), 1);
  assert_formatted(2, select, select_lengths);
}

/* A token may be of any bytes, and of none. */
TEST(tokens_of_any_length_equal_hiredis) {
  char token[REDLOCK_TOKEN_MAX];
  fill(token, sizeof token);
  for (size_t length = 0; length <= sizeof token; length++) {
    rl_command_key name = {"k", 1, token, length, 1, NULL, {NULL, 0}};
    const char *set[] = {"SET", "k", token, "NX", "PX", "5"};
    const size_t set_lengths[] = {3, 1, length, 2, 2, 1};
    const char *body = rl_script_text(RL_SCRIPT_RELEASE);
    const char *release[] = {"EVAL", body, "1", "k", token};
    const size_t release_lengths[] = {4, strlen(body), 1, 1, length};
    assert_int_equal(rl_command_set(&buffer, &name, 5), 1);
    assert_formatted(6, set, set_lengths);
    assert_int_equal(rl_command_script(&buffer, RL_SCRIPT_RELEASE, 1, &name, 0, 1), 1);
    assert_formatted(5, release, release_lengths);
  }
}

/* Of one key, or of two, with all that TAKE can have, and without. */
TEST(take_equals_hiredis) {
  static const uint16_t two[] = {1, 2};
  for (unsigned i = 0; i < 16; i++) {
    bool both = (i & 1) != 0, fenced = (i & 2) != 0, guarded = (i & 4) != 0, by_text = (i & 8) != 0;
    rl_command_key key = {"abb",        both ? 3 : 1,      TOKEN,    40,
                          both ? 2 : 0, both ? two : NULL, {NULL, 0}};
    rl_command_fence watch = {.script = RL_SCRIPT_TAKE,
                              .by_text = by_text,
                              .own = fenced,
                              .fence = fenced ? 1763000000000000 : 0,
                              .ttl_ms = 10000,
                              .seal = guarded ? "redlock:lineage 5" : NULL,
                              .run_id = by_text ? "0123" : NULL};
    const char *words[20] = {by_text ? "EVAL" : "EVALSHA", by_text
                                                               ? rl_script_text(RL_SCRIPT_TAKE)
                                                               : rl_script_sha1(RL_SCRIPT_TAKE)};
    int count = 3;
    words[count++] = "a";
    if (both) {
      words[count++] = "bb";
    }
    if (fenced) {
      words[count++] = "a:redlock-fence";
    }
    if (fenced && both) {
      words[count++] = "bb:redlock-fence";
    }
    if (guarded) {
      words[count++] = "redlock:lineage 5";
    }
    char keys[2] = {(char)('0' + count - 3), '\0'};
    words[2] = keys;
    words[count++] = TOKEN;
    words[count++] = "10000";
    words[count++] = both ? "2" : "1";
    words[count++] = fenced ? "1" : "0";
    words[count++] = fenced ? "1763000000000000" : "0";
    words[count++] = guarded ? "1" : "";
    words[count++] = by_text ? "0123" : "";
    assert_int_equal(rl_command_fenced(&buffer, &key, &watch), 1);
    assert_words(count, words);
  }
}

TEST(prolong_and_confirm_equal_hiredis) {
  rl_command_key key = key_of("a", 1);
  rl_command_fence keep = {
      .script = RL_SCRIPT_PROLONG, .body = "text", .by_text = true, .fence = 7, .ttl_ms = 5};
  rl_command_fence confirm = {.script = RL_SCRIPT_CONFIRM, .fence = 8, .ttl_ms = 5};
  const char *kept[] = {"EVAL", "text", "2", "a", "a:redlock-fence", TOKEN, "5", "1", "7"};
  const char *sha1 = rl_script_sha1(RL_SCRIPT_CONFIRM);
  const char *confirmed[] = {"EVALSHA", sha1, "2", "a", "a:redlock-fence", TOKEN, "5", "1", "8"};
  assert_int_equal(rl_command_fenced(&buffer, &key, &keep), 1);
  assert_words(9, kept);
  assert_int_equal(rl_command_fenced(&buffer, &key, &confirm), 1);
  assert_words(9, confirmed);
}

TEST(guard_script_equals_hiredis) {
  const char *text = rl_script_guard_text();
  const char *words[] = {
      "EVAL", text, "1", "key", "clock", "n=5 q=3", "30000000", "r 1 new n=5 q=3", "12"};
  assert_int_equal(
      rl_command_guard(&buffer, "key", "clock", "n=5 q=3", 30000000, "r 1 new n=5 q=3", 12), 1);
  assert_words(9, words);
}

TEST(attach_equals_hiredis) {
  static const uint16_t two[] = {1, 2};
  rl_command_key key = {"abb", 3, TOKEN, 40, 2, two, {NULL, 0}};
  rl_command_key old = {NULL, 0, "old", 3, 0, NULL, {NULL, 0}};
  rl_command_here here = {"redlock:lineage", "run1 5 empty", "run1"};
  for (unsigned guarded = 0; guarded < 2; guarded++) {
    assert_int_equal(rl_command_attach(&buffer, &key, &old, 10, 3, guarded ? &here : NULL), 1);
    char *text = strchr(strchr(buffer.data + from, '$') + 10, '\n') + 1;
    size_t length = (size_t)(strstr(text, "\r\n") - text);
    const char *plain[] = {"EVAL", text, "2", "a", "bb", "old", TOKEN, "10", "3"};
    const char *here_too[] = {"EVAL", text,  "3",  "a", "bb",           "redlock:lineage",
                              "old",  TOKEN, "10", "3", "run1 5 empty", "run1"};
    size_t lengths[12];
    int count = guarded ? 12 : 9;
    for (int i = 0; i < count; i++) {
      lengths[i] = i == 1 ? length : strlen(guarded ? here_too[i] : plain[i]);
    }
    assert_formatted(count, guarded ? here_too : plain, lengths);
  }
}

TEST(command_without_room_is_not_appended) {
  rl_command_key name = key_of("k", 1);
  assert_int_equal(rl_command_script(&buffer, RL_SCRIPT_RELEASE, 0, &name, 0, 0), 0);
  assert_null(buffer.data);
  assert_int_equal(rl_command_set(&buffer, &name, 1), 1);
  while (rl_command_script(&buffer, RL_SCRIPT_RELEASE, 0, &name, 0, 0) == 1) {
    assert_true(buffer.tail <= buffer.capacity);
  }
  size_t tail = buffer.tail;
  assert_int_equal(rl_command_script(&buffer, RL_SCRIPT_RELEASE, 1, &name, 0, 0), 0);
  assert_int_equal(buffer.tail, tail);
  assert_int_equal(rl_command_script(&buffer, RL_SCRIPT_RELEASE, 0, &name, 0, 1), 1);
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin, .after = end});
}
