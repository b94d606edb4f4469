/*
 * Delays before the next attempt and before the next connection.
 *
 * SPDX-License-Identifier: MIT
 *
 * Copies of the delay between attempts: csrc/test/sim/check_budget.c and check_waiting.c;
 * option.budget() in lua/redlock/fake_option.lua.
 */
#include "options/rl_backoff.h"

#include <assert.h>

redlock_duration rl_backoff_attempt(const rl_options *options, uint64_t random) {
  redlock_duration shortest_us = rl_time_sub(options->retry_delay_us, options->retry_jitter_us);
  redlock_duration longest_us = rl_time_add(options->retry_delay_us, options->retry_jitter_us);
  redlock_duration span_us = rl_time_sub(longest_us, shortest_us);
  assert(span_us < REDLOCK_NEVER); /* rl_options_read() bounds both. */
  redlock_duration pause_us = rl_time_add(shortest_us, random % (span_us + 1));
  return rl_time_max(pause_us, RL_BACKOFF_ATTEMPT_MIN_US);
}

redlock_duration rl_backoff_attempt_mean(const rl_options *options) {
  return rl_time_max(options->retry_delay_us, RL_BACKOFF_ATTEMPT_MIN_US);
}

redlock_duration rl_backoff_connection(unsigned failures, uint64_t random) {
  redlock_duration delay_us = RL_BACKOFF_CONNECTION_MIN_US;
  for (unsigned i = 0; i < failures && delay_us < RL_BACKOFF_CONNECTION_MAX_US; i++) {
    delay_us *= 2;
  }
  delay_us = rl_time_min(delay_us, RL_BACKOFF_CONNECTION_MAX_US);
  return delay_us - random % (delay_us / 2 + 1);
}
