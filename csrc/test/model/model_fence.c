/*
 * The second round of an attempt that asks for a fencing token: the rules of rl_fence.c, which
 * names the steps.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node that grants raises the counter of the key, and returns its number. The token is the
 * greatest number of the first majority. It is issued when a majority has it: nodes that have
 * returned it, and nodes that have confirmed it while the key still had the attempt's token.
 */
#include "model.h"

unsigned model_fence_greatest(const model_state *state) {
  unsigned greatest = 0;
  for (unsigned i = 0; i < MODEL_ATTEMPTS_MAX; i++) {
    if ((state->issued >> i & 1) != 0 && state->tokens[i] > greatest) {
      greatest = state->tokens[i];
    }
  }
  return greatest;
}

/* The greatest number of the nodes that have granted so far. */
static unsigned model_fence_greatest_vote(const model_config *config, const model_state *state,
                                          unsigned attempt) {
  unsigned greatest = 0;
  for (unsigned i = 0; i < config->nodes; i++) {
    const model_messages *messages = &state->nodes[i].messages[attempt];
    if (messages->set == MODEL_SET_COUNTED && messages->number > greatest) {
      greatest = messages->number;
    }
  }
  return greatest;
}

/* Counts the vote as a confirmation if its number is the token. */
static void model_fence_settle(const model_config *config, model_client *client,
                               model_messages *messages, unsigned token) {
  unsigned number = messages->number;
  if (number == token || (number > token && config->fence_above)) {
    client->confirms++;
  }
  messages->set = MODEL_SET_NONE;
}

/* Sends the token to nodes with smaller numbers, while those that have it are no majority. */
static void model_fence_ask(const model_config *config, model_state *state, unsigned index) {
  unsigned attempt = state->clients[index].attempt;
  for (unsigned i = 0; i < config->nodes; i++) {
    model_messages *messages = &state->nodes[i].messages[attempt];
    if (messages->set == MODEL_SET_NONE && messages->number != 0 &&
        messages->number < state->tokens[attempt]) {
      messages->confirm = MODEL_CONFIRM_REQUESTED;
    }
    if (messages->set == MODEL_SET_NONE) {
      messages->number = 0;
    }
  }
}

static bool model_fence_decided(const model_config *config, const model_state *state,
                                unsigned index) {
  return config->fence_naive || config->fence_unawaited ||
         state->clients[index].confirms >= model_quorum(config, index);
}

void model_fence_confirmed(const model_config *config, model_state *state, unsigned index) {
  state->clients[index].confirms++;
  if (model_fence_decided(config, state, index)) {
    model_granted(config, state, index);
  }
}

void model_fence_vote(const model_config *config, model_state *state, unsigned index,
                      unsigned node) {
  model_client *client = &state->clients[index];
  unsigned attempt = client->attempt;
  uint8_t *token = &state->tokens[attempt];
  if (*token == 0 && client->votes < model_quorum(config, index)) {
    return;
  }
  if (*token != 0) {
    model_fence_settle(config, client, &state->nodes[node].messages[attempt], *token);
  } else {
    *token = (uint8_t)model_fence_greatest_vote(config, state, attempt);
    for (unsigned i = 0; i < config->nodes; i++) {
      model_messages *messages = &state->nodes[i].messages[attempt];
      if (messages->set == MODEL_SET_COUNTED) {
        model_fence_settle(config, client, messages, *token);
      }
    }
  }
  if (config->fence_unawaited) {
    model_fence_ask(config, state, index);
  }
  if (model_fence_decided(config, state, index)) {
    model_granted(config, state, index);
  } else {
    model_fence_ask(config, state, index);
  }
}

void model_fence_close(model_state *state, unsigned index) {
  model_client *client = &state->clients[index];
  client->confirms = 0;
  for (unsigned i = 0; i < MODEL_NODES_MAX; i++) {
    model_messages *messages = &state->nodes[i].messages[client->attempt];
    messages->number = 0;
    messages->confirm = (uint8_t)(messages->confirm == MODEL_CONFIRM_REQUESTED);
  }
}
