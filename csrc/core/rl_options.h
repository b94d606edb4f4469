/*
 * Options of a lock: defaults, checks and what follows from them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_OPTIONS_H
#define RL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "rl_time.h"

/*
 * Copies |from|, of whatever version its size says, over |*to|, which holds the defaults for fields
 * that the caller's version does not have. Returns REDLOCK_OK, or REDLOCK_E_INVALID with a sentence
 * that names the field in |message|, which may be NULL.
 */
int rl_options_read(redlock_options *to, const redlock_options *from, char *message,
                    size_t message_size);

/*
 * Structs of the public header carry their size, so that caller and library may have been compiled
 * with different versions of it. Copies what both know of |from|, in the caller's version, over |to|,
 * which holds defaults, and sets its size. False when |from_size| cannot be right.
 */
bool rl_options_copy(void *to, size_t to_size, const void *from, size_t from_size);

/* The other direction: fills a caller's struct of |to_size| with |from|; what is beyond it with 0. */
void rl_options_fill(void *to, size_t to_size, const void *from, size_t from_size);

/* The budget of one round of a lease of |ttl_us|. */
redlock_duration rl_options_node_timeout(const redlock_options *options, redlock_duration ttl_us);

/* How many attempts an acquire may make; UINT64_MAX = until its budget ends. */
uint64_t rl_options_attempts(const redlock_options *options);

/* How long a node is asked to keep the key, in ms. */
uint64_t rl_options_key_ms(const redlock_options *options, redlock_duration ttl_us);

/*
 * How long to wait before the next attempt: delay +- uniform(jitter), by |random|; less when less of
 * the budget is left, so that waiting does not use it up; REDLOCK_NEVER when too little is left.
 */
redlock_duration rl_options_retry_delay(const redlock_options *options, uint64_t random,
                                        redlock_duration left_us);

#endif
