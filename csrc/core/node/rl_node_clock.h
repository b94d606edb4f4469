/*
 * The clock of a node, as far as its replies have told it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_NODE_CLOCK_H
#define RL_NODE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_time.h"

/* What a clock that can be told shows at most, in microseconds since 1970: what any Lua can count. */
#define RL_NODE_CLOCK_MAX RL_NUMBER_MAX

/* All 0: nothing is known. */
typedef struct rl_node_clock {
  bool known;
  int64_t offset_us;         /* the node's clock, less the core's */
  redlock_duration error_us; /* by which that is off at most: half of the round trip */
  redlock_time at_us;        /* when the reply came, by the core's clock */
} rl_node_clock;

/*
 * A reply, to a command that was sent at |sent_us| and received at |received_us| of the core's clock, says that
 * the node's clock showed |node_us| microseconds in between. The latest reply is what is known from now on;
 * one that no clock can say is left out, and false returned.
 */
bool rl_node_clock_note(rl_node_clock *clock, uint64_t node_us, redlock_time sent_us,
                        redlock_time received_us);

/* What a clock of that offset shows at |now_us| of the core's clock, from 1 to RL_NODE_CLOCK_MAX. */
uint64_t rl_node_clock_shows(int64_t offset_us, redlock_time now_us);

/*
 * The median of the offsets of the clocks that are known among |count| of them, at most REDLOCK_NODES_MAX; of two in
 * the middle the lower one, so that it is always the offset of one of them. Returns how many are known;
 * |*offset_us| is set if any is.
 */
unsigned rl_node_clock_median(const rl_node_clock *const *clocks, unsigned count,
                              int64_t *offset_us);

#endif
