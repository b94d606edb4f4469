/*
 * Options of a lock: defaults, inheritance from client to lock to call, and derived values.
 *
 * SPDX-License-Identifier: MIT
 *
 * rl_option_table.h lists the options with their kinds and bounds.
 */
#ifndef RL_OPTIONS_H
#define RL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rl_label.h"
#include "base/rl_time.h"
#include "options/rl_option_table.h"

/*
 * The resolved options of a lock: 0 means 0, except in retry_count and node_timeout_us, which the
 * functions below resolve.
 */
#define RL_OPTIONS_DURATION redlock_duration
#define RL_OPTIONS_COUNT int
#define RL_OPTIONS_FACTOR double
#define RL_OPTIONS_FLAG int
#define RL_OPTIONS_LABEL rl_label
#define RL_OPTIONS_FIELD(name, kind, field, low, high, also, fallback, must)                       \
  RL_OPTIONS_##kind field;
typedef struct rl_options {
  RL_OPTIONS_OF_LOCK(RL_OPTIONS_FIELD)
} rl_options;

/* Fills |options| with the defaults. */
void rl_options_default(rl_options *options);

bool rl_options_equal(const rl_options *a, const rl_options *b);

/*
 * Returns true if the ttl of valid options |own|, below the level |above|, leaves less than 1 ms
 * after the drift allowance.
 */
bool rl_options_lease_is_empty(const rl_options *above, const redlock_options *own);

/*
 * Overrides |options|, those of the level above, by the fields of |own| that are not 0. Returns
 * NULL. If a field is wrong: changes nothing, and returns a static sentence that names the field.
 */
const char *rl_options_read(rl_options *options, const redlock_options *own);

/* Returns true if |own| configures auto-extension and the resolved |options| have it off. */
bool rl_options_lack_auto_extend(const rl_options *options, const redlock_options *own);

/* Returns the time budget of one round of a lease of |ttl_us|. */
redlock_duration rl_options_node_timeout(const rl_options *options, redlock_duration ttl_us);

/* Returns how many attempts an acquire may make; UINT64_MAX: until its time budget ends. */
uint64_t rl_options_attempts(const rl_options *options);

/* Returns the life of the key on a node, in ms. */
uint64_t rl_options_key_ms(const rl_options *options, redlock_duration ttl_us);

/*
 * Returns for how long a key must live after the grant so that it lasts for hold_at_least_us, with
 * drift and lock_delay_us; 0 without that option.
 */
redlock_duration rl_options_hold_us(const rl_options *options);

#endif
