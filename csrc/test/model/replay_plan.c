/*
 * When the trace executes which request.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "replay.h"

/* How many requests of a kind have been sent and executed so far, per attempt and node. */
typedef struct replay_tally {
  unsigned stale_first; /* the oldest extend that is over and has not been executed, from 0 */
  unsigned extends;     /* begun */
  unsigned heals;       /* executed */
  bool done[REPLAY_ORDINALS];
} replay_tally;

static void replay_plan_execute(replay_plan *plan, const model_step *step, size_t at,
                                replay_tally *tally) {
  size_t(*times)[REPLAY_ORDINALS] = plan->at[step->who][step->node];
  switch ((model_kind)step->kind) {
  case MODEL_EXECUTE_SET:
  case MODEL_EXECUTE_JOIN:
  case MODEL_EXECUTE_DOUBLE:
    times[REPLAY_SET][0] = at;
    break;
  case MODEL_EXECUTE_EXTEND:
    times[REPLAY_EXTEND][tally->extends - 1] = at;
    tally->done[tally->extends - 1] = true;
    break;
  case MODEL_EXECUTE_STALE:
    while (tally->done[tally->stale_first]) {
      tally->stale_first++;
    }
    times[REPLAY_EXTEND][tally->stale_first] = at;
    tally->done[tally->stale_first] = true;
    break;
  case MODEL_EXECUTE_HEAL:
    times[REPLAY_HEAL][tally->heals++] = at;
    break;
  case MODEL_EXECUTE_RELEASE:
    times[REPLAY_RELEASE][0] = at;
    break;
  case MODEL_EXECUTE_CONFIRM:
    times[REPLAY_CONFIRM][0] = at;
    break;
  default:
    break;
  }
}

/* Requests that are lost in a crash are never executed, and delay no later request. */
static void replay_plan_crash(const model_config *config, unsigned node,
                              replay_tally tallies[][MODEL_NODES_MAX]) {
  for (unsigned i = 0; i < MODEL_ATTEMPTS_MAX && !config->proxy; i++) {
    for (unsigned j = 0; j < tallies[i][node].extends; j++) {
      tallies[i][node].done[j] = true;
    }
  }
}

void replay_plan_make(const model_config *config, const model_step *steps, size_t count,
                      replay_plan *plan) {
  replay_tally tallies[MODEL_ATTEMPTS_MAX][MODEL_NODES_MAX];
  model_state state;
  memset(plan, 0, sizeof *plan);
  memset(plan->at, 0xff, sizeof plan->at); /* REPLAY_NEVER */
  memset(tallies, 0, sizeof tallies);
  model_initial(config, &state);
  for (size_t i = 0; i < count; i++) {
    const model_step *step = &steps[i];
    replay_plan_execute(plan, step, i, &tallies[step->who][step->node]);
    if (step->kind == MODEL_EXECUTE_JOIN) {
      plan->joins[step->who][step->node] = true;
    }
    if (step->kind == MODEL_EXTEND) {
      for (unsigned j = 0; j < config->nodes; j++) {
        tallies[state.clients[step->who].attempt][j].extends++;
      }
    } else if (step->kind == MODEL_CRASH || step->kind == MODEL_CRASH_KEPT) {
      replay_plan_crash(config, step->node, tallies);
    }
    model_take(config, &state, step);
  }
}
