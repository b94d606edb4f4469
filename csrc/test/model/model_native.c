/*
 * Extends by SET IFEQ PX: the rules of rl_native.h (NAT-5).
 *
 * SPDX-License-Identifier: MIT
 *
 * SET IFEQ sets the end of the key to its execution and the life that it asks for. So its execution
 * may make the key shorter. A client sends an extend to a node at any time of its round. Until it
 * has the answer, the connection may end. Then the node may execute the extends of that connection
 * at any time, in any order. Before that it executes them in the order in which they were sent.
 *
 * With native=2 a node runs scripts at some times: an extend may also be a script, which makes no
 * key shorter. A request is a life, plus MODEL_NATIVE_SCRIPT if it is a script.
 */
#include "model.h"

/* Lives are 1 to 3 ticks. */
#define MODEL_NATIVE_SCRIPT 4

static unsigned model_native_life(unsigned request) {
  return request % MODEL_NATIVE_SCRIPT;
}

static bool model_native_is_script(unsigned request) {
  return request >= MODEL_NATIVE_SCRIPT;
}

/* Adds the request to those of ended connections. The list is sorted. */
static void model_native_loosen(model_messages *messages, unsigned request) {
  uint8_t moved = (uint8_t)request;
  for (unsigned i = 0; i < MODEL_EXTENDS_MAX && moved != 0; i++) {
    uint8_t *at = &messages->loose[i];
    if (*at == 0 || *at > moved) {
      uint8_t next = *at;
      *at = moved;
      moved = next;
    }
  }
}

/* -------------------------------------------------------------------------------------- client */

/* Returns true if the client, which makes one attempt, holds no more and never will. */
static bool model_native_is_spent(const model_config *config, const model_client *client) {
  switch ((model_phase)client->phase) {
  case MODEL_IDLE:
    return false;
  case MODEL_ACQUIRING:
    return client->elapsed + config->drift >= config->ttl;
  case MODEL_HELD:
  case MODEL_EXTENDING:
    return client->validity == 0;
  case MODEL_DONE:
  default:
    return true;
  }
}

bool model_native_finished(const model_config *config, const model_state *state) {
  return model_native_is_spent(config, &state->clients[0]) ||
         model_native_is_spent(config, &state->clients[1]);
}

bool model_native_may_send(const model_config *config, const model_state *state, unsigned attempt,
                           unsigned node) {
  const model_client *client = &state->clients[model_client_of(config, attempt)];
  const model_messages *messages = &state->nodes[node].messages[attempt];
  bool round =
      client->phase == MODEL_EXTENDING || (client->phase == MODEL_HELD && client->confirmed != 0);
  return messages->extend == MODEL_EXTEND_REQUESTED && messages->life == 0 && round &&
         client->validity > 0;
}

/* The request of an extend, now; 0 if the client sends none. */
unsigned model_native_request(const model_config *config, const model_state *state,
                              unsigned attempt, unsigned node, bool script) {
  const model_client *client = &state->clients[model_client_of(config, attempt)];
  const model_messages *messages = &state->nodes[node].messages[attempt];
  unsigned left = client->validity + config->drift; /* until the end of the keys */
  bool covers = !script && !config->native_shortens;
  unsigned life = covers && left > client->asked ? left : client->asked;
  bool grows = messages->unsure != 0 && life > client->least;
  bool allowed = !grows || (script ? config->native_scripts != 0 : config->native_grows != 0);
  return !allowed ? 0 : script ? life + MODEL_NATIVE_SCRIPT : life;
}

void model_native_send(const model_config *config, model_state *state, const model_step *step) {
  model_client *client = &state->clients[model_client_of(config, step->who)];
  unsigned request = model_native_request(config, state, step->who, step->node, step->number != 0);
  state->nodes[step->node].messages[step->who].life = (uint8_t)request;
  if (!model_native_is_script(request) && (client->least == 0 || request < client->least)) {
    client->least = (uint8_t)request;
  }
}

/* The next extend begins. The one before may still be executed, in its place. */
void model_native_supersede(model_messages *messages) {
  for (unsigned i = 0; i + 1 < MODEL_EXTENDS_MAX && messages->life != 0; i++) {
    if (messages->earlier[i] == 0) {
      messages->earlier[i] = messages->life;
      messages->life = 0;
    }
  }
}

/* The connection ends. */
void model_native_break(model_messages *messages) {
  bool lost = messages->extend == MODEL_EXTEND_REQUESTED ? messages->life != 0
                                                         : messages->extend != MODEL_EXTEND_DENIED;
  messages->extend = lost ? MODEL_EXTEND_NONE : messages->extend;
  model_native_close(messages);
  for (unsigned i = 0; i < MODEL_EXTENDS_MAX; i++) {
    messages->unsure |= messages->loose[i] != 0 && !model_native_is_script(messages->loose[i]);
  }
}

void model_native_close(model_messages *messages) {
  for (unsigned i = 0; i + 1 < MODEL_EXTENDS_MAX; i++) {
    model_native_loosen(messages, messages->earlier[i]);
    messages->earlier[i] = 0;
  }
  model_native_loosen(messages, messages->life);
  messages->life = 0;
}

/* ---------------------------------------------------------------------------------------- node */

/* Executes one request. Returns true if it confirms. */
static bool model_native_run(const model_config *config, model_node *node, unsigned attempt,
                             unsigned request) {
  unsigned life = model_native_life(request);
  if (node->owner == 0 || model_token(config, node->owner - 1u) != model_token(config, attempt)) {
    return false;
  }
  if (!model_native_is_script(request) || node->remaining < life) {
    node->remaining = (uint8_t)life;
  }
  return true;
}

bool model_native_execute(const model_config *config, model_node *node, unsigned attempt) {
  model_messages *messages = &node->messages[attempt];
  unsigned request = messages->life;
  messages->life = 0;
  return model_native_run(config, node, attempt, request);
}

/* Removes an entry of a list. */
static void model_native_remove(uint8_t *list, unsigned length, unsigned at) {
  for (; at + 1 < length; at++) {
    list[at] = list[at + 1];
  }
  list[length - 1] = 0;
}

void model_native_execute_old(const model_config *config, model_node *node,
                              const model_step *step) {
  model_messages *messages = &node->messages[step->who];
  if (step->kind == MODEL_EXECUTE_LOOSE) {
    (void)model_native_run(config, node, step->who, messages->loose[step->number]);
    model_native_remove(messages->loose, MODEL_EXTENDS_MAX, step->number);
  } else {
    (void)model_native_run(config, node, step->who, messages->earlier[0]);
    model_native_remove(messages->earlier, MODEL_EXTENDS_MAX - 1, 0);
  }
}
