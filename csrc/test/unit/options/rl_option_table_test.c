/*
 * The table of options is complete, and structs of other versions of the header are distinguished.
 *
 * SPDX-License-Identifier: MIT
 */
#include "options/rl_options.h"

#include <limits.h>

#include "rl_test.h"

/* A byte of a struct that no line describes is a field that was forgotten, or padding. */
TEST(every_field_is_in_the_table) {
  size_t end = 0;
  for (size_t i = 0; i < rl_options_of_lock.count; i++) {
    const rl_option *row = &rl_options_of_lock.rows[i];
    assert_true(row->offset >= end);
    assert_true(row->offset - end < row->size);
    end = row->offset + row->size;
  }
  assert_true(rl_options_of_lock.size - end < sizeof(redlock_duration));
  assert_int_equal(rl_options_of_lock.size, sizeof(redlock_options));
}

TEST(every_row_has_a_named_kind) {
  const rl_option_table *tables[] = {&rl_options_of_lock, &rl_options_of_client,
                                     &rl_options_of_node};
  for (unsigned i = 0; i < COUNT_OF(tables); i++) {
    for (size_t k = 0; k < tables[i]->count; k++) {
      const rl_option *row = &tables[i]->rows[k];
      assert_non_null(rl_option_kind_name(row->kind));
      assert_memory_equal(row->sentence, row->field, strlen(row->field));
    }
  }
  assert_int_equal(REDLOCK_DB_ZERO, RL_OPTION_COUNT_NONE); /* the same for all counts */
}

TEST(fields_of_an_older_caller_are_0) {
  redlock_options older, known;
  memset(&older, 0x5a, sizeof older);
  memset(&known, 0xa5, sizeof known);
  older.ttl_us = SECONDS;
  assert_null(
      rl_option_fit(&rl_options_of_lock, &known, &older, offsetof(redlock_options, retry_count)));
  assert_int_equal(known.ttl_us, SECONDS);
  assert_int_equal(known.retry_count, 0);
  assert_int_equal(known.lock_delay_us, 0);
}

TEST(unknown_fields_of_a_newer_caller_are_refused) {
  union {
    redlock_options options;
    char bytes[4096];
  } newer;
  redlock_options known;
  memset(&newer, 0, sizeof newer);
  newer.options.ttl_us = SECONDS;
  assert_null(rl_option_fit(&rl_options_of_lock, &known, &newer, sizeof newer));
  assert_int_equal(known.ttl_us, SECONDS);
  newer.bytes[4095] = 1;
  assert_non_null(
      strstr(rl_option_fit(&rl_options_of_lock, &known, &newer, sizeof newer), "newer redlock.h"));
  assert_null(rl_option_fit(&rl_options_of_lock, &known, &newer, 4095));
  newer.bytes[sizeof newer.options] = 1;
  assert_non_null(rl_option_fit(&rl_options_of_lock, &known, &newer, sizeof newer.options + 1));
}

TEST(struct_ends_between_two_fields) {
  redlock_options given = {0};
  redlock_options known;
  const size_t wrong[] = {0, 1, 7, 9, offsetof(redlock_options, fence) + 1, 4097, SIZE_MAX};
  for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
    assert_non_null(
        strstr(rl_option_fit(&rl_options_of_lock, &known, &given, wrong[i]), "size of a struct"));
  }
  assert_null(rl_option_fit(&rl_options_of_lock, &known, &given, 8));
  assert_null(rl_option_fit(&rl_options_of_lock, &known, &given, sizeof given));
}

TEST(struct_of_another_size_is_filled) {
  const char from[4] = {1, 2, 3, 4};
  char to[6] = {9, 9, 9, 9, 9, 9};
  rl_option_fill(to, 2, from, sizeof from);
  assert_memory_equal(to, "\1\2\11\11\11\11", sizeof to);
  rl_option_fill(to, 5, from, sizeof from);
  assert_memory_equal(to, "\1\2\3\4\0\11", sizeof to);
  rl_option_fill(to, 0, from, sizeof from);
  assert_int_equal(to[0], 1);
}

/* A C programmer who writes "true" is understood; any other number is a mistake. */
TEST(flag_is_yes_or_no_and_no_other_number) {
  redlock_options options = {0};
  static const int numbers[] = {REDLOCK_YES, REDLOCK_NO, 2, -2, 256, INT_MAX};
  for (unsigned i = 0; i < COUNT_OF(numbers); i++) {
    options.auto_extend = numbers[i];
    const char *wrong = rl_option_wrong(&rl_options_of_lock, &options);
    if (i < 2) {
      assert_null(wrong);
    } else {
      assert_non_null(strstr(wrong, "auto_extend"));
    }
  }
}

TEST(bytes_may_be_as_long_as_their_bound) {
  redlock_settings settings = {0};
  settings.prefix = "never read";
  settings.prefix_length = REDLOCK_KEY_MAX;
  assert_null(rl_option_wrong(&rl_options_of_client, &settings));
  settings.prefix_length++;
  assert_non_null(rl_option_wrong(&rl_options_of_client, &settings));
}

/* "" is no file. A text without a bound is looked at by whoever reads it. */
TEST(text_with_bounds_is_not_empty_and_not_too_long) {
  char longest[RL_OPTION_FILE_MAX + 2];
  redlock_settings settings = {.tls_ca = longest, .username = ""};
  memset(longest, 'x', sizeof longest);
  longest[RL_OPTION_FILE_MAX] = '\0';
  assert_null(rl_option_wrong(&rl_options_of_client, &settings));
  longest[RL_OPTION_FILE_MAX] = 'x';
  longest[RL_OPTION_FILE_MAX + 1] = '\0';
  assert_string_equal(rl_option_wrong(&rl_options_of_client, &settings),
                      "tls_ca must be a file: from 1 to 4096 bytes");
  longest[0] = '\0';
  assert_string_equal(rl_option_wrong(&rl_options_of_client, &settings),
                      "tls_ca must be a file: from 1 to 4096 bytes");
}

TEST(copy_has_texts_and_bytes_of_its_own) {
  char prefix[] = {'a', '\0', 'b'};
  char username[] = "u";
  redlock_settings settings = {.prefix = prefix, .prefix_length = 3, .username = username, .db = 7};
  redlock_settings copy;
  assert_true(rl_option_copy(&rl_options_of_client, &copy, &settings));
  prefix[2] = 'x';
  username[0] = 'x';
  assert_memory_equal(copy.prefix, "a\0b", 4);
  assert_int_equal(copy.prefix_length, 3);
  assert_string_equal(copy.username, "u");
  assert_null(copy.password);
  assert_int_equal(copy.db, 7);
  rl_option_free(&rl_options_of_client, &copy);
  assert_null(copy.prefix);
}
