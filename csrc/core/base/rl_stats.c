/*
 * Statistics: counters and histograms of a client and of its nodes. Their rows are in rl_stats.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/rl_stats.h"

#include "base/rl_time.h"

/* Inclusive, in ascending order. Round trips need the first ones, waits the last ones. */
static const redlock_duration rl_histogram_bounds[REDLOCK_BUCKETS] = {
    100,    250,    500,     1000,    2500,    5000,     10000,    25000,    50000,        100000,
    250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000, REDLOCK_NEVER};

redlock_duration redlock_bucket_bound(size_t bucket) {
  return bucket < REDLOCK_BUCKETS ? rl_histogram_bounds[bucket] : REDLOCK_NEVER;
}

void rl_histogram_note(rl_histogram *histogram, redlock_duration duration_us) {
  unsigned bucket = 0;
  while (duration_us > rl_histogram_bounds[bucket]) {
    bucket++;
  }
  histogram->counts[bucket]++;
  histogram->sum_us = rl_time_add(histogram->sum_us, duration_us);
}

void rl_histogram_read(const rl_histogram *histogram, redlock_histogram *info) {
  uint64_t count = 0;
  for (unsigned i = 0; i < REDLOCK_BUCKETS; i++) {
    count += histogram->counts[i];
    info->buckets[i] = count;
  }
  info->count = count;
  info->sum_us = histogram->sum_us;
}

rl_stats_kind rl_stats_kind_of(rl_operation operation) {
  return operation == RL_OPERATION_ACQUIRE   ? RL_STATS_ACQUIRE
         : operation == RL_OPERATION_EXTEND  ? RL_STATS_EXTEND
         : operation == RL_OPERATION_RELEASE ? RL_STATS_RELEASE
                                             : RL_STATS_NONE;
}

void rl_stats_ended(rl_stats *stats, rl_stats_kind kind, int result) {
  if (kind >= RL_STATS_KINDS) {
    return;
  }
  redlock_outcomes *outcomes = &stats->operations[kind];
  switch (result) {
#define RL_STATS_COUNT(name, value)                                                                \
  case value:                                                                                      \
    outcomes->name++;                                                                              \
    break;
    RL_OUTCOMES(RL_STATS_COUNT)
  default:
    outcomes->error++;
    break;
  }
}

void rl_stats_lost(rl_stats *stats, int reason) {
  stats->lost_expired += reason == REDLOCK_E_EXPIRED;
  stats->lost_denied += reason == REDLOCK_E_LOST;
  stats->lost_max_hold += reason == REDLOCK_E_MAX_HOLD;
  stats->warned_unavailable += reason == REDLOCK_E_UNAVAILABLE;
  stats->warned_clock += reason == REDLOCK_E_CLOCK;
}
