/*
 * Back-off: how long to wait before the next attempt, and before the next connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BACKOFF_H
#define RL_BACKOFF_H

#include "options/rl_options.h"

#define RL_BACKOFF_CONNECTION_MIN_US (50 * REDLOCK_MILLISECONDS)
#define RL_BACKOFF_CONNECTION_MAX_US REDLOCK_SECONDS

/*
 * Nodes that refuse at once must not be asked as fast as the processor runs: the pause between two
 * attempts is never shorter.
 */
#define RL_BACKOFF_ATTEMPT_MIN_US REDLOCK_MILLISECONDS

/* Returns the pause between two attempts: delay +- uniform(jitter), drawn by |random|. */
redlock_duration rl_backoff_attempt(const rl_options *options, uint64_t random);

/*
 * How long to wait before the next connection, after |failures| in a row that were of no use. A random
 * part of it, up to a half, is left out, or many clients that lost a node together would come back
 * together, each time.
 */
redlock_duration rl_backoff_connection(unsigned failures, uint64_t random);

#endif
