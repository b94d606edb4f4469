/*
 * Clocks that drift and step. True time is the simulator's own, in microseconds from 0.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

#define SIM_NEVER UINT64_MAX

typedef struct sim_clock {
  uint64_t true_us;  /* at this true time ... */
  uint64_t local_us; /* ... it showed this */
  int64_t ppm;       /* and it runs by so many millionths too fast */
} sim_clock;

static inline uint64_t sim_clock_read(const sim_clock *clock, uint64_t true_us) {
  uint64_t rate = (uint64_t)(1000000 + clock->ppm);
  return clock->local_us + (true_us - clock->true_us) * rate / 1000000;
}

/* The first true time, not before the clock's last change, at which it shows |local_us| or more. */
static inline uint64_t sim_clock_when(const sim_clock *clock, uint64_t local_us) {
  uint64_t rate = (uint64_t)(1000000 + clock->ppm);
  if (local_us <= clock->local_us) {
    return clock->true_us;
  }
  if (rate == 0) {
    return SIM_NEVER;
  }
  uint64_t ahead_us = local_us - clock->local_us;
  if (ahead_us > UINT64_MAX / 2000000) {
    return SIM_NEVER;
  }
  return clock->true_us + (ahead_us * 1000000 + rate - 1) / rate;
}

/* From now on it shows |step_us| more. */
static inline void sim_clock_step(sim_clock *clock, uint64_t true_us, int64_t step_us) {
  clock->local_us = sim_clock_read(clock, true_us) + (uint64_t)step_us;
  clock->true_us = true_us;
}

#endif
