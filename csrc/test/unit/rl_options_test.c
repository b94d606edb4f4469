/*
 * Options: defaults, checks at both ends, and what follows from them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "rl_options.h"
#include "rl_test.h"

static redlock_options defaults(void) {
  redlock_options options;
  redlock_options_default(&options);
  return options;
}

static void the_defaults_are_those_of_the_header(void **state) {
  (void)state;
  redlock_options options = defaults();
  redlock_options read;
  assert_int_equal(options.size, sizeof options);
  assert_int_equal(options.ttl_us, 10 * SECONDS);
  assert_int_equal(options.retry_count, -1);
  assert_int_equal(options.retry_delay_us, 200 * MS);
  assert_int_equal(options.retry_jitter_us, 100 * MS);
  assert_int_equal(options.wait_us, REDLOCK_NEVER);
  assert_int_equal(options.node_timeout_us, 0);
  assert_true(options.drift_factor == 0.01);
  assert_int_equal(options.lock_delay_us, 0);
  memset(&read, 0xa5, sizeof read);
  assert_error(rl_options_read(&read, &options, NULL, 0), REDLOCK_OK);
  assert_int_equal(rl_options_attempts(&read), 4);
}

/* Reads the defaults with one field changed; |expected| is "" or what is wrong. */
static void check(const redlock_options *options, const char *expected) {
  redlock_options read = defaults();
  char message[128] = "";
  int error = rl_options_read(&read, options, message, sizeof message);
  assert_string_equal(message, expected);
  assert_error(error, expected[0] == '\0' ? REDLOCK_OK : REDLOCK_E_INVALID);
  assert_error(rl_options_read(&read, options, NULL, 0), error);
}

static void every_duration_has_both_ends(void **state) {
  (void)state;
  static const struct {
    size_t offset;
    redlock_duration least_us;
    const char *wrong;
  } cases[] = {
      {offsetof(redlock_options, ttl_us), 1000, "ttl must be from 1 ms to 366 days"},
      {offsetof(redlock_options, retry_delay_us), 0, "retry_delay must be at most 366 days"},
      {offsetof(redlock_options, retry_jitter_us), 0, "retry_jitter must be at most 366 days"},
      {offsetof(redlock_options, wait_us), 0, "wait must be at most 366 days, or REDLOCK_NEVER"},
      {offsetof(redlock_options, node_timeout_us), 0, "node_timeout must be at most 366 days"},
      {offsetof(redlock_options, lock_delay_us), 0, "lock_delay must be at most 366 days"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_options options = defaults();
    redlock_duration *field = (redlock_duration *)(void *)((char *)&options + cases[i].offset);
    *field = cases[i].least_us;
    check(&options, "");
    if (cases[i].least_us > 0) {
      *field = cases[i].least_us - 1;
      check(&options, cases[i].wrong);
      *field = 0;
      check(&options, cases[i].wrong);
    }
    *field = REDLOCK_TTL_MAX_US;
    check(&options, "");
    *field = REDLOCK_TTL_MAX_US + 1;
    check(&options, cases[i].wrong);
    *field = REDLOCK_NEVER;
    check(&options, i == 3 ? "" : cases[i].wrong);
  }
}

static void retry_count_has_both_ends(void **state) {
  (void)state;
  static const struct {
    int count;
    bool ok;
  } cases[] = {{-1, true},  {0, true},          {1000000, true},   {1000001, false},
               {-2, false}, {INT32_MIN, false}, {INT32_MAX, false}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_options options = defaults();
    options.retry_count = cases[i].count;
    check(&options, cases[i].ok ? "" : "retry_count must be -1 or from 0 to 1000000");
  }
}

static void the_drift_factor_is_from_0_to_less_than_1(void **state) {
  (void)state;
  static const double good[] = {0.0, 0.01, 0.5, 0.999999};
  const double bad[] = {-0.000001, 1.0, 2.0, (double)INFINITY, (double)-INFINITY, (double)NAN};
  for (unsigned i = 0; i < COUNT_OF(good); i++) {
    redlock_options options = defaults();
    options.drift_factor = good[i];
    check(&options, "");
  }
  for (unsigned i = 0; i < COUNT_OF(bad); i++) {
    redlock_options options = defaults();
    options.drift_factor = bad[i];
    check(&options, "drift_factor must be from 0 to less than 1");
  }
}

static void the_ttl_counts_in_whole_milliseconds(void **state) {
  (void)state;
  redlock_options options = defaults();
  redlock_options read = defaults();
  options.ttl_us = 1999;
  assert_error(rl_options_read(&read, &options, NULL, 0), REDLOCK_OK);
  assert_int_equal(read.ttl_us, 1000);
  options.ttl_us = 2000;
  assert_error(rl_options_read(&read, &options, NULL, 0), REDLOCK_OK);
  assert_int_equal(read.ttl_us, 2000);
}

/* A caller that was compiled with a shorter or a longer struct. */
static void other_versions_of_the_struct_are_read(void **state) {
  (void)state;
  struct {
    redlock_options options;
    char more[64];
  } newer;
  redlock_options read = defaults();
  redlock_options older = defaults();
  memset(&newer, 0x5a, sizeof newer);
  newer.options = defaults();
  newer.options.ttl_us = SECONDS;
  newer.options.size = sizeof newer;
  assert_error(rl_options_read(&read, &newer.options, NULL, 0), REDLOCK_OK);
  assert_int_equal(read.ttl_us, SECONDS);
  assert_int_equal(read.size, sizeof read);
  older.size = offsetof(redlock_options, lock_delay_us);
  older.lock_delay_us = 77;
  read = defaults();
  assert_error(rl_options_read(&read, &older, NULL, 0), REDLOCK_OK);
  assert_int_equal(read.lock_delay_us, 0);
  static const size_t wrong[] = {0, sizeof(size_t) - 1, 4097, SIZE_MAX};
  for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
    older.size = wrong[i];
    check(&older, "options.size is wrong: fill with redlock_options_default()");
  }
}

static void the_shortest_and_the_longest_struct_are_read(void **state) {
  (void)state;
  union {
    redlock_options options;
    char bytes[4096];
  } longest;
  size_t shortest = sizeof shortest; /* nothing but the size: all defaults */
  redlock_options read;
  memset(&longest, 0x5a, sizeof longest);
  longest.options = defaults();
  longest.options.ttl_us = SECONDS;
  longest.options.size = sizeof longest;
  read = defaults();
  assert_error(rl_options_read(&read, &longest.options, NULL, 0), REDLOCK_OK);
  assert_int_equal(read.ttl_us, SECONDS);
  read = defaults();
  assert_true(rl_options_copy(&read, sizeof read, &shortest, shortest));
  assert_int_equal(read.size, sizeof read);
  assert_int_equal(read.ttl_us, 10 * SECONDS);
}

static void a_message_is_cut_to_fit(void **state) {
  (void)state;
  redlock_options read = defaults();
  redlock_options bad = defaults();
  bad.ttl_us = 0;
  char message[8];
  assert_error(rl_options_read(&read, &bad, message, sizeof message), REDLOCK_E_INVALID);
  assert_string_equal(message, "ttl mus");
}

static void nothing_is_written_where_no_message_is_wanted(void **state) {
  (void)state;
  redlock_options read = defaults();
  redlock_options bad = defaults();
  bad.ttl_us = 0;
  char message = 'm';
  assert_error(rl_options_read(&read, &bad, NULL, 128), REDLOCK_E_INVALID);
  assert_error(rl_options_read(&read, &bad, &message, 0), REDLOCK_E_INVALID);
  assert_int_equal(message, 'm');
}

static void attempts_follow_from_retry_count_and_wait(void **state) {
  (void)state;
  static const struct {
    int retry_count;
    redlock_duration wait_us;
    uint64_t attempts;
  } cases[] = {{-1, REDLOCK_NEVER, 4},
               {0, REDLOCK_NEVER, 1},
               {1000000, REDLOCK_NEVER, 1000001},
               {-1, 1, UINT64_MAX},
               {5, 1, 6},
               {0, SECONDS, 1},
               {-1, 0, 1},
               {5, 0, 1}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_options options = defaults();
    options.retry_count = cases[i].retry_count;
    options.wait_us = cases[i].wait_us;
    assert_int_equal(rl_options_attempts(&options), cases[i].attempts);
  }
}

static void the_node_timeout_is_at_most_a_tenth_of_the_ttl(void **state) {
  (void)state;
  redlock_options options = defaults();
  assert_int_equal(rl_options_node_timeout(&options, 10 * SECONDS), 100 * MS);
  assert_int_equal(rl_options_node_timeout(&options, SECONDS), 100 * MS);
  assert_int_equal(rl_options_node_timeout(&options, SECONDS - 10), 100 * MS - 1);
  assert_int_equal(rl_options_node_timeout(&options, 1000), 100);
  options.node_timeout_us = 5 * SECONDS;
  assert_int_equal(rl_options_node_timeout(&options, 1000), 5 * SECONDS);
}

static void a_key_lives_for_ttl_and_lock_delay_rounded_up(void **state) {
  (void)state;
  redlock_options options = defaults();
  assert_int_equal(rl_options_key_ms(&options, SECONDS), 1000);
  options.lock_delay_us = 1;
  assert_int_equal(rl_options_key_ms(&options, SECONDS), 1001);
  options.lock_delay_us = 1000;
  assert_int_equal(rl_options_key_ms(&options, SECONDS), 1001);
  options.lock_delay_us = 1001;
  assert_int_equal(rl_options_key_ms(&options, SECONDS), 1002);
}

static void the_delay_is_uniform_between_its_ends(void **state) {
  (void)state;
  redlock_options options = defaults();
  options.retry_delay_us = 2000;
  options.retry_jitter_us = 3;
  unsigned seen[7] = {0};
  for (uint64_t random = 0; random < 7000; random++) {
    redlock_duration delay_us = rl_options_retry_delay(&options, random, REDLOCK_NEVER);
    assert_true(delay_us >= 1997 && delay_us <= 2003);
    seen[delay_us - 1997]++;
  }
  for (unsigned i = 0; i < COUNT_OF(seen); i++) {
    assert_int_equal(seen[i], 1000);
  }
  options.retry_jitter_us = 0;
  assert_int_equal(rl_options_retry_delay(&options, UINT64_MAX, REDLOCK_NEVER), 2000);
  options.retry_delay_us = REDLOCK_TTL_MAX_US;
  options.retry_jitter_us = REDLOCK_TTL_MAX_US;
  assert_true(rl_options_retry_delay(&options, UINT64_MAX, REDLOCK_NEVER) <=
              2 * REDLOCK_TTL_MAX_US);
}

static void a_delay_is_1_ms_at_least(void **state) {
  (void)state;
  redlock_options options = defaults();
  options.retry_delay_us = 0;
  options.retry_jitter_us = 1001;
  assert_int_equal(rl_options_retry_delay(&options, 0, REDLOCK_NEVER), MS);
  assert_int_equal(rl_options_retry_delay(&options, 1000, REDLOCK_NEVER), MS);
  assert_int_equal(rl_options_retry_delay(&options, 1001, REDLOCK_NEVER), MS + 1);
}

static void structs_of_other_sizes_are_filled(void **state) {
  (void)state;
  struct {
    redlock_options options;
    char more[32];
  } newer;
  redlock_options older;
  memset(&newer, 0x5a, sizeof newer);
  redlock_options_default_sized(&newer.options, sizeof newer);
  assert_int_equal(newer.options.size, sizeof newer);
  assert_int_equal(newer.options.ttl_us, 10 * SECONDS);
  for (unsigned i = 0; i < sizeof newer.more; i++) {
    assert_int_equal(newer.more[i], 0);
  }
  memset(&older, 0x5a, sizeof older);
  redlock_options_default_sized(&older, offsetof(redlock_options, wait_us));
  assert_int_equal(older.size, offsetof(redlock_options, wait_us));
  assert_int_equal(older.retry_jitter_us, 100 * MS);
  assert_int_equal(older.wait_us, 0x5a5a5a5a5a5a5a5a);
  redlock_options_default_sized(&older, sizeof older.size);
  assert_int_equal(older.size, sizeof older.size);
  older.size = 7;
  redlock_options_default_sized(&older, 0); /* not even a size */
  assert_int_equal(older.size, 7);
}

static void a_delay_leaves_half_of_the_budget(void **state) {
  (void)state;
  redlock_options options = defaults();
  options.retry_delay_us = 50 * MS;
  options.retry_jitter_us = 0;
  assert_int_equal(rl_options_retry_delay(&options, 0, 100 * MS), 50 * MS);
  assert_int_equal(rl_options_retry_delay(&options, 0, 100 * MS - 2), 50 * MS - 1);
  assert_int_equal(rl_options_retry_delay(&options, 0, 2 * MS), MS);
  assert_int_equal(rl_options_retry_delay(&options, 0, 2 * MS - 1), REDLOCK_NEVER);
  assert_int_equal(rl_options_retry_delay(&options, 0, 0), REDLOCK_NEVER);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_defaults_are_those_of_the_header),
      cmocka_unit_test(every_duration_has_both_ends),
      cmocka_unit_test(retry_count_has_both_ends),
      cmocka_unit_test(the_drift_factor_is_from_0_to_less_than_1),
      cmocka_unit_test(the_ttl_counts_in_whole_milliseconds),
      cmocka_unit_test(other_versions_of_the_struct_are_read),
      cmocka_unit_test(the_shortest_and_the_longest_struct_are_read),
      cmocka_unit_test(a_message_is_cut_to_fit),
      cmocka_unit_test(nothing_is_written_where_no_message_is_wanted),
      cmocka_unit_test(attempts_follow_from_retry_count_and_wait),
      cmocka_unit_test(the_node_timeout_is_at_most_a_tenth_of_the_ttl),
      cmocka_unit_test(a_key_lives_for_ttl_and_lock_delay_rounded_up),
      cmocka_unit_test(the_delay_is_uniform_between_its_ends),
      cmocka_unit_test(a_delay_is_1_ms_at_least),
      cmocka_unit_test(structs_of_other_sizes_are_filled),
      cmocka_unit_test(a_delay_leaves_half_of_the_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
