/*
 * Options: defaults, levels, checks at both ends, and what follows from them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "base/rl_validity.h"
#include "options/rl_options.h"
#include "rl_test.h"

static rl_options defaults(void) {
  rl_options options;
  rl_options_default(&options);
  return options;
}

/* A struct that was filled with zeros, as a C programmer fills one. */
TEST(zeroed_struct_is_all_defaults) {
  redlock_options zeros;
  memset(&zeros, 0, sizeof zeros);
  rl_options options = defaults();
  assert_null(rl_options_read(&options, &zeros));
  assert_int_equal(options.ttl_us, 10 * SECONDS);
  assert_int_equal(rl_options_attempts(&options), 4);
  assert_int_equal(options.retry_delay_us, 200 * MS);
  assert_int_equal(options.retry_jitter_us, 100 * MS);
  assert_int_equal(options.wait_us, REDLOCK_NEVER);
  assert_int_equal(rl_options_node_timeout(&options, options.ttl_us), 100 * MS);
  assert_true(options.drift_factor == (double)0.01); /* The literal is wider on i386. */
  assert_int_equal(options.lock_delay_us, 0);
}

TEST(none_values_mean_0) {
  redlock_options none = {.retry_count = REDLOCK_RETRIES_NONE,
                          .retry_delay_us = REDLOCK_DURATION_NONE,
                          .retry_jitter_us = REDLOCK_DURATION_NONE,
                          .drift_factor = REDLOCK_DRIFT_NONE,
                          .lock_delay_us = REDLOCK_DURATION_NONE};
  rl_options options = defaults();
  options.lock_delay_us = SECONDS;
  assert_null(rl_options_read(&options, &none));
  assert_int_equal(rl_options_attempts(&options), 1);
  assert_int_equal(options.retry_delay_us, 0);
  assert_int_equal(options.retry_jitter_us, 0);
  assert_true(options.drift_factor == 0.0);
  assert_int_equal(options.lock_delay_us, 0);
  none = (redlock_options){.wait_us = REDLOCK_DURATION_NONE};
  options = defaults();
  assert_null(rl_options_read(&options, &none));
  assert_int_equal(options.wait_us, 0);
  assert_int_equal(rl_options_attempts(&options), 1);
}

/* A client's, a lock's, a call's: each says only what is to differ. */
TEST(unset_option_comes_from_the_level_above) {
  redlock_options of_client = {
      .ttl_us = SECONDS, .retry_count = 7, .drift_factor = 0.5, .lock_delay_us = 3 * SECONDS};
  redlock_options of_lock = {.ttl_us = 2 * SECONDS, .node_timeout_us = 5};
  redlock_options of_call = {.drift_factor = REDLOCK_DRIFT_NONE};
  rl_options options = defaults();
  assert_null(rl_options_read(&options, &of_client));
  assert_null(rl_options_read(&options, &of_lock));
  assert_null(rl_options_read(&options, &of_call));
  assert_int_equal(options.ttl_us, 2 * SECONDS);
  assert_int_equal(options.retry_count, 7);
  assert_int_equal(options.node_timeout_us, 5);
  assert_true(options.drift_factor == 0.0);
  assert_int_equal(options.lock_delay_us, 3 * SECONDS);
}

TEST(budget_replaces_retries_from_above) {
  redlock_options above = {.retry_count = 7};
  redlock_options budget = {.wait_us = SECONDS};
  redlock_options both = {.wait_us = SECONDS, .retry_count = 2};
  rl_options options = defaults();
  assert_null(rl_options_read(&options, &above));
  rl_options with_both = options;
  assert_null(rl_options_read(&options, &budget));
  assert_int_equal(rl_options_attempts(&options), UINT64_MAX);
  assert_null(rl_options_read(&with_both, &both));
  assert_int_equal(rl_options_attempts(&with_both), 3);
}

/* Reads |options| over the defaults; |expected| is "" or what is wrong, and nothing is changed. */
static void check(const redlock_options *options, const char *expected) {
  rl_options read = defaults();
  rl_options before = read;
  const char *wrong = rl_options_read(&read, options);
  assert_string_equal(wrong != NULL ? wrong : "", expected);
  if (wrong != NULL) {
    assert_true(rl_options_equal(&read, &before));
  }
}

TEST(equality_ignores_padding) {
  rl_options one = defaults();
  rl_options other;
  memset(&other, 0xa5, sizeof other);
#define COPY(name, kind, field, low, high, also, fallback, must) other.field = one.field;
  RL_OPTIONS_OF_LOCK(COPY)
  assert_true(rl_options_equal(&one, &other));
#define CHANGE_DURATION(field) other.field += 1;
#define CHANGE_COUNT CHANGE_DURATION
#define CHANGE_FLAG CHANGE_DURATION
#define CHANGE_FACTOR CHANGE_DURATION
#define CHANGE_LABEL(field) rl_label_set(&other.field, "x", 1);
#define CHANGE(name, kind, field, low, high, also, fallback, must)                                 \
  CHANGE_##kind(field) assert_false(rl_options_equal(&one, &other));                               \
  other.field = one.field;
  RL_OPTIONS_OF_LOCK(CHANGE)
  assert_true(rl_options_equal(&one, &other));
}

/* By the table: the ends, what lies beyond them, and what else there may be. */
TEST(every_duration_has_both_ends) {
  unsigned durations = 0;
  for (size_t i = 0; i < rl_options_of_lock.count; i++) {
    const rl_option *row = &rl_options_of_lock.rows[i];
    redlock_options options = {0};
    redlock_duration *field = (redlock_duration *)(void *)((char *)&options + row->offset);
    if (row->kind != RL_OPTION_DURATION) {
      continue;
    }
    durations++;
    assert_true(row->low > 0 && row->high == REDLOCK_TTL_MAX_US);
    *field = row->low;
    if (strcmp(row->name, "ttl") != 0) { /* ttl_without_a_lease_is_refused has its least value. */
      check(&options, "");
    }
    if (row->low > 1) {
      *field = row->low - 1;
      check(&options, row->sentence);
    }
    *field = row->high;
    check(&options, "");
    *field = row->high + 1;
    check(&options, row->sentence);
    *field = REDLOCK_DURATION_NONE;
    check(&options, (row->also & RL_OPTION_NONE) != 0 ? "" : row->sentence);
    *field = REDLOCK_NEVER;
    check(&options, (row->also & RL_OPTION_NEVER) != 0 ? "" : row->sentence);
    *field = REDLOCK_DURATION_NONE - 1;
    check(&options, row->sentence);
  }
  assert_int_equal(durations, 10);
}

TEST(wrong_option_is_named) {
  static const struct {
    redlock_options options;
    const char *wrong;
  } cases[] = {
      {{.ttl_us = 999}, "ttl_us must be from 1 ms to 366 days"},
      {{.ttl_us = REDLOCK_DURATION_NONE}, "ttl_us must be from 1 ms to 366 days"},
      {{.retry_delay_us = REDLOCK_NEVER},
       "retry_delay_us must be at most 366 days, or REDLOCK_DURATION_NONE"},
      {{.retry_jitter_us = REDLOCK_NEVER},
       "retry_jitter_us must be at most 366 days, or REDLOCK_DURATION_NONE"},
      {{.wait_us = REDLOCK_NEVER - 2},
       "wait_us must be at most 366 days, or REDLOCK_DURATION_NONE, or REDLOCK_NEVER"},
      {{.node_timeout_us = REDLOCK_NEVER}, "node_timeout_us must be at most 366 days"},
      {{.lock_delay_us = REDLOCK_NEVER},
       "lock_delay_us must be at most 366 days, or REDLOCK_DURATION_NONE"},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    check(&cases[i].options, cases[i].wrong);
  }
}

TEST(ttl_without_a_lease_is_refused) {
#define SHORT                                                                                      \
  " must be at least 1 ms more than the drift allowance, which is ttl x drift_factor + 2 ms: at "  \
  "least 4 ms with the default drift_factor"
  static const struct {
    redlock_duration ttl_us;
    double factor;
    const char *wrong;
  } cases[] = {{1 * MS, 0.0, "ttl is 1 ms, and" SHORT},
               {2 * MS, 0.0, "ttl is 2 ms, and" SHORT},
               {3 * MS + 999, 0.0, "ttl is 3 ms, and" SHORT},
               {4 * MS, 0.0, ""},
               {2 * MS, REDLOCK_DRIFT_NONE, "ttl is 2 ms, and" SHORT},
               {3 * MS, REDLOCK_DRIFT_NONE, ""},
               {299 * MS, 0.99, "ttl" SHORT},
               {300 * MS, 0.99, ""}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_options options = {.ttl_us = cases[i].ttl_us, .drift_factor = cases[i].factor};
    check(&options, cases[i].wrong);
  }
  redlock_options drifts = {.drift_factor = 0.9999}; /* The ttl is the default. */
  check(&drifts, "ttl" SHORT);
}

TEST(retry_count_has_both_ends) {
  static const struct {
    int count;
    bool ok;
  } cases[] = {{-1, true},       {0, true},   {1, true},          {1000000, true},
               {1000001, false}, {-2, false}, {INT32_MIN, false}, {INT32_MAX, false}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_options options = {.retry_count = cases[i].count};
    check(&options,
          cases[i].ok ? "" : "retry_count must be from 1 to 1000000, or REDLOCK_RETRIES_NONE");
  }
}

TEST(drift_factor_is_less_than_1) {
  static const double good[] = {0.0, -0.0, 0.01, 0.5, 0.999999, REDLOCK_DRIFT_NONE};
  const double bad[] = {-0.000001, 1.0, 2.0, (double)INFINITY, (double)-INFINITY, (double)NAN};
  for (unsigned i = 0; i < COUNT_OF(good); i++) {
    redlock_options options = {.ttl_us = REDLOCK_TTL_MAX_US, .drift_factor = good[i]};
    check(&options, "");
  }
  for (unsigned i = 0; i < COUNT_OF(bad); i++) {
    redlock_options options = {.drift_factor = bad[i]};
    check(&options, "drift_factor must be more than 0 and less than 1, or REDLOCK_DRIFT_NONE");
  }
}

TEST(ttl_counts_in_whole_milliseconds) {
  redlock_options options = {.ttl_us = 5999};
  rl_options read = defaults();
  assert_null(rl_options_read(&read, &options));
  assert_int_equal(read.ttl_us, 5000);
  options.ttl_us = 6000;
  assert_null(rl_options_read(&read, &options));
  assert_int_equal(read.ttl_us, 6000);
}

TEST(attempts_follow_from_retry_count_and_wait) {
  static const struct {
    int retry_count;
    redlock_duration wait_us;
    uint64_t attempts;
  } cases[] = {{0, REDLOCK_NEVER, 4},
               {REDLOCK_RETRIES_NONE, REDLOCK_NEVER, 1},
               {1000000, REDLOCK_NEVER, 1000001},
               {0, 1, UINT64_MAX},
               {5, 1, 6},
               {REDLOCK_RETRIES_NONE, SECONDS, 1},
               {0, 0, 1},
               {5, 0, 1}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    rl_options options = defaults();
    options.retry_count = cases[i].retry_count;
    options.wait_us = cases[i].wait_us;
    assert_int_equal(rl_options_attempts(&options), cases[i].attempts);
  }
}

TEST(node_timeout_is_at_most_a_tenth_of_the_ttl) {
  rl_options options = defaults();
  assert_int_equal(rl_options_node_timeout(&options, 10 * SECONDS), 100 * MS);
  assert_int_equal(rl_options_node_timeout(&options, SECONDS), 100 * MS);
  assert_int_equal(rl_options_node_timeout(&options, SECONDS - 10), 100 * MS - 1);
  assert_int_equal(rl_options_node_timeout(&options, 1000), 100);
  options.node_timeout_us = 5 * SECONDS;
  assert_int_equal(rl_options_node_timeout(&options, 1000), 5 * SECONDS);
}

TEST(key_lives_for_ttl_and_lock_delay_rounded_up) {
  rl_options options = defaults();
  assert_int_equal(rl_options_key_ms(&options, SECONDS), 1000);
  options.lock_delay_us = 1;
  assert_int_equal(rl_options_key_ms(&options, SECONDS), 1001);
  options.lock_delay_us = 1000;
  assert_int_equal(rl_options_key_ms(&options, SECONDS), 1001);
  options.lock_delay_us = 1001;
  assert_int_equal(rl_options_key_ms(&options, SECONDS), 1002);
}

TEST(key_is_kept_for_hold_at_least_and_its_drift) {
  rl_options options = defaults();
  assert_int_equal(rl_options_hold_us(&options), 0);
  options.lock_delay_us = 7;
  assert_int_equal(rl_options_hold_us(&options), 0);
  for (unsigned i = 0; i < 6; i++) {
    static const redlock_duration holds_us[] = {
        1, 999, MS, SECONDS, 3600 * SECONDS, REDLOCK_TTL_MAX_US};
    options.hold_at_least_us = holds_us[i];
    redlock_duration life_us = rl_options_hold_us(&options) - 7;
    /* The least life of which hold_at_least is left without its drift. */
    assert_true(rl_validity_deadline(0, life_us, 0.01) >= holds_us[i] - 1);
    assert_true(rl_validity_deadline(0, life_us - 3, 0.01) <= holds_us[i]);
  }
  options.drift_factor = 1.0 - 1e-15;
  assert_true(rl_options_hold_us(&options) == 100 * REDLOCK_TTL_MAX_US + 7);
}
