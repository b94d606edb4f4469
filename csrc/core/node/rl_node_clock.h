/*
 * The clock of a node, as its replies show it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_NODE_CLOCK_H
#define RL_NODE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_time.h"

/* The latest valid time of a clock, in microseconds since 1970. */
#define RL_NODE_CLOCK_MAX RL_NUMBER_MAX

/* Zero: unknown. */
typedef struct rl_node_clock {
  bool known;
  int64_t offset_us;         /* the node's clock minus the core's */
  redlock_duration error_us; /* bound of the error: half of the round trip */
  redlock_time at_us;        /* time of the reply, by the core's clock */
} rl_node_clock;

/*
 * Notes that the node's clock showed |node_us| between |sent_us| and |received_us| of the core's
 * clock. The latest reply replaces earlier ones. Returns false, and notes nothing, if the time is
 * invalid.
 */
bool rl_node_clock_note(rl_node_clock *clock, uint64_t node_us, redlock_time sent_us,
                        redlock_time received_us);

/* Returns what a clock of that offset shows at |now_us|, from 1 to RL_NODE_CLOCK_MAX. */
uint64_t rl_node_clock_shows(int64_t offset_us, redlock_time now_us);

/*
 * Sets |*offset_us| to the median offset of the known clocks; of two in the middle to the lower
 * one. Returns the number of known clocks. If it is 0, |*offset_us| is unchanged.
 */
unsigned rl_node_clock_median(const rl_node_clock *const *clocks, unsigned count,
                              int64_t *offset_us);

#endif
