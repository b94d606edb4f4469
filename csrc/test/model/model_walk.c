/*
 * Random walks through the model.
 *
 * SPDX-License-Identifier: MIT
 *
 * The kinds of steps are weighted: otherwise most steps would be ticks, and attempts that are given
 * up. The weights maximise the events that the replay counts.
 */
#include <string.h>

#include "model.h"

/* splitmix64. Returns a number below |bound|, which is not 0. */
static uint64_t model_random(uint64_t *random, uint64_t bound) {
  *random += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t value = *random;
  value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
  return (value ^ value >> 31) % bound;
}

static const unsigned model_weights[MODEL_KINDS] = {
    [MODEL_TICK] = 6,
    [MODEL_FREEZE] = 1,
    [MODEL_START] = 8,
    [MODEL_EXECUTE_SET] = 8,
    [MODEL_EXECUTE_JOIN] = 2,
    [MODEL_EXECUTE_DOUBLE] = 1,
    [MODEL_EXECUTE_EXTEND] = 8,
    [MODEL_EXECUTE_STALE] = 3,
    [MODEL_EXECUTE_HEAL] = 3,
    [MODEL_EXECUTE_RELEASE] = 3,
    [MODEL_REPLY_SET] = 10,
    [MODEL_REPLY_EXTEND] = 8,
    [MODEL_REPLY_STALE] = 4,
    [MODEL_GIVE_UP] = 3,
    [MODEL_EXTEND] = 8,
    [MODEL_END_EXTEND] = 2,
    [MODEL_RELEASE] = 2,
    [MODEL_CRASH] = 1,
    [MODEL_LOSE_KEY] = 1,
    [MODEL_EXPIRE_EARLY] = 2,
    [MODEL_ASK] = 8,
    [MODEL_ASK_EARLY] = 4,
    [MODEL_CRASH_KEPT] = 1,
    [MODEL_FLUSH] = 1,
    [MODEL_EXECUTE_CONFIRM] = 8,
    [MODEL_REPLY_CONFIRM] = 8,
};

static const model_step *model_choose(uint64_t *random, const model_step *steps, unsigned count) {
  uint64_t total = 0;
  for (unsigned i = 0; i < count; i++) {
    total += model_weights[steps[i].kind];
  }
  uint64_t at = model_random(random, total);
  for (unsigned i = 0; i < count; i++) {
    if (at < model_weights[steps[i].kind]) {
      return &steps[i];
    }
    at -= model_weights[steps[i].kind];
  }
  return &steps[0];
}

void model_walk(const model_config *config, uint64_t seed, unsigned steps_max, model_trace *trace) {
  uint64_t random = seed;
  model_state state;
  model_initial(config, &state);
  for (unsigned i = 0; i < steps_max; i++) {
    model_step steps[MODEL_STEPS_MAX];
    unsigned count = model_steps(config, &state, false, steps);
    if (count == 0) {
      return;
    }
    model_step step = *model_choose(&random, steps, count);
    step.random = (uint8_t)model_random(&random, 256);
    model_take(config, &state, &step);
    model_trace_add(trace, &step);
  }
}
