/*
 * The clock watch, by exact figures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "node/rl_clock_watch.h"
#include "rl_test.h"

#define DAY (1700000000 * SECONDS) /* of a node's clock; ours counts from its boot */
#define MAX ((uint64_t)9007199254740991)

/* A watch that has heard at |at| of a clock that was |DAY| ahead, by a reply that took |took|. */
static rl_clock_watch heard(redlock_time at, redlock_duration took) {
  rl_clock_watch watch = {0};
  assert_int_equal(rl_clock_watch_note(&watch, DAY + at - took, at - took, at), 0);
  return watch;
}

TEST(first_reply_shows_no_step) {
  rl_clock_watch watch = {0};
  assert_int_equal(rl_clock_watch_note(&watch, MAX, 5, 10), 0);
  assert_true(watch.known);
}

TEST(step_exceeds_drift_and_both_round_trips) {
  static const struct {
    redlock_duration before, took; /* round trips */
    int64_t
        moved; /* what the reply says, less what it would with the least possible offset before */
    int64_t step;
  } cases[] = {
      {0, 0, 20000, 0},
      {0, 0, 20001, 20001},
      {500, 0, 20500, 0},
      {500, 0, 20501, 20001},
      {0, 0, -20000, 0},
      {0, 0, -20001, -20001},
      {500, 0, -20000, 0},
      {500, 0, -20001, -20001},
      {0, 700, -20700, 0},
      {0, 700, -20701, -20001},
      {0, 700, 20001, 20001},
      {0, 0, 3600000000, 3600000000},
      {0, 0, -3600000000, -3600000000},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    redlock_time now = 5 * SECONDS;
    rl_clock_watch watch = {0};
    redlock_time at = 4 * SECONDS;
    assert_int_equal(rl_clock_watch_note(&watch, DAY + at, at - cases[i].before, at), 0);
    uint64_t node_us = (uint64_t)((int64_t)(DAY + now) + cases[i].moved);
    assert_int_equal(rl_clock_watch_note(&watch, node_us, now - cases[i].took, now), cases[i].step);
  }
}

TEST(hundredth_of_elapsed_time_is_drift) {
  rl_clock_watch watch = heard(1 * SECONDS, 0);
  redlock_time now = 11 * SECONDS;
  rl_clock_watch other = watch;
  assert_int_equal(rl_clock_watch_note(&watch, DAY + now + 100 * MS, now, now), 0);
  assert_int_equal(rl_clock_watch_note(&other, DAY + now + 100 * MS + 1, now, now), 100 * MS + 1);
}

TEST(fast_slew_is_detected) {
  rl_clock_watch watch = heard(1 * SECONDS, 0);
  int64_t step = 0;
  redlock_time now = 1 * SECONDS;
  while (step == 0 && now < 3 * SECONDS) {
    now += 1 * MS;
    step = rl_clock_watch_note(&watch, DAY + now + (now - 1 * SECONDS) / 12, now, now); /* 8.3 % */
  }
  assert_true(step > 0);
  assert_true(now < 1250 * MS);
}

TEST(reply_with_a_step_becomes_the_reference) {
  rl_clock_watch watch = heard(1 * SECONDS, 0);
  assert_int_equal(rl_clock_watch_note(&watch, DAY + 9 * SECONDS, 2 * SECONDS, 2 * SECONDS),
                   7 * SECONDS);
  assert_int_equal(rl_clock_watch_note(&watch, DAY + 10 * SECONDS, 3 * SECONDS, 3 * SECONDS), 0);
  assert_int_equal(rl_clock_watch_note(&watch, DAY + 4 * SECONDS, 4 * SECONDS, 4 * SECONDS),
                   -7 * (int64_t)SECONDS);
}

TEST(reference_lasts_ten_seconds_or_until_a_quicker_reply) {
  rl_clock_watch watch = heard(1 * SECONDS, 100);
  assert_int_equal(rl_clock_watch_note(&watch, DAY + 2 * SECONDS, 2 * SECONDS - 50, 2 * SECONDS),
                   0);
  assert_int_equal(watch.at_us, 1 * SECONDS);
  assert_int_equal(rl_clock_watch_note(&watch, DAY + 3 * SECONDS, 3 * SECONDS - 49, 3 * SECONDS),
                   0);
  assert_int_equal(watch.at_us, 3 * SECONDS);
  assert_int_equal(
      rl_clock_watch_note(&watch, DAY + 13 * SECONDS - 1, 12 * SECONDS, 13 * SECONDS - 1), 0);
  assert_int_equal(watch.at_us, 3 * SECONDS);
  assert_int_equal(rl_clock_watch_note(&watch, DAY + 13 * SECONDS, 12 * SECONDS, 13 * SECONDS), 0);
  assert_int_equal(watch.at_us, 13 * SECONDS);
}

TEST(invalid_time_changes_nothing) {
  rl_clock_watch watch = heard(1 * SECONDS, 0);
  assert_int_equal(rl_clock_watch_note(&watch, 0, 2 * SECONDS, 2 * SECONDS), 0);
  assert_int_equal(rl_clock_watch_note(&watch, MAX + 1, 2 * SECONDS, 2 * SECONDS), 0);
  assert_int_equal(rl_clock_watch_note(&watch, DAY, 2 * SECONDS, REDLOCK_NEVER), 0);
  assert_int_equal(watch.at_us, 1 * SECONDS);
}

/* After 10 s another reply takes the place of the one that is compared with; that one took 5 s. */
TEST(slow_reply_hides_no_step) {
  rl_clock_watch watch = heard(1 * SECONDS, 1 * MS);
  redlock_time slow = 12 * SECONDS, now = 13 * SECONDS;
  assert_int_equal(rl_clock_watch_note(&watch, DAY + slow - 5 * SECONDS, slow - 5 * SECONDS, slow),
                   0);
  assert_int_equal(watch.at_us, slow);
  assert_int_equal(watch.most_us - watch.least_us, 1 * MS + 11 * SECONDS / 100);
  assert_true(rl_clock_watch_note(&watch, DAY + now + 500 * MS, now, now) > 0);
}
