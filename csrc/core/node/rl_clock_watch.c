/*
 * The clock watch: detects steps of a node's clock.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node reads its clock between the sending of the command and the arrival of the reply. So each
 * reply gives a range for the offset of its clock. Two ranges that are further apart than the
 * permitted drift prove a step, however slow the replies were. For 10 s all replies are compared
 * with the same one: from one reply to the next, a slewed clock moves too little to be noticed. A
 * much quicker reply replaces that one. A slow reply does not widen the range, so it hides no step.
 */
#include "node/rl_clock_watch.h"

static int64_t rl_clock_watch_width(const rl_clock_watch *watch) {
  return watch->most_us - watch->least_us;
}

/* Narrows the range of a slow reply by the earlier range and the permitted drift. */
static void rl_clock_watch_narrow(rl_clock_watch *seen, const rl_clock_watch *watch,
                                  int64_t allowed_us) {
  int64_t least_us = watch->least_us - allowed_us, most_us = watch->most_us + allowed_us;
  seen->least_us = seen->least_us > least_us ? seen->least_us : least_us;
  seen->most_us = seen->most_us < most_us ? seen->most_us : most_us;
}

int64_t rl_clock_watch_note(rl_clock_watch *watch, uint64_t node_us, redlock_time sent_us,
                            redlock_time received_us) {
  if (node_us == 0 || node_us > RL_NUMBER_MAX || received_us > RL_NUMBER_MAX) {
    return 0;
  }
  int64_t node = (int64_t)node_us;
  redlock_time first_us = rl_time_min(sent_us, received_us);
  rl_clock_watch seen = {.known = true,
                         .least_us = node - (int64_t)received_us,
                         .most_us = node - (int64_t)first_us,
                         .at_us = received_us};
  redlock_duration elapsed_us = rl_time_sub(received_us, watch->at_us);
  int64_t allowed_us =
      (int64_t)rl_time_max(RL_CLOCK_WATCH_LEAST_US, elapsed_us / RL_CLOCK_WATCH_SHARE);
  int64_t step_us = 0;
  if (watch->known && seen.least_us > watch->most_us + allowed_us) {
    step_us = seen.least_us - watch->most_us;
  } else if (watch->known && seen.most_us < watch->least_us - allowed_us) {
    step_us = seen.most_us - watch->least_us;
  }
  seen.step_least_us = watch->step_least_us;
  seen.step_most_us = watch->step_most_us;
  if (step_us != 0) {
    seen.step_least_us = seen.least_us - watch->most_us - allowed_us;
    seen.step_most_us = seen.most_us - watch->least_us + allowed_us;
  }
  if (watch->known && step_us == 0) {
    rl_clock_watch_narrow(&seen, watch, allowed_us);
  }
  if (!watch->known || step_us != 0 || elapsed_us >= RL_CLOCK_WATCH_AGE_US ||
      rl_clock_watch_width(&seen) < rl_clock_watch_width(watch) / 2) {
    *watch = seen;
  }
  return step_us;
}
