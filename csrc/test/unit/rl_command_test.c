/*
 * Commands, byte for byte against what hiredis formats; and the scripts' SHA-1.
 *
 * SPDX-License-Identifier: MIT
 */
#include <hiredis/hiredis.h>

#include "rl_command.h"
#include "rl_test.h"

static const char TOKEN[] = "0123456789abcdef0123456789abcdef01234567";

/* ------------------------------------------------------------------- SHA-1 (FIPS 180-4), for short texts */

static uint32_t rotate(uint32_t word, unsigned bits) {
  return word << bits | word >> (32 - bits);
}

static void sha1_block(uint32_t hash[5], const unsigned char *block) {
  uint32_t w[80];
  uint32_t a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4];
  for (unsigned i = 0; i < 80; i++) {
    w[i] = i < 16 ? (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                        (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3]
                  : rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  }
  for (unsigned i = 0; i < 80; i++) {
    uint32_t f = i < 20   ? (b & c) | (~b & d)
                 : i < 40 ? b ^ c ^ d
                 : i < 60 ? (b & c) | (b & d) | (c & d)
                          : b ^ c ^ d;
    static const uint32_t k[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t next = rotate(a, 5) + f + e + k[i / 20] + w[i];
    e = d;
    d = c;
    c = rotate(b, 30);
    b = a;
    a = next;
  }
  hash[0] += a;
  hash[1] += b;
  hash[2] += c;
  hash[3] += d;
  hash[4] += e;
}

static void sha1(const char *text, char hex[41]) {
  uint32_t hash[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  unsigned char padded[1024] = {0};
  size_t length = strlen(text);
  size_t total = (length + 8) / 64 * 64 + 64;
  assert_true(total <= sizeof padded);
  memcpy(padded, text, length);
  padded[length] = 0x80;
  for (unsigned i = 0; i < 8; i++) {
    padded[total - 1 - i] = (unsigned char)(length * 8 >> (8 * i));
  }
  for (size_t at = 0; at < total; at += 64) {
    sha1_block(hash, padded + at);
  }
  for (unsigned i = 0; i < 5; i++) {
    (void)snprintf(hex + 8 * i, 9, "%08x", (unsigned)hash[i]);
  }
}

static void our_sha1_knows_the_vectors_of_the_standard(void **state) {
  (void)state;
  char hex[41];
  sha1("abc", hex);
  assert_string_equal(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
  sha1("", hex);
  assert_string_equal(hex, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", hex);
  assert_string_equal(hex, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

static void each_script_is_named_by_the_sha1_of_its_text(void **state) {
  (void)state;
  char hex[41];
  for (unsigned i = RL_SCRIPT_NONE + 1; i < RL_SCRIPT_COUNT; i++) {
    sha1(rl_command_script_text((rl_script)i), hex);
    assert_string_equal(hex, rl_command_script_sha1((rl_script)i));
  }
}

/* ------------------------------------------------------------------------------ byte for byte */

static void assert_formatted(const rl_buffer *buffer, size_t from, int count, const char **words,
                             const size_t *lengths) {
  char *formatted;
  long long length = redisFormatCommandArgv(&formatted, count, words, lengths);
  assert_true(length > 0);
  assert_int_equal(buffer->tail - from, length);
  assert_memory_equal(buffer->data + from, formatted, (size_t)length);
  redisFreeCommand(formatted);
}

static const uint64_t ttls_ms[] = {0, 1, 9, 10, 99, 100, 10000, 31622400000, UINT64_MAX};

/* Keys of these lengths: lengths of one to four digits, and binary bytes in all of them. */
static const size_t key_lengths[] = {0, 1, 9, 10, 99, 100, 999, 1000, REDLOCK_KEY_MAX};

static void fill(char *key, size_t length) {
  for (size_t i = 0; i < length; i++) {
    key[i] = (char)(i * 7 + length);
  }
}

static void set_is_what_hiredis_formats(void **state) {
  (void)state;
  char key[REDLOCK_KEY_MAX];
  rl_buffer buffer = {NULL, 0, 0, 0};
  for (unsigned i = 0; i < COUNT_OF(key_lengths); i++) {
    for (unsigned k = 0; k < COUNT_OF(ttls_ms); k++) {
      char ttl[24];
      (void)snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)ttls_ms[k]);
      fill(key, key_lengths[i]);
      rl_command_key name = {key, key_lengths[i], TOKEN, 40, 1, NULL};
      const char *words[] = {"SET", key, TOKEN, "NX", "PX", ttl};
      const size_t lengths[] = {3, key_lengths[i], 40, 2, 2, strlen(ttl)};
      size_t from = buffer.tail;
      assert_int_equal(rl_command_set(&buffer, &name, ttls_ms[k]), 1);
      assert_formatted(&buffer, from, 6, words, lengths);
    }
  }
  rl_buffer_free(&buffer);
}

static void scripts_are_what_hiredis_formats(void **state) {
  (void)state;
  char key[REDLOCK_KEY_MAX];
  rl_buffer buffer = {NULL, 0, 0, 0};
  for (unsigned i = 0; i < COUNT_OF(key_lengths) * COUNT_OF(ttls_ms) * 4; i++) {
    size_t length = key_lengths[i / 4 / COUNT_OF(ttls_ms)];
    uint64_t ttl_ms = ttls_ms[i / 4 % COUNT_OF(ttls_ms)];
    rl_script script = i % 2 == 0 ? RL_SCRIPT_RELEASE : RL_SCRIPT_EXTEND;
    int by_text = i / 2 % 2 == 1;
    const char *body = by_text ? rl_command_script_text(script) : rl_command_script_sha1(script);
    char ttl[24];
    (void)snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)ttl_ms);
    fill(key, length);
    rl_command_key name = {key, length, TOKEN, 40, 1, NULL};
    const char *words[] = {by_text ? "EVAL" : "EVALSHA", body, "1", key, TOKEN, ttl};
    const size_t lengths[] = {strlen(words[0]), strlen(body), 1, length, 40, strlen(ttl)};
    size_t from = buffer.tail;
    assert_int_equal(rl_command_script(&buffer, script, by_text, &name, ttl_ms, 1), 1);
    assert_formatted(&buffer, from, script == RL_SCRIPT_EXTEND ? 6 : 5, words, lengths);
  }
  rl_buffer_free(&buffer);
}

/* EVALSHA or EVAL, script, count, keys, token[, ttl] */
static void assert_script_of_several(rl_buffer *buffer, rl_script script, int by_text,
                                     const char *keys, const uint16_t *key_lengths_of,
                                     unsigned count) {
  const char *words[REDLOCK_RESOURCES_MAX + 5];
  size_t lengths[REDLOCK_RESOURCES_MAX + 5];
  char number[8];
  size_t total = 0;
  (void)snprintf(number, sizeof number, "%u", count);
  words[0] = by_text ? "EVAL" : "EVALSHA";
  words[1] = by_text ? rl_command_script_text(script) : rl_command_script_sha1(script);
  words[2] = number;
  for (unsigned i = 0; i < count; i++) {
    words[3 + i] = keys + total;
    lengths[3 + i] = key_lengths_of[i];
    total += key_lengths_of[i];
  }
  words[3 + count] = TOKEN;
  words[4 + count] = "10000";
  for (unsigned i = 0; i < 3; i++) {
    lengths[i] = strlen(words[i]);
  }
  lengths[3 + count] = strlen(TOKEN);
  lengths[4 + count] = 5;
  rl_command_key key = {keys, total, TOKEN, strlen(TOKEN), count, key_lengths_of};
  size_t from = buffer->tail;
  assert_int_equal(rl_command_script(buffer, script, by_text, &key, 10000, 1), 1);
  assert_formatted(buffer, from, (int)count + (script == RL_SCRIPT_RELEASE_ALL ? 4 : 5), words,
                   lengths);
}

static void scripts_of_several_keys_are_what_hiredis_formats(void **state) {
  (void)state;
  static const unsigned counts[] = {2, 3, 9, 10, REDLOCK_RESOURCES_MAX};
  static char keys[REDLOCK_RESOURCES_MAX * REDLOCK_KEY_MAX];
  uint16_t lengths[REDLOCK_RESOURCES_MAX];
  rl_buffer buffer = {NULL, 0, 0, 0};
  fill(keys, sizeof keys);
  for (unsigned i = 0; i < COUNT_OF(counts) * 8; i++) {
    unsigned count = counts[i / 8];
    for (unsigned k = 0; k < count; k++) {
      lengths[k] = (uint16_t)key_lengths[(k + i) % COUNT_OF(key_lengths)];
    }
    assert_script_of_several(&buffer, (rl_script)(RL_SCRIPT_RELEASE_ALL + i % 4), i / 4 % 2 == 1,
                             keys, lengths, count);
  }
  rl_buffer_free(&buffer);
}

static void strings_are_what_hiredis_formats(void **state) {
  (void)state;
  char secret[600];
  memset(secret, 'p', sizeof secret);
  secret[sizeof secret - 1] = '\0';
  const char *auth[] = {"AUTH", "", secret};
  const char *select[] = {"SELECT", "15"};
  const size_t auth_lengths[] = {4, 0, sizeof secret - 1};
  const size_t select_lengths[] = {6, 2};
  rl_buffer buffer = {NULL, 0, 0, 0};
  assert_int_equal(rl_command_strings(&buffer, auth, 3), 1);
  assert_formatted(&buffer, 0, 3, auth, auth_lengths);
  size_t from = buffer.tail;
  assert_int_equal(rl_command_strings(&buffer, select, 2), 1);
  assert_formatted(&buffer, from, 2, select, select_lengths);
  rl_buffer_free(&buffer);
}

/* A token may be of any bytes, and of none. */
static void tokens_of_any_length_are_what_hiredis_formats(void **state) {
  (void)state;
  char token[REDLOCK_TOKEN_MAX];
  rl_buffer buffer = {NULL, 0, 0, 0};
  fill(token, sizeof token);
  for (size_t length = 0; length <= sizeof token; length++) {
    rl_command_key name = {"k", 1, token, length, 1, NULL};
    const char *set[] = {"SET", "k", token, "NX", "PX", "5"};
    const size_t set_lengths[] = {3, 1, length, 2, 2, 1};
    const char *body = rl_command_script_text(RL_SCRIPT_RELEASE);
    const char *release[] = {"EVAL", body, "1", "k", token};
    const size_t release_lengths[] = {4, strlen(body), 1, 1, length};
    size_t from = buffer.tail;
    assert_int_equal(rl_command_set(&buffer, &name, 5), 1);
    assert_formatted(&buffer, from, 6, set, set_lengths);
    from = buffer.tail;
    assert_int_equal(rl_command_script(&buffer, RL_SCRIPT_RELEASE, 1, &name, 0, 1), 1);
    assert_formatted(&buffer, from, 5, release, release_lengths);
  }
  rl_buffer_free(&buffer);
}

static void what_an_operator_asks_is_what_hiredis_formats(void **state) {
  (void)state;
  char key[REDLOCK_KEY_MAX];
  rl_buffer buffer = {NULL, 0, 0, 0};
  for (unsigned i = 0; i < COUNT_OF(key_lengths); i++) {
    fill(key, key_lengths[i]);
    rl_command_key name = {key, key_lengths[i], "", 0, 1, NULL};
    const char *del[] = {"DEL", key};
    const size_t del_lengths[] = {3, key_lengths[i]};
    size_t from = buffer.tail;
    assert_int_equal(rl_command_delete(&buffer, &name), 1);
    assert_formatted(&buffer, from, 2, del, del_lengths);
    from = buffer.tail;
    assert_int_equal(rl_command_inspect(&buffer, &name), 1);
    const char *text = strstr(buffer.data + from, "local");
    const char *eval[] = {"EVAL", text, "1", key};
    const size_t eval_lengths[] = {4, (size_t)(strstr(text, "\r\n") - text), 1, key_lengths[i]};
    assert_formatted(&buffer, from, 4, eval, eval_lengths);
  }
  rl_buffer_free(&buffer);
}

static void without_room_nothing_is_appended(void **state) {
  (void)state;
  rl_buffer buffer = {NULL, 0, 0, 0};
  rl_command_key name = {"k", 1, TOKEN, 40, 1, NULL};
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
  rl_buffer_free(&buffer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(our_sha1_knows_the_vectors_of_the_standard),
      cmocka_unit_test(each_script_is_named_by_the_sha1_of_its_text),
      cmocka_unit_test(set_is_what_hiredis_formats),
      cmocka_unit_test(scripts_are_what_hiredis_formats),
      cmocka_unit_test(scripts_of_several_keys_are_what_hiredis_formats),
      cmocka_unit_test(strings_are_what_hiredis_formats),
      cmocka_unit_test(tokens_of_any_length_are_what_hiredis_formats),
      cmocka_unit_test(what_an_operator_asks_is_what_hiredis_formats),
      cmocka_unit_test(without_room_nothing_is_appended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
