/*
 * Delays before the next attempt and before the next connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BACKOFF_H
#define RL_BACKOFF_H

#include "options/rl_options.h"

#define RL_BACKOFF_CONNECTION_MIN_US (50 * REDLOCK_MILLISECONDS)
#define RL_BACKOFF_CONNECTION_MAX_US REDLOCK_SECONDS

/* The shortest pause between two attempts, even if the nodes refuse at once. */
#define RL_BACKOFF_ATTEMPT_MIN_US REDLOCK_MILLISECONDS

/*
 * Returns the pause between two attempts: delay +- uniform(jitter), by the random number |random|.
 */
redlock_duration rl_backoff_attempt(const rl_options *options, uint64_t random);

/* Returns the mean of these pauses. */
redlock_duration rl_backoff_attempt_mean(const rl_options *options);

/*
 * Returns the delay before the next connection after |failures| useless ones in a row. It is
 * shortened by a random part of up to a half, so that clients that lost a node at once do not
 * return at once.
 */
redlock_duration rl_backoff_connection(unsigned failures, uint64_t random);

#endif
