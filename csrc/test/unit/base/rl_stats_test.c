/*
 * Counters and histograms.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_stats.h"
#include "rl_test.h"

/* Returns the bucket, not cumulative, that counts |duration_us| alone. */
static unsigned bucket_of(redlock_duration duration_us) {
  rl_histogram histogram = {0};
  unsigned found = REDLOCK_BUCKETS;
  rl_histogram_note(&histogram, duration_us);
  for (unsigned i = 0; i < REDLOCK_BUCKETS; i++) {
    if (histogram.counts[i] != 0) {
      assert_int_equal(histogram.counts[i], 1);
      assert_int_equal(found, REDLOCK_BUCKETS);
      found = i;
    }
  }
  return found;
}

TEST(bucket_contains_its_upper_bound) {
  assert_int_equal(bucket_of(0), 0);
  for (unsigned i = 0; i + 1 < REDLOCK_BUCKETS; i++) {
    assert_int_equal(bucket_of(redlock_bucket_bound(i)), i);
    assert_int_equal(bucket_of(redlock_bucket_bound(i) + 1), i + 1);
  }
  assert_int_equal(bucket_of(REDLOCK_NEVER), REDLOCK_BUCKETS - 1);
}

TEST(bounds_ascend_to_never) {
  for (unsigned i = 1; i < REDLOCK_BUCKETS; i++) {
    assert_true(redlock_bucket_bound(i) > redlock_bucket_bound(i - 1));
  }
  assert_int_equal(redlock_bucket_bound(REDLOCK_BUCKETS - 1), REDLOCK_NEVER);
  assert_int_equal(redlock_bucket_bound(REDLOCK_BUCKETS), REDLOCK_NEVER);
  assert_int_equal(redlock_bucket_bound(SIZE_MAX), REDLOCK_NEVER);
}

TEST(read_histogram_is_cumulative) {
  rl_histogram histogram = {0};
  redlock_histogram info;
  static const redlock_duration durations[] = {1, 100, 101, 999, 70 * SECONDS};
  for (unsigned i = 0; i < COUNT_OF(durations); i++) {
    rl_histogram_note(&histogram, durations[i]);
  }
  rl_histogram_read(&histogram, &info);
  assert_int_equal(info.count, COUNT_OF(durations));
  assert_int_equal(info.sum_us, 1 + 100 + 101 + 999 + 70 * SECONDS);
  for (unsigned i = 0; i < REDLOCK_BUCKETS; i++) {
    unsigned expected = 0;
    for (unsigned k = 0; k < COUNT_OF(durations); k++) {
      expected += durations[k] <= redlock_bucket_bound(i);
    }
    assert_int_equal(info.buckets[i], expected);
  }
  assert_int_equal(info.buckets[REDLOCK_BUCKETS - 1], info.count);
}

TEST(sum_saturates) {
  rl_histogram histogram = {0};
  rl_histogram_note(&histogram, REDLOCK_NEVER - 1);
  rl_histogram_note(&histogram, 5);
  rl_histogram_note(&histogram, 5);
  assert_int_equal(histogram.sum_us, REDLOCK_NEVER);
}

TEST(each_result_has_a_counter_of_its_own) {
  static const int results[] = {REDLOCK_OK,         REDLOCK_E_TAKEN,  REDLOCK_E_UNAVAILABLE,
                                REDLOCK_E_EXPIRED,  REDLOCK_E_LOST,   REDLOCK_E_HELD,
                                REDLOCK_E_NOT_HELD, REDLOCK_E_CLOSED, REDLOCK_E_CANCELLED};
  for (unsigned kind = 0; kind < RL_STATS_KINDS; kind++) {
    for (unsigned i = 0; i < COUNT_OF(results); i++) {
      rl_stats stats = {0};
      rl_stats_ended(&stats, (rl_stats_kind)kind, results[i]);
      assert_memory_equal(&stats.operations[kind],
                          (&(redlock_outcomes){.ok = i == 0,
                                               .taken = i == 1,
                                               .unavailable = i == 2,
                                               .expired = i == 3,
                                               .lost = i == 4,
                                               .held = i == 5,
                                               .not_held = i == 6,
                                               .closed = i == 7,
                                               .cancelled = i == 8}),
                          sizeof(redlock_outcomes));
    }
  }
}

TEST(unlisted_result_is_an_error) {
  static const int results[] = {REDLOCK_E_NO_MEMORY, REDLOCK_E_SYSTEM, REDLOCK_E_INVALID,
                                REDLOCK_E_BUSY, REDLOCK_E_MAX_HOLD};
  rl_stats stats = {0};
  for (unsigned i = 0; i < COUNT_OF(results); i++) {
    rl_stats_ended(&stats, RL_STATS_EXTEND, results[i]);
  }
  assert_int_equal(stats.operations[RL_STATS_EXTEND].error, COUNT_OF(results));
  assert_int_equal(stats.operations[RL_STATS_ACQUIRE].error, 0);
}

TEST(operation_that_asks_is_not_counted) {
  static const rl_stats nothing = {0};
  rl_stats stats = {0};
  for (unsigned operation = RL_OPERATION_FIRST_ASKED; operation < RL_OPERATION_COUNT; operation++) {
    assert_int_equal(rl_stats_kind_of((rl_operation)operation), RL_STATS_NONE);
  }
  rl_stats_ended(&stats, RL_STATS_NONE, REDLOCK_OK);
  rl_stats_ended(&stats, RL_STATS_KINDS, REDLOCK_OK);
  assert_memory_equal(&stats, &nothing, sizeof stats);
}

TEST(each_loss_is_counted_by_reason) {
  rl_stats stats = {0};
  rl_stats_lost(&stats, REDLOCK_E_EXPIRED);
  for (unsigned i = 0; i < 2; i++) {
    rl_stats_lost(&stats, REDLOCK_E_LOST);
  }
  for (unsigned i = 0; i < 3; i++) {
    rl_stats_lost(&stats, REDLOCK_E_MAX_HOLD);
  }
  for (unsigned i = 0; i < 4; i++) {
    rl_stats_lost(&stats, REDLOCK_E_UNAVAILABLE);
  }
  for (unsigned i = 0; i < 5; i++) {
    rl_stats_lost(&stats, REDLOCK_E_CLOCK);
  }
  rl_stats_lost(&stats, REDLOCK_OK);
  assert_int_equal(stats.lost_expired, 1);
  assert_int_equal(stats.lost_denied, 2);
  assert_int_equal(stats.lost_max_hold, 3);
  assert_int_equal(stats.warned_unavailable, 4);
  assert_int_equal(stats.warned_clock, 5);
}
