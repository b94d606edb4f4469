/*
 * After the faults have stopped a client locks, within a stated bound, and then everything comes to
 * rest.
 *
 * SPDX-License-Identifier: MIT
 *
 * The bound is the sum of several waits. The remaining keys must expire: the longest life of a key,
 * and the backward steps of the nodes' clocks. A silent connection must be given up (3 s, or the
 * longest ttl) and made anew (3 s, and a delay of up to 1 s). One contender must find a free
 * moment. With a guard, nodes are in quarantine from when their clocks have been set right. With
 * notifications, acquires wait for long, and each holds its lease for three ttl at most.
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
