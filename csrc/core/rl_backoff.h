/*
 * Back-off: how long to wait before the next attempt, and before the next connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BACKOFF_H
#define RL_BACKOFF_H

#include "rl_options.h"

#define RL_BACKOFF_CONNECTION_MIN_US (50 * REDLOCK_MILLISECONDS)
#define RL_BACKOFF_CONNECTION_MAX_US REDLOCK_SECONDS

/*
 * How long to wait before the next attempt: delay +- uniform(jitter), by |random|; less when less of
 * the budget is left, so that waiting does not use it up; REDLOCK_NEVER when too little is left.
 */
redlock_duration rl_backoff_attempt(const rl_options *options, uint64_t random,
                                    redlock_duration left_us);

/*
 * How long to wait before the next connection, after |failures| in a row that were of no use. A random
 * part of it, up to a half, is left out, or many clients that lost a node together would come back
 * together, each time.
 */
redlock_duration rl_backoff_connection(unsigned failures, uint64_t random);

#endif
