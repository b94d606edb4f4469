/*
 * Options of a lock: defaults, checks and what follows from them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define RL_OPTIONS_NODE_TIMEOUT_US (100 * REDLOCK_MILLISECONDS)
#define RL_OPTIONS_RETRIES 3
#define RL_OPTIONS_SIZE_MAX 4096 /* no version of a struct will be larger */
#define RL_OPTIONS_RETRIES_MAX 1000000
#define RL_OPTIONS_DELAY_MIN_US REDLOCK_MILLISECONDS
/* With less than this left of a budget another attempt is not worth its commands. */
#define RL_OPTIONS_LEFT_MIN_US (2 * REDLOCK_MILLISECONDS)

static const redlock_options rl_options_defaults = {
    .size = sizeof(redlock_options),
    .ttl_us = 10 * REDLOCK_SECONDS,
    .retry_count = -1,
    .retry_delay_us = 200 * REDLOCK_MILLISECONDS,
    .retry_jitter_us = 100 * REDLOCK_MILLISECONDS,
    .wait_us = REDLOCK_NEVER,
    .node_timeout_us = 0,
    .drift_factor = 0.01,
    .lock_delay_us = 0,
};

bool rl_options_copy(void *to, size_t to_size, const void *from, size_t from_size) {
  if (from_size < sizeof(size_t) || from_size > RL_OPTIONS_SIZE_MAX) {
    return false;
  }
  memcpy(to, from, from_size < to_size ? from_size : to_size);
  memcpy(to, &to_size, sizeof to_size); /* The size is the first field. */
  return true;
}

void rl_options_fill(void *to, size_t to_size, const void *from, size_t from_size) {
  memset(to, 0, to_size);
  memcpy(to, from, from_size < to_size ? from_size : to_size);
  if (to_size >= sizeof to_size) {
    memcpy(to, &to_size, sizeof to_size);
  }
}

void redlock_options_default_sized(redlock_options *options, size_t size) {
  rl_options_fill(options, size, &rl_options_defaults, sizeof rl_options_defaults);
}

static int rl_options_fail(char *message, size_t message_size, const char *what) {
  if (message != NULL && message_size > 0) {
    (void)snprintf(message, message_size, "%s", what);
  }
  return REDLOCK_E_INVALID;
}

/* Written so that a NaN fails. */
static const char *rl_options_wrong(const redlock_options *options) {
  if (!(options->ttl_us >= REDLOCK_MILLISECONDS && options->ttl_us <= REDLOCK_TTL_MAX_US)) {
    return "ttl must be from 1 ms to 366 days";
  }
  if (!(options->retry_count >= -1 && options->retry_count <= RL_OPTIONS_RETRIES_MAX)) {
    return "retry_count must be -1 or from 0 to 1000000";
  }
  if (options->retry_delay_us > REDLOCK_TTL_MAX_US) {
    return "retry_delay must be at most 366 days";
  }
  if (options->retry_jitter_us > REDLOCK_TTL_MAX_US) {
    return "retry_jitter must be at most 366 days";
  }
  if (options->wait_us != REDLOCK_NEVER && options->wait_us > REDLOCK_TTL_MAX_US) {
    return "wait must be at most 366 days, or REDLOCK_NEVER";
  }
  if (options->node_timeout_us > REDLOCK_TTL_MAX_US) {
    return "node_timeout must be at most 366 days";
  }
  if (!(options->drift_factor >= 0.0 && options->drift_factor < 1.0)) {
    return "drift_factor must be from 0 to less than 1";
  }
  if (options->lock_delay_us > REDLOCK_TTL_MAX_US) {
    return "lock_delay must be at most 366 days";
  }
  return NULL;
}

int rl_options_read(redlock_options *to, const redlock_options *from, char *message,
                    size_t message_size) {
  if (!rl_options_copy(to, sizeof *to, from, from->size)) {
    return rl_options_fail(message, message_size,
                           "options.size is wrong: fill with redlock_options_default()");
  }
  const char *wrong = rl_options_wrong(to);
  if (wrong != NULL) {
    return rl_options_fail(message, message_size, wrong);
  }
  /* A node counts in whole milliseconds, so we do not count on more. */
  to->ttl_us = rl_time_ms_down(to->ttl_us) * REDLOCK_MILLISECONDS;
  return REDLOCK_OK;
}

redlock_duration rl_options_node_timeout(const redlock_options *options, redlock_duration ttl_us) {
  if (options->node_timeout_us != 0) {
    return options->node_timeout_us;
  }
  return rl_time_min(RL_OPTIONS_NODE_TIMEOUT_US, ttl_us / 10);
}

uint64_t rl_options_attempts(const redlock_options *options) {
  if (options->wait_us == 0) {
    return 1;
  }
  if (options->retry_count >= 0) {
    return (uint64_t)options->retry_count + 1;
  }
  return options->wait_us == REDLOCK_NEVER ? RL_OPTIONS_RETRIES + 1 : UINT64_MAX;
}

uint64_t rl_options_key_ms(const redlock_options *options, redlock_duration ttl_us) {
  return rl_time_ms_up(rl_time_add(ttl_us, options->lock_delay_us));
}

redlock_duration rl_options_retry_delay(const redlock_options *options, uint64_t random,
                                        redlock_duration left_us) {
  redlock_duration shortest_us = rl_time_sub(options->retry_delay_us, options->retry_jitter_us);
  redlock_duration longest_us = rl_time_add(options->retry_delay_us, options->retry_jitter_us);
  redlock_duration span_us = rl_time_sub(longest_us, shortest_us);
  assert(span_us < REDLOCK_NEVER); /* rl_options_read() has bounded both. */
  redlock_duration delay_us = rl_time_add(shortest_us, random % (span_us + 1));
  /* Nodes that refuse at once would otherwise be tried as fast as the processor goes. */
  delay_us = rl_time_max(delay_us, RL_OPTIONS_DELAY_MIN_US);
  if (left_us < RL_OPTIONS_LEFT_MIN_US) {
    return REDLOCK_NEVER;
  }
  return rl_time_min(delay_us, left_us / 2);
}
