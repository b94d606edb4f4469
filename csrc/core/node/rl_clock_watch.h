/*
 * The clock watch: detects steps of a node's clock.
 *
 * SPDX-License-Identifier: MIT
 *
 * csrc/core/node has the state of nodes and their connections: links, clocks, the guard, verdicts.
 * It knows no lock. It includes base, options and wire.
 */
#ifndef RL_CLOCK_WATCH_H
#define RL_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_time.h"

/*
 * The permitted drift against the core's clock: a constant, or a share of the elapsed time. The
 * drift of a lease is another one (rl_validity.h).
 */
#define RL_CLOCK_WATCH_LEAST_US (20 * REDLOCK_MILLISECONDS)
#define RL_CLOCK_WATCH_SHARE 100

/* The time for which one reply is the reference. */
#define RL_CLOCK_WATCH_AGE_US (10 * REDLOCK_SECONDS)

/* The range of the offset of the node's clock from the core's. Zero: unknown. */
typedef struct rl_clock_watch {
  bool known;
  int64_t least_us, most_us;
  redlock_time at_us;                  /* by the core's clock */
  int64_t step_least_us, step_most_us; /* range of the last step */
} rl_clock_watch;

/*
 * Notes that the node's clock showed |node_us| between |sent_us| and |received_us|. Returns the
 * least size of a step in microseconds, negative for backwards; 0 if none is proved. After a step
 * this reply is the reference.
 */
int64_t rl_clock_watch_note(rl_clock_watch *watch, uint64_t node_us, redlock_time sent_us,
                            redlock_time received_us);

#endif
