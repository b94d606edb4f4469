/*
 * What is known of the clocks of nodes, by exact figures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "node/rl_node_clock.h"
#include "rl_test.h"

#define DAY (1700000000 * SECONDS) /* of a node's clock; ours counts from its boot */

TEST(offset_is_that_of_the_middle_of_the_round_trip) {
  static const struct {
    uint64_t node_us;
    redlock_time sent_us, received_us;
    int64_t offset_us;
    redlock_duration error_us;
  } cases[] = {
      {DAY, 100, 200, DAY - 150, 50},
      {DAY, 100, 203, DAY - 152, 52}, /* half of 103, rounded up */
      {DAY, 100, 100, DAY - 100, 0},
      {DAY, 200, 100, DAY - 100, 0}, /* sent after it came: it took no time */
      {5, 1000, 3000, -1995, 1000},  /* a node whose clock is behind ours */
      {RL_NODE_CLOCK_MAX, 0, 2, (int64_t)RL_NODE_CLOCK_MAX - 1, 1},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    rl_node_clock clock = {0};
    assert_true(
        rl_node_clock_note(&clock, cases[i].node_us, cases[i].sent_us, cases[i].received_us));
    assert_true(clock.known);
    assert_true(clock.offset_us == cases[i].offset_us);
    assert_int_equal(clock.error_us, cases[i].error_us);
    assert_int_equal(clock.at_us, cases[i].received_us);
  }
}

TEST(true_offset_is_within_the_error_wherever_the_clock_was_read) {
  for (redlock_time read_us = 100; read_us <= 203; read_us++) {
    rl_node_clock clock = {0};
    int64_t true_offset_us = 7000;
    assert_true(rl_node_clock_note(&clock, 7000 + read_us, 100, 203));
    assert_true(llabs(clock.offset_us - true_offset_us) <= (long long)clock.error_us);
  }
}

TEST(latest_reply_counts) {
  rl_node_clock clock = {0};
  assert_true(rl_node_clock_note(&clock, DAY, 100, 100));
  assert_true(rl_node_clock_note(&clock, DAY + 5000, 1000, 2000));
  assert_true(clock.offset_us == (int64_t)(DAY + 5000 - 1500));
  assert_int_equal(clock.error_us, 500);
}

TEST(invalid_time_is_ignored) {
  rl_node_clock clock = {0};
  assert_false(rl_node_clock_note(&clock, 0, 100, 200));
  assert_false(rl_node_clock_note(&clock, RL_NODE_CLOCK_MAX + 1, 100, 200));
  assert_false(rl_node_clock_note(&clock, UINT64_MAX, 100, 200));
  assert_false(rl_node_clock_note(&clock, DAY, 100, REDLOCK_NEVER));
  assert_false(clock.known);
  assert_true(rl_node_clock_note(&clock, DAY, RL_NODE_CLOCK_MAX, RL_NODE_CLOCK_MAX));
  assert_true(rl_node_clock_note(&clock, DAY, 100, 200));
  assert_false(rl_node_clock_note(&clock, 0, 300, 400));
  assert_true(clock.offset_us == (int64_t)(DAY - 150)); /* unchanged */
}

TEST(clock_shows_time_plus_offset) {
  int64_t max = (int64_t)RL_NODE_CLOCK_MAX;
  assert_true(rl_node_clock_shows(DAY, 5) == DAY + 5);
  assert_true(rl_node_clock_shows(-3, 5) == 2);
  assert_true(rl_node_clock_shows(-5, 5) == 1); /* never 0, which would be none */
  assert_true(rl_node_clock_shows(-max, 5) == 1);
  assert_true(rl_node_clock_shows(max, 5) == RL_NODE_CLOCK_MAX);
  assert_true(rl_node_clock_shows(max - 5, 5) == RL_NODE_CLOCK_MAX);
  assert_true(rl_node_clock_shows(max - 6, 5) == RL_NODE_CLOCK_MAX - 1);
  assert_true(rl_node_clock_shows(max, REDLOCK_NEVER) == RL_NODE_CLOCK_MAX);
}

TEST(median_uses_known_clocks) {
  static const struct {
    unsigned count;
    unsigned known;
    int64_t offsets[5]; /* 0 = not known */
    int64_t median_us;
  } cases[] = {
      {0, 0, {0}, 77},
      {3, 0, {0, 0, 0}, 77},
      {3, 1, {0, 5, 0}, 5},
      {3, 3, {9, 5, 7}, 7},
      {3, 3, {7, 9, 5}, 7},
      {3, 3, {-9, 5, -7}, -7},
      {5, 4, {1, 100, 0, 3, 2}, 2}, /* of two the lower one */
      {5, 5, {5, 4, 3, 2, 1}, 3},
      {2, 2, {8, 6}, 6},
  };
  for (unsigned i = 0; i < COUNT_OF(cases); i++) {
    rl_node_clock clocks[5];
    const rl_node_clock *of[5];
    int64_t median_us = 77;
    for (unsigned j = 0; j < 5; j++) {
      clocks[j] =
          (rl_node_clock){.known = cases[i].offsets[j] != 0, .offset_us = cases[i].offsets[j]};
      of[j] = &clocks[j];
    }
    assert_int_equal(rl_node_clock_median(of, cases[i].count, &median_us), cases[i].known);
    assert_true(median_us == cases[i].median_us);
  }
}

TEST(median_takes_the_largest_number_of_nodes) {
  rl_node_clock clocks[REDLOCK_NODES_MAX];
  const rl_node_clock *of[REDLOCK_NODES_MAX];
  int64_t median_us = 0;
  for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
    clocks[i] = (rl_node_clock){.known = true, .offset_us = (int64_t)REDLOCK_NODES_MAX - i};
    of[i] = &clocks[i];
  }
  assert_int_equal(rl_node_clock_median(of, REDLOCK_NODES_MAX, &median_us), REDLOCK_NODES_MAX);
  assert_true(median_us == (REDLOCK_NODES_MAX + 1) / 2);
}
