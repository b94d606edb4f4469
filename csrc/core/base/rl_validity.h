/*
 * The time for which a lease may be relied upon.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_VALIDITY_H
#define RL_VALIDITY_H

#include "base/rl_time.h"

/*
 * Returns the drift allowance: ttl x factor + 2 ms, rounded up. The factor allows for clocks of
 * different rates, the 2 ms for the granularity of a node's expiry and of the client's clock. The
 * guard detects steps of a node's clock by a drift of its own (rl_clock_watch.h).
 */
redlock_duration rl_validity_drift(redlock_duration ttl_us, double drift_factor);

/*
 * Returns the instant from which the lease must no longer be relied upon: start + ttl - drift, but
 * not before start. |start_us| is a clock reading from before the first byte of the round was sent.
 */
redlock_time rl_validity_deadline(redlock_time start_us, redlock_duration ttl_us,
                                  double drift_factor);

/*
 * Returns the ttl of a key that must last for |lasts_us| by any clock: the least ttl of which
 * |lasts_us| is left without its drift. At most 36600 days.
 */
redlock_duration rl_validity_ttl_for(redlock_duration lasts_us, double drift_factor);

/* Returns the least ttl, in whole milliseconds, of which 1 ms is left without its drift. */
redlock_duration rl_validity_least_ttl(double drift_factor);

#endif
