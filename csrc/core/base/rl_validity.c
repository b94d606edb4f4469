/*
 * The time for which a lease may be relied upon.
 *
 * SPDX-License-Identifier: MIT
 *
 * Specification ("Distributed Locks with Redis", The Redlock Algorithm):
 *   1. The client gets the current time.
 *   3. ... it computes how much time elapsed to acquire the lock, by subtracting from the current
 *      time the timestamp obtained in step 1.
 *   4. The validity time is the initial validity time minus the time elapsed.
 * The core keeps a deadline, the same in absolute form. It is computed once, from the clock reading
 * of step 1, and never again from a later reading. Otherwise a pause of this process between two
 * readings could lengthen the lease (docs/design.md, "the deadline").
 *
 * Copies of the drift: option.drift() in lua/redlock/fake_option.lua; check_renewal.c and (with
 * 1 ms more) check_validity.c in csrc/test/sim; csrc/test/model/replay_world.c.
 */
#include "base/rl_validity.h"

#define RL_VALIDITY_GRANULARITY_US (2 * REDLOCK_MILLISECONDS)
#define RL_VALIDITY_LIFE_MAX_US (100 * REDLOCK_TTL_MAX_US)

redlock_duration rl_validity_drift(redlock_duration ttl_us, double drift_factor) {
  double exact = (double)ttl_us * drift_factor;
  redlock_duration whole = (redlock_duration)exact;
  if ((double)whole < exact) {
    whole++;
  }
  return rl_time_add(whole, RL_VALIDITY_GRANULARITY_US);
}

redlock_time rl_validity_deadline(redlock_time start_us, redlock_duration ttl_us,
                                  double drift_factor) {
  return rl_time_add(start_us, rl_time_sub(ttl_us, rl_validity_drift(ttl_us, drift_factor)));
}

redlock_duration rl_validity_ttl_for(redlock_duration lasts_us, double drift_factor) {
  double exact = (double)rl_time_add(lasts_us, RL_VALIDITY_GRANULARITY_US) / (1.0 - drift_factor);
  return exact < (double)RL_VALIDITY_LIFE_MAX_US ? (redlock_duration)exact + 1
                                                 : RL_VALIDITY_LIFE_MAX_US;
}

redlock_duration rl_validity_least_ttl(double drift_factor) {
  redlock_duration life_us = rl_validity_ttl_for(REDLOCK_MILLISECONDS, drift_factor);
  redlock_duration ttl_us = rl_time_ms_down(life_us) * REDLOCK_MILLISECONDS;
  return rl_validity_deadline(0, ttl_us, drift_factor) >= REDLOCK_MILLISECONDS
             ? ttl_us
             : ttl_us + REDLOCK_MILLISECONDS;
}
