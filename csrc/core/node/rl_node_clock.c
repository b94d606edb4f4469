/*
 * The clock of a node, as its replies show it.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node reads its clock at some moment between the sending of the command and the arrival of the
 * reply. The middle of the two is off by at most half of the round trip.
 */
#include "node/rl_node_clock.h"

#include <assert.h>

bool rl_node_clock_note(rl_node_clock *clock, uint64_t node_us, redlock_time sent_us,
                        redlock_time received_us) {
  redlock_duration took_us = rl_time_sub(received_us, sent_us);
  if (node_us == 0 || node_us > RL_NODE_CLOCK_MAX || received_us > RL_NODE_CLOCK_MAX) {
    return false;
  }
  clock->known = true;
  clock->offset_us = (int64_t)node_us - (int64_t)(received_us - took_us / 2);
  clock->error_us = took_us - took_us / 2;
  clock->at_us = received_us;
  return true;
}

uint64_t rl_node_clock_shows(int64_t offset_us, redlock_time now_us) {
  int64_t shows_us =
      (int64_t)rl_time_min(now_us, RL_NODE_CLOCK_MAX) + offset_us; /* neither exceeds 2^53 */
  return shows_us < 1 ? 1 : rl_time_min((uint64_t)shows_us, RL_NODE_CLOCK_MAX);
}

unsigned rl_node_clock_median(const rl_node_clock *const *clocks, unsigned count,
                              int64_t *offset_us) {
  int64_t offsets[REDLOCK_NODES_MAX];
  unsigned known = 0;
  assert(count <= REDLOCK_NODES_MAX);
  for (unsigned i = 0; i < count; i++) {
    unsigned at = known;
    if (!clocks[i]->known) {
      continue;
    }
    for (; at > 0 && offsets[at - 1] > clocks[i]->offset_us; at--) {
      offsets[at] = offsets[at - 1];
    }
    offsets[at] = clocks[i]->offset_us;
    known++;
  }
  if (known > 0) {
    *offset_us = offsets[(known - 1) / 2];
  }
  return known;
}
