/*
 * A whole trace, step by step.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "lease/rl_fence.h"
#include "replay.h"

/* A core has a new lease: its fencing token must be greater than all before. */
static void replay_watch_token(replay *run, replay_client *client, replay_result *result) {
  const rl_lock *lock = client->lock;
  if (!run->config->fence || lock->lease == NULL || lock->lease == client->leased ||
      run->token_count == REPLAY_TOKENS_MAX) {
    return;
  }
  uint64_t token = rl_fence_token(lock);
  client->leased = lock->lease;
  result->repeated = result->repeated || token <= client->floor;
  for (unsigned i = 0; i < run->token_count; i++) {
    result->repeated = result->repeated || run->tokens[i] == token;
  }
  run->tokens[run->token_count++] = token;
}

/* Checks the rules of every core, independently of the model. */
static void replay_watch(replay *run, replay_result *result) {
  bool holds = true;
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    replay_client *client = &run->clients[i];
    const rl_lock *lock = client->lock;
    bool lasts = rl_lock_remaining(lock, replay_now(client)) > 0;
    holds = holds && replay_holds(run, client);
    replay_watch_token(run, client, result);
    if (lock->lease == NULL) {
      client->ran_out = NULL;
    } else if (!lasts) {
      client->ran_out = lock->lease;
    } else if (client->ran_out == lock->lease) {
      result->revived = true;
    }
  }
  result->two_holders = result->two_holders || holds;
}

void replay_trace(const model_config *config, const model_trace *trace, bool strict,
                  replay_result *result) {
  replay *run = malloc(sizeof *run);
  replay_plan plan;
  model_state state;
  memset(result, 0, sizeof *result);
  if (run == NULL) {
    (void)fprintf(stderr, "model_replay: out of memory\n");
    abort();
  }
  replay_plan_make(config, trace->steps, trace->count, &plan);
  replay_open(run, config, &plan);
  model_initial(config, &state);
  for (size_t i = 0; i < trace->count && !(strict && (run->differs || run->cut)); i++) {
    model_state before = state;
    run->at = i;
    result->steps = i + 1;
    model_take(config, &state, &trace->steps[i]);
    replay_step(run, &before, &trace->steps[i]);
    run->cut = run->cut || run->clients[0].learned || run->clients[1].learned;
    if (!(strict && run->cut)) {
      replay_compare(run, &trace->steps[i], &state);
    }
    replay_watch(run, result);
    if (run->differs && !result->differs && !(strict && run->cut)) {
      result->differs = true;
      result->step = i;
    }
  }
  result->cut = run->cut;
  memcpy(result->difference, run->difference, sizeof result->difference);
  memcpy(result->events, run->events, sizeof result->events);
  replay_close(run);
  free(run);
}
