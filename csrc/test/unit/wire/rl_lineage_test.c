/*
 * The record of a guard as text: written, read, compared.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/rl_lineage.h"

#include "rl_test.h"

static const rl_lineage_fingerprint THREE = {
    .nodes = 3,
    .quorum = 2,
    .max_ttl_us = 30 * SECONDS,
    .names = {"a:6379", "b:6379", "c:6379"},
    .prefix = "orders:",
    .prefix_length = 7,
};

static const char *written(const rl_lineage_fingerprint *fingerprint) {
  static char text[RL_LINEAGE_FINGERPRINT_MAX + 1];
  rl_lineage_write_fingerprint(text, fingerprint);
  return text;
}

TEST(fingerprint_has_five_words) {
  assert_string_equal(
      written(&THREE),
      "nodes=3 quorum=2 max_ttl=30000 list=3bdfb5624768c686 prefix=2fa646ae/orders:");
}

/* Returns true if |other| is distinguished from THREE. */
static bool differs(rl_lineage_fingerprint other) {
  char text[RL_LINEAGE_FINGERPRINT_MAX + 1];
  rl_lineage_write_fingerprint(text, &THREE);
  return strcmp(text, written(&other)) != 0;
}

TEST(fingerprint_covers_all_shared_settings) {
  rl_lineage_fingerprint other = THREE;
  assert_false(differs(other));
  other.names[0] = "c:6379", other.names[2] = "a:6379"; /* In another order they are the same. */
  assert_false(differs(other));
  other.names[2] = "d:6379";
  assert_true(differs(other));
  other = THREE, other.dbs[1] = 1;
  assert_true(differs(other));
  other = THREE, other.quorum = 3;
  assert_true(differs(other));
  other = THREE, other.max_ttl_us++;
  assert_true(differs(other)); /* It is rounded up to whole milliseconds. */
  other = THREE, other.nodes = 2;
  assert_true(differs(other));
  other = THREE, other.prefix_length = 6;
  assert_true(differs(other));
  other = THREE, other.prefix = NULL, other.prefix_length = 0;
  assert_true(differs(other));
  other = THREE, other.cluster = "blue";
  assert_true(differs(other));
}

TEST(named_cluster_ignores_names_of_nodes) {
  char text[RL_LINEAGE_FINGERPRINT_MAX + 1];
  rl_lineage_fingerprint one = THREE, other = THREE;
  one.cluster = other.cluster = "blue";
  other.names[0] = "10.0.0.1:6379";
  rl_lineage_write_fingerprint(text, &one);
  assert_string_equal(written(&other), text);
  assert_non_null(strstr(text, " cluster=blue "));
}

TEST(longest_fingerprint_fits_and_is_printable) {
  static char prefix[REDLOCK_KEY_MAX];
  char cluster[RL_LINEAGE_CLUSTER_MAX + 1];
  rl_lineage_fingerprint longest = {32,  32,     REDLOCK_TTL_MAX_US, cluster, {NULL},
                                    {0}, prefix, sizeof prefix};
  memset(cluster, 'x', RL_LINEAGE_CLUSTER_MAX);
  cluster[RL_LINEAGE_CLUSTER_MAX] = '\0';
  for (size_t i = 0; i < sizeof prefix; i++) {
    prefix[i] = (char)i;
  }
  const char *text = written(&longest);
  assert_true(strlen(text) < RL_LINEAGE_FINGERPRINT_MAX);
  for (const char *at = text; *at != '\0'; at++) {
    assert_true(*at >= 0x20 && *at < 0x7f);
  }
  char all[REDLOCK_NODES_MAX][270];
  rl_lineage_fingerprint many = {.nodes = REDLOCK_NODES_MAX, .quorum = 17};
  for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
    memset(all[i], 'h', sizeof all[i]);
    all[i][sizeof all[i] - 1] = '\0';
    all[i][i] = 'x';
    many.names[i] = all[i];
  }
  assert_non_null(strstr(written(&many), "nodes=32 quorum=17 max_ttl=0 list="));
}

TEST(key_has_the_name_of_the_cluster) {
  char key[RL_LINEAGE_KEY_MAX + 1];
  rl_lineage_write_key(key, NULL);
  assert_string_equal(key, "redlock:lineage");
  rl_lineage_write_key(key, "blue");
  assert_string_equal(key, "redlock:lineage:blue");
}

static bool reads(rl_lineage_answer *answer, const char *text) {
  return rl_lineage_read(answer, text, strlen(text));
}

TEST(answer_has_clock_identity_and_record) {
  rl_lineage_answer answer;
  assert_true(reads(
      &answer, "1700000000000001 abc123 - abc123 1699999999999999 restart nodes=3 rest of it"));
  assert_true(answer.now_us == 1700000000000001 && answer.created_us == 1699999999999999);
  assert_string_equal(answer.run_id, "abc123");
  assert_int_equal(answer.create_for, RL_LINEAGE_NONE);
  assert_int_equal(answer.created_for, RL_LINEAGE_RESTART);
  assert_string_equal(answer.record, "abc123 1699999999999999 restart nodes=3 rest of it");
  assert_string_equal(answer.fingerprint, "nodes=3 rest of it");
}

TEST(answer_without_a_record_has_a_reason) {
  static const struct {
    const char *text;
    rl_lineage_why why;
  } cases[] = {{"1 a empty ", RL_LINEAGE_EMPTY},
               {"1 a restart ", RL_LINEAGE_RESTART},
               {"1 a clock ", RL_LINEAGE_CLOCK}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    rl_lineage_answer answer;
    assert_true(reads(&answer, cases[i].text));
    assert_int_equal(answer.create_for, cases[i].why);
    assert_string_equal(answer.record, "");
    assert_true(rl_lineage_why_sentence(answer.create_for)[0] != '\0');
  }
}

TEST(identity_has_letters_digits_and_two_signs) {
  static const char strange[] = "/:@[`{_.";
  char text[] = "1 a? empty ";
  rl_lineage_answer answer;
  assert_true(reads(&answer, "1 azAZ09+- empty "));
  for (size_t i = 0; strange[i] != '\0'; i++) {
    text[3] = strange[i];
    assert_false(reads(&answer, text));
  }
}

TEST(truncated_answer_is_rejected_or_shorter) {
  static const char text[] = "1700000000000001 abc123 - abc123 1699999999999999 ready nodes=3";
  for (size_t length = 0; length < sizeof text - 1; length++) {
    rl_lineage_answer answer;
    bool read = rl_lineage_read(&answer, text, length);
    assert_true(!read ||
                length >= strlen("1700000000000001 abc123 - abc123 1699999999999999 ready "));
    assert_true(!read || strlen(answer.record) == length - strlen("1700000000000001 abc123 - "));
  }
}

TEST(identity_may_include_the_history) {
  rl_lineage_answer answer;
  assert_true(reads(&answer, "5 0af-1e12 - 0af-1e12 1 ready "));
  assert_string_equal(answer.run_id, "0af-1e12");
  assert_true(reads(&answer, "5 0af+ empty "));
  assert_false(reads(&answer, "5 0af-1e12 - 0af-1e13 1 ready "));
  assert_false(reads(&answer, "5 ?-1e12 empty "));
}

TEST(oversized_answer_is_rejected) {
  rl_lineage_answer answer;
  char text[1024];
  (void)snprintf(text, sizeof text, "5 a - a 1 ready %0*d", RL_LINEAGE_MAX - 9, 1);
  assert_int_equal(strlen(text), strlen("5 a - ") + RL_LINEAGE_MAX + 1);
  assert_false(reads(&answer, text));
  text[strlen(text) - 1] = '\0';
  assert_true(reads(&answer, text));
  (void)snprintf(text, sizeof text, "5 %0*d empty ", RL_LINEAGE_RUN_ID_MAX + 1, 1);
  assert_false(reads(&answer, text));
  (void)snprintf(text, sizeof text, "5 %0*d empty ", RL_LINEAGE_RUN_ID_MAX, 1);
  assert_true(reads(&answer, text));
  memset(text, '1', sizeof text);
  assert_false(rl_lineage_read(&answer, text, sizeof text));
}

TEST(difference_lists_changed_words) {
  char text[192];
  assert_string_equal(
      rl_lineage_difference(text, sizeof text, "nodes=3 b c d e f", "nodes=3 b c d e f"), "");
  assert_string_equal(
      rl_lineage_difference(text, sizeof text, "nodes=5 b c d e f", "nodes=3 b c d e g"),
      "nodes=5 (ours nodes=3), e f (ours e g)");
  assert_string_equal(rl_lineage_difference(text, sizeof text, "x", "a b c d e"),
                      "x (ours a),  (ours b),  (ours c),  (ours d),  (ours e)");
  assert_int_equal(
      strlen(rl_lineage_difference(text, 20, "nodes=5 b c d e f", "nodes=3 b c d e g")), 19);
}
