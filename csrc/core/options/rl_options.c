/* SPDX-License-Identifier: MIT */
#include "options/rl_options.h"

#include <string.h>

#include "base/rl_validity.h"

#define RL_OPTIONS_NODE_TIMEOUT_US (100 * REDLOCK_MILLISECONDS)
#define RL_OPTIONS_RETRIES 3

#define RL_OPTIONS_VALUE_DURATION(fallback) (fallback)
#define RL_OPTIONS_VALUE_COUNT(fallback) (fallback)
#define RL_OPTIONS_VALUE_FLAG(fallback) (fallback)
#define RL_OPTIONS_VALUE_FACTOR(fallback) (fallback)
#define RL_OPTIONS_VALUE_LABEL(fallback)                                                           \
  { .length = (fallback) }
#define RL_OPTIONS_FALLBACK(name, kind, field, low, high, also, fallback, must)                    \
  .field = RL_OPTIONS_VALUE_##kind(fallback),
static const rl_options rl_options_defaults = {RL_OPTIONS_OF_LOCK(RL_OPTIONS_FALLBACK)};

void rl_options_default(rl_options *options) {
  *options = rl_options_defaults;
}

#define RL_OPTIONS_EQUAL_DURATION(a, b) ((a) == (b))
#define RL_OPTIONS_EQUAL_COUNT(a, b) ((a) == (b))
#define RL_OPTIONS_EQUAL_FLAG(a, b) ((a) == (b))
#define RL_OPTIONS_EQUAL_FACTOR(a, b) ((a) == (b))
#define RL_OPTIONS_EQUAL_LABEL(a, b) (strcmp((a).text, (b).text) == 0)

bool rl_options_equal(const rl_options *a, const rl_options *b) {
#define RL_OPTIONS_EQUAL(name, kind, field, low, high, also, fallback, must)                       \
  &&RL_OPTIONS_EQUAL_##kind(a->field, b->field)
  return true RL_OPTIONS_OF_LOCK(RL_OPTIONS_EQUAL);
}

static redlock_duration rl_options_over_duration(redlock_duration above, redlock_duration own) {
  return own == 0 ? above : own == REDLOCK_DURATION_NONE ? 0 : own;
}

/* REDLOCK_RETRIES_NONE and REDLOCK_NO are kept as they are. */
static int rl_options_over_number(int above, int own) {
  return own == 0 ? above : own;
}

static double rl_options_over_factor(double above, double own) {
  return own > 0.0 ? own : own < 0.0 ? 0.0 : above;
}

static rl_label rl_options_over_label(rl_label above, const char *own) {
  rl_label label = above;
  if (own != NULL) {
    rl_label_set(&label, own, strlen(own));
  }
  return label;
}

#define RL_OPTIONS_OVER_LABEL rl_options_over_label
#define RL_OPTIONS_OVER_DURATION rl_options_over_duration
#define RL_OPTIONS_OVER_COUNT rl_options_over_number
#define RL_OPTIONS_OVER_FLAG rl_options_over_number
#define RL_OPTIONS_OVER_FACTOR rl_options_over_factor

bool rl_options_lease_is_empty(const rl_options *above, const redlock_options *own) {
  redlock_duration ttl_us = rl_options_over_duration(above->ttl_us, own->ttl_us);
  double factor = rl_options_over_factor(above->drift_factor, own->drift_factor);
  return ttl_us < rl_validity_least_ttl(factor);
}

/* Returns a static sentence, so only usual values are in it. */
static const char *rl_options_too_short(redlock_duration ttl_us) {
#define RL_OPTIONS_TOO_SHORT(ttl)                                                                  \
  ttl " must be at least 1 ms more than the drift allowance, which is ttl x drift_factor + 2 ms: " \
      "at least 4 ms with the default drift_factor"
  static const char *const sentences[] = {
      RL_OPTIONS_TOO_SHORT("ttl"), RL_OPTIONS_TOO_SHORT("ttl is 1 ms, and"),
      RL_OPTIONS_TOO_SHORT("ttl is 2 ms, and"), RL_OPTIONS_TOO_SHORT("ttl is 3 ms, and")};
  uint64_t ttl_ms = rl_time_ms_down(ttl_us);
  return sentences[ttl_ms < sizeof sentences / sizeof sentences[0] ? ttl_ms : 0];
}

const char *rl_options_read(rl_options *options, const redlock_options *own) {
  const char *wrong = rl_option_wrong(&rl_options_of_lock, own);
  if (wrong != NULL) {
    return wrong;
  }
  if (rl_options_lease_is_empty(options, own)) {
    return rl_options_too_short(rl_options_over_duration(options->ttl_us, own->ttl_us));
  }
#define RL_OPTIONS_OVER(name, kind, field, low, high, also, fallback, must)                        \
  options->field = RL_OPTIONS_OVER_##kind(options->field, own->field);
  RL_OPTIONS_OF_LOCK(RL_OPTIONS_OVER)
  /* A budget replaces a number of attempts that was set on a higher level. */
  if (own->wait_us != 0 && own->retry_count == 0) {
    options->retry_count = 0;
  }
  /* A node counts whole milliseconds. */
  options->ttl_us = rl_time_ms_down(options->ttl_us) * REDLOCK_MILLISECONDS;
  return NULL;
}

static bool rl_options_has_duration(redlock_duration own) {
  return own != 0 && own != REDLOCK_DURATION_NONE;
}

bool rl_options_lack_auto_extend(const rl_options *options, const redlock_options *own) {
  return options->auto_extend != REDLOCK_YES && (rl_options_has_duration(own->extend_every_us) ||
                                                 rl_options_has_duration(own->max_hold_us));
}

redlock_duration rl_options_node_timeout(const rl_options *options, redlock_duration ttl_us) {
  if (options->node_timeout_us != 0) {
    return options->node_timeout_us;
  }
  return rl_time_min(RL_OPTIONS_NODE_TIMEOUT_US, ttl_us / 10);
}

uint64_t rl_options_attempts(const rl_options *options) {
  if (options->wait_us == 0) {
    return 1;
  }
  if (options->retry_count != 0) {
    return options->retry_count == REDLOCK_RETRIES_NONE ? 1 : (uint64_t)options->retry_count + 1;
  }
  return options->wait_us == REDLOCK_NEVER ? RL_OPTIONS_RETRIES + 1 : UINT64_MAX;
}

uint64_t rl_options_key_ms(const rl_options *options, redlock_duration ttl_us) {
  return rl_time_ms_up(rl_time_add(ttl_us, options->lock_delay_us));
}

redlock_duration rl_options_hold_us(const rl_options *options) {
  redlock_duration life_us = rl_validity_ttl_for(options->hold_at_least_us, options->drift_factor);
  return options->hold_at_least_us == 0 ? 0 : rl_time_add(life_us, options->lock_delay_us);
}
