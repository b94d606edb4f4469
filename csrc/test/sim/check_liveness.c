/*
 * After the faults have stopped somebody locks, within a stated bound, and then all comes to rest.
 *
 * SPDX-License-Identifier: MIT
 *
 * The bound: the keys that are left have to die (the longest life of a key, and what the nodes'
 * clocks were set back), a silent connection has to be given up (3 s, or the longest ttl) and made
 * anew (3 s, and a delay of up to 1 s), and the contenders have to find a moment for one of them. With a guard
 * nodes are in quarantine, from when their clocks have been set right and that has been seen. With calls acquires wait for
 * long, and each holds what it gets for three ttl at most.
 */
#include "check.h"

uint64_t check_liveness_bound_us(const sim *s) {
  uint64_t back_us = 0;
  for (unsigned i = 0; i < s->config.nodes; i++) {
    back_us = s->nodes[i].back_step_us > back_us ? s->nodes[i].back_step_us : back_us;
  }
  uint64_t guard_us = s->config.guard ? 3 * sim_guard_quarantine_us(s) + 4 * REDLOCK_SECONDS : 0;
  uint64_t turn_us = 3 * s->config.ttl_max_us + 2 * s->config.poll_interval_us;
  uint64_t turns_us = s->config.notifications ? s->config.clients * s->config.locks * turn_us : 0;
  return turns_us + guard_us + 3 * sim_config_life_us(&s->config) + 2 * back_us +
         9 * REDLOCK_SECONDS;
}

static void check_liveness_locked(sim *s) {
  if (s->phase != SIM_PHASE_LIVENESS) {
    return;
  }
  sim_count_if(s, !s->calm_grant, SIM_LIVENESS_GRANTED);
  s->calm_grant = true;
}

const checker check_liveness = {
    .name = "liveness",
    .locked = check_liveness_locked,
};
