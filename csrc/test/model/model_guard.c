/*
 * The nodes that a client lets vote: the rules of rl_guard.c, which names the steps.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each node has a lineage record. The handshake reads it, and makes a new one if there is none or
 * it is of another server. So a record is always younger than the last loss of keys. A node votes
 * when its record is as old as any key can become, and only for a SET that carries this record. The
 * same holds for a node that is given the key of a lease, again or later: an extend of the lease
 * counts on it, and a vote that the node has lost may still count for another client.
 */
#include "model.h"

void model_guard_initial(const model_config *config, model_node *node) {
  model_guard_state known = {1, 1, 0};
  node->record = 1;
  node->age = (uint8_t)config->quarantine;
  node->guards[0] = known;
  node->guards[1] = known;
}

bool model_guard_votes(const model_config *config, const model_node *node, unsigned client) {
  const model_guard_state *guards = &node->guards[client];
  return config->guard == 0 || (guards->asked != 0 && guards->wait == 0);
}

bool model_guard_heals(const model_config *config, const model_node *node, unsigned client) {
  return config->guard_heals || model_guard_votes(config, node, client);
}

/* The node has another record from now on: commands that carry the old one are outdated. */
static void model_guard_outdate(const model_config *config, model_node *node) {
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    node->guards[i].current = 0;
  }
  for (unsigned i = 0; i < MODEL_ATTEMPTS_MAX; i++) {
    model_messages *messages = &node->messages[i];
    bool checked = !config->guard_heals && !config->guard_unchecked;
    messages->void_heal = config->prompt && checked ? messages->heal : 0;
    messages->heal = (uint8_t)(checked && !config->prompt ? 0 : messages->heal);
    if (messages->set == MODEL_SET_REQUESTED && messages->record == MODEL_RECORD_CURRENT) {
      messages->record = MODEL_RECORD_OUTDATED;
    }
  }
}

void model_guard_ask(const model_config *config, model_node *node, unsigned client, bool early) {
  if (node->record == 0) {
    model_guard_outdate(config, node);
    node->record = 1;
    node->age = 0;
  }
  model_guard_state known = {1, 1, (uint8_t)(config->quarantine - node->age - early)};
  node->guards[client] = known;
}

void model_guard_send(const model_config *config, model_node *node, unsigned client,
                      unsigned attempt) {
  model_messages *messages = &node->messages[attempt];
  messages->set = MODEL_SET_REQUESTED;
  messages->record = MODEL_RECORD_CURRENT;
  if (config->prompt && !model_guard_votes(config, node, client)) {
    messages->set = MODEL_SET_NONE;
    model_guard_ask(config, node, client, false);
    return;
  }
  if (!model_guard_votes(config, node, client)) {
    messages->record = MODEL_RECORD_UNSENT;
  } else if (config->guard && !node->guards[client].current) {
    messages->record = MODEL_RECORD_OUTDATED;
  }
}

void model_guard_forget(const model_config *config, model_node *node, bool restarted, bool record) {
  node->record = 0;
  node->age = 0;
  if (!record || config->guard_nameless == 0) {
    model_guard_outdate(config, node);
  }
  if (!restarted || config->proxy) {
    return;
  }
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    model_guard_state unknown = {0, 0, 0};
    node->guards[i] = unknown;
  }
  for (unsigned i = 0; i < MODEL_ATTEMPTS_MAX; i++) {
    if (node->messages[i].set == MODEL_SET_REQUESTED) {
      node->messages[i].record = MODEL_RECORD_UNSENT;
    }
  }
}

void model_guard_suspect(model_node *node, unsigned client) {
  uint8_t *asked = &node->guards[client].asked;
  *asked = *asked != 0 ? 2 : 0;
}

void model_guard_settle(const model_config *config, model_state *state) {
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    const model_client *client = &state->clients[i];
    bool rests = client->phase != MODEL_ACQUIRING && client->phase != MODEL_EXTENDING;
    for (unsigned j = 0; j < model_list_length(config, i) && rests; j++) {
      if (state->nodes[j].guards[i].asked != 1) {
        model_guard_ask(config, &state->nodes[j], i, false);
      }
    }
  }
}

void model_guard_tick(const model_config *config, model_node *node, unsigned frozen) {
  node->age = (uint8_t)(node->age + (node->record && node->age < config->quarantine));
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    uint8_t *wait = &node->guards[i].wait;
    *wait = (uint8_t)(*wait - (i != frozen && *wait > 0));
  }
}
