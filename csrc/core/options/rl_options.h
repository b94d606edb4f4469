/*
 * Options of a lock: defaults, levels, and what follows from them.
 *
 * SPDX-License-Identifier: MIT
 *
 * These are values. Which options there are, of what kind and within what bounds, rl_option_table.h says.
 */
#ifndef RL_OPTIONS_H
#define RL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rl_time.h"
#include "options/rl_option_table.h"

/*
 * What a lock goes by: every field means what it holds, and 0 is 0. Only a retry_count of 0 and a
 * node_timeout_us of 0 still stand for what the functions below make of them.
 */
#define RL_OPTIONS_DURATION redlock_duration
#define RL_OPTIONS_COUNT int
#define RL_OPTIONS_FACTOR double
#define RL_OPTIONS_FLAG int
#define RL_OPTIONS_CHOICE int
#define RL_OPTIONS_FIELD(name, kind, field, low, high, also, fallback, must)                       \
  RL_OPTIONS_##kind field;
typedef struct rl_options {
  RL_OPTIONS_OF_LOCK(RL_OPTIONS_FIELD)
} rl_options;

/* Fills |options| with the defaults. */
void rl_options_default(rl_options *options);

bool rl_options_equal(const rl_options *a, const rl_options *b);

/*
 * Puts |given| over |options|, which holds the level above: what is 0 stays. Returns NULL, or what is
 * wrong as a static sentence that names the field, and then changes nothing.
 */
const char *rl_options_read(rl_options *options, const redlock_options *given);

/*
 * Returns true if |given|, which has been put over others and made |options| of them, says how a lease is to keep itself
 * that does not.
 */
bool rl_options_keep_nothing(const rl_options *options, const redlock_options *given);

/* The budget of one round of a lease of |ttl_us|. */
redlock_duration rl_options_node_timeout(const rl_options *options, redlock_duration ttl_us);

/* How many attempts an acquire may make; UINT64_MAX = until its budget ends. */
uint64_t rl_options_attempts(const rl_options *options);

/* How long a node is asked to keep the key, in ms. */
uint64_t rl_options_key_ms(const rl_options *options, redlock_duration ttl_us);

#endif
