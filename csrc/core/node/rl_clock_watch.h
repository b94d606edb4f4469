/*
 * The clock watch: whether a node's clock has been stepped.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLOCK_WATCH_H
#define RL_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_time.h"

/* By how much a clock may move against ours without being stepped; and so much of the time in between. */
#define RL_CLOCK_WATCH_LEAST_US (20 * REDLOCK_MILLISECONDS)
#define RL_CLOCK_WATCH_SHARE 100

/* For how long one reply is what later ones are compared with. */
#define RL_CLOCK_WATCH_AGE_US (10 * REDLOCK_SECONDS)

/* What the node's clock showed, less what ours did, is between the two. All 0: nothing is known. */
typedef struct rl_clock_watch {
  bool known;
  int64_t least_us, most_us;
  redlock_time at_us;                  /* by our clock */
  int64_t step_least_us, step_most_us; /* of the last step: it was between the two */
} rl_clock_watch;

/*
 * A reply, to a command of |sent_us| that came at |received_us|, says that the node's clock showed |node_us| in
 * between. Returns by how much the clock was stepped at least, in microseconds, less than 0 for backwards; 0 when it
 * was not, as far as can be told. After a step later replies are compared with this one.
 */
int64_t rl_clock_watch_note(rl_clock_watch *watch, uint64_t node_us, redlock_time sent_us,
                            redlock_time received_us);

#endif
