/*
 * Which steps are possible in a state, and taking one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <string.h>

#include "model.h"

typedef struct model_list {
  model_step *steps;
  unsigned count;
} model_list;

static void model_list_add(model_list *list, model_kind kind, unsigned who, unsigned node) {
  assert(list->count < MODEL_STEPS_MAX);
  model_step step = {.kind = (uint8_t)kind, .who = (uint8_t)who, .node = (uint8_t)node};
  list->steps[list->count++] = step;
}

/* -------------------------------------------------------------------------------------- order */

#define MODEL_RANK_RELEASE 5

/* Returns the rank of a request among those of its attempt, in the order of sending. */
static unsigned model_rank(model_kind kind) {
  switch (kind) {
  case MODEL_EXECUTE_SET:
  case MODEL_EXECUTE_JOIN:
    return 0;
  case MODEL_EXECUTE_CONFIRM:
    return 1;
  case MODEL_EXECUTE_HEAL:
    return 2;
  case MODEL_EXECUTE_STALE:
    return 3;
  case MODEL_EXECUTE_EXTEND:
    return 4;
  default:
    return MODEL_RANK_RELEASE;
  }
}

static bool model_waiting_below(const model_messages *messages, unsigned rank) {
  return (rank > 0 && messages->set == MODEL_SET_REQUESTED) ||
         (rank > 1 && messages->confirm == MODEL_CONFIRM_REQUESTED) ||
         (rank > 2 && messages->heal > 0) || (rank > 3 && messages->stale > 0) ||
         (rank > 4 && messages->extend == MODEL_EXTEND_REQUESTED) ||
         (rank > MODEL_RANK_RELEASE && messages->release > 0);
}

/* Returns true if the order of requests allows that this one is executed now. */
bool model_may_execute(const model_config *config, const model_node *node, unsigned attempt,
                       model_kind kind) {
  unsigned first = model_first_attempt(config, model_client_of(config, attempt));
  if (config->order == MODEL_ORDER_ANY) {
    return true;
  }
  for (unsigned i = first; config->order >= MODEL_ORDER_FIFO && i < attempt; i++) {
    if (config->order == MODEL_ORDER_FIFO
            ? model_waiting_below(&node->messages[i], MODEL_RANK_RELEASE + 1)
            : node->messages[i].release > 0) {
      return false;
    }
  }
  return config->order == MODEL_ORDER_RESENT ||
         !model_waiting_below(&node->messages[attempt], model_rank(kind));
}

/* -------------------------------------------------------------------------------- enumeration */

static void model_list_request(model_list *list, const model_config *config, const model_node *node,
                               model_kind kind, unsigned attempt, unsigned index) {
  if (model_may_execute(config, node, attempt, kind)) {
    model_list_add(list, kind, attempt, index);
  }
}

/*
 * Returns true if the SET may be a backfill, on a connection that was not there before. Excludes a
 * connection that never breaks, and a SET behind an extend, which would have been too late, too.
 */
static bool model_may_join(const model_config *config, const model_state *state, unsigned attempt,
                           const model_node *node) {
  unsigned index = model_client_of(config, attempt);
  const model_client *client = &state->clients[index];
  if (config->guard && !node->guards[index].asked) {
    return false;
  }
  return config->order != MODEL_ORDER_FIFO && model_open(config, state, attempt) &&
         ((client->phase == MODEL_ACQUIRING && client->elapsed < config->ttl &&
           model_guard_votes(config, node, index)) ||
          (client->phase == MODEL_HELD && client->validity > 0 &&
           (client->extends == 0 || config->native) && model_guard_heals(config, node, index)));
}

/*
 * Lists a SET once for each number that the node may issue: the next one, or a greater one by its
 * clock or by other clients.
 */
static void model_list_set(model_list *list, const model_config *config, const model_node *node,
                           model_kind kind, unsigned attempt, unsigned index) {
  unsigned number = config->fence ? node->counter + 1u : 0;
  do {
    unsigned count = list->count;
    model_list_request(list, config, node, kind, attempt, index);
    if (list->count > count) {
      list->steps[count].number = (uint8_t)number;
    }
    number++;
  } while (config->fence && node->owner == 0 && number <= config->ahead);
}

static void model_list_number(model_list *list, model_kind kind, unsigned who, unsigned node,
                              unsigned number) {
  model_list_add(list, kind, who, node);
  list->steps[list->count - 1].number = (uint8_t)number;
}

/* The extends of an attempt without scripts. */
static void model_list_native(model_list *list, const model_config *config,
                              const model_state *state, unsigned attempt, unsigned index) {
  const model_messages *messages = &state->nodes[index].messages[attempt];
  bool sent = messages->extend == MODEL_EXTEND_REQUESTED && messages->life != 0;
  for (unsigned script = 0; script < config->native; script++) {
    if (model_native_may_send(config, state, attempt, index) &&
        model_native_request(config, state, attempt, index, script != 0) != 0) {
      model_list_number(list, MODEL_SEND, attempt, index, script);
    }
  }
  if (sent && messages->earlier[0] == 0) {
    model_list_add(list, MODEL_EXECUTE_EXTEND, attempt, index);
  }
  if (messages->earlier[0] != 0) {
    model_list_add(list, MODEL_EXECUTE_STALE, attempt, index);
  }
  if (sent || messages->earlier[0] != 0) {
    model_list_add(list, MODEL_BREAK, attempt, index);
  }
  for (unsigned i = 0; i < MODEL_EXTENDS_MAX && messages->loose[i] != 0; i++) {
    if (i == 0 || messages->loose[i] != messages->loose[i - 1]) {
      model_list_number(list, MODEL_EXECUTE_LOOSE, attempt, index, i);
    }
  }
  for (unsigned life = 1; life <= config->ttl && messages->heal > 0; life++) {
    model_list_number(list, MODEL_EXECUTE_HEAL, attempt, index, life);
  }
}

static void model_list_messages(model_list *list, const model_config *config,
                                const model_state *state, unsigned attempt, unsigned index) {
  const model_node *node = &state->nodes[index];
  const model_messages *messages = &node->messages[attempt];
  if (messages->set == MODEL_SET_REQUESTED) {
    if (messages->record != MODEL_RECORD_UNSENT) {
      model_list_set(list, config, node, MODEL_EXECUTE_SET, attempt, index);
    }
    if (model_may_join(config, state, attempt, node)) {
      model_list_set(list, config, node, MODEL_EXECUTE_JOIN, attempt, index);
    }
    if (state->doubles < config->doubles && node->owner != 0 && node->quarantine == 0) {
      model_list_set(list, config, node, MODEL_EXECUTE_DOUBLE, attempt, index);
    }
  }
  if (config->native) {
    model_list_native(list, config, state, attempt, index);
  } else if (messages->extend == MODEL_EXTEND_REQUESTED) {
    model_list_request(list, config, node, MODEL_EXECUTE_EXTEND, attempt, index);
  }
  if (messages->stale > 0) {
    model_list_request(list, config, node, MODEL_EXECUTE_STALE, attempt, index);
  }
  if (messages->heal > 0 && !config->native) {
    model_list_request(list, config, node, MODEL_EXECUTE_HEAL, attempt, index);
  }
  if (messages->release > 0) {
    model_list_request(list, config, node, MODEL_EXECUTE_RELEASE, attempt, index);
  }
  if (messages->confirm == MODEL_CONFIRM_REQUESTED) {
    model_list_request(list, config, node, MODEL_EXECUTE_CONFIRM, attempt, index);
  }
  if (messages->confirm == MODEL_CONFIRM_DONE) {
    model_list_add(list, MODEL_REPLY_CONFIRM, attempt, index);
  }
  if (messages->set == MODEL_SET_GRANTED) {
    model_list_add(list, MODEL_REPLY_SET, attempt, index);
  }
  if (messages->extend == MODEL_EXTEND_CONFIRMED || messages->extend == MODEL_EXTEND_REFUSED) {
    model_list_add(list, MODEL_REPLY_EXTEND, attempt, index);
  }
  if (messages->stale_reply > 0) {
    model_list_add(list, MODEL_REPLY_STALE, attempt, index);
  }
}

static void model_list_faults(model_list *list, const model_config *config,
                              const model_state *state, unsigned index) {
  const model_node *node = &state->nodes[index];
  for (unsigned i = 0; i < MODEL_CLIENTS && config->guard && !config->prompt; i++) {
    const model_guard_state *guards = &node->guards[i];
    bool known = guards->asked != 0 && guards->current != 0;
    if (known || state->clients[i].phase == MODEL_DONE || index >= model_list_length(config, i)) {
      continue;
    }
    model_list_add(list, MODEL_ASK, i, index);
    if (config->early && node->age > 0 && node->age < config->quarantine) {
      model_list_add(list, MODEL_ASK_EARLY, i, index);
    }
  }
  if (config->early && node->remaining == 1) {
    model_list_add(list, MODEL_EXPIRE_EARLY, 0, index);
  }
  if ((state->losses < config->losses || config->timeless) && node->owner != 0) {
    model_list_add(list, MODEL_LOSE_KEY, 0, index);
  }
  if (state->crashes < config->crashes) {
    model_list_add(list, MODEL_CRASH, 0, index);
    if (config->kept) {
      model_list_add(list, MODEL_CRASH_KEPT, 0, index);
    }
  }
  if (state->flushes < config->flushes) {
    model_list_add(list, MODEL_FLUSH, 0, index);
  }
}

/* A native extend may be of any ttl. */
static void model_list_extends(model_list *list, const model_config *config, unsigned index) {
  for (unsigned ttl = 1; ttl < config->ttl && config->native; ttl++) {
    model_list_number(list, MODEL_EXTEND, index, 0, ttl);
  }
  model_list_number(list, MODEL_EXTEND, index, 0, config->native ? config->ttl : 0);
}

static void model_list_client(model_list *list, const model_config *config,
                              const model_state *state, unsigned index) {
  const model_client *client = &state->clients[index];
  switch ((model_phase)client->phase) {
  case MODEL_IDLE:
    model_list_add(list, MODEL_START, index, 0);
    if (state->handed != 0) {
      model_list_add(list, MODEL_ATTACH, index, 0);
    }
    break;
  case MODEL_ACQUIRING:
    model_list_add(list, MODEL_GIVE_UP, index, 0);
    break;
  case MODEL_HELD:
    model_list_add(list, MODEL_RELEASE, index, 0);
    if (config->hands != 0 && state->handed == 0 && client->validity > 0) {
      model_list_add(list, MODEL_DETACH, index, 0);
    }
    if (client->extends < (config->native && index > 0 ? 0 : config->extends) &&
        (client->validity > 0 || config->extend_late)) {
      model_list_extends(list, config, index);
    }
    break;
  case MODEL_EXTENDING:
    model_list_add(list, MODEL_END_EXTEND, index, 0);
    break;
  case MODEL_DONE:
  default:
    break;
  }
}

static bool model_same_node(const model_node *a, const model_node *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

unsigned model_steps(const model_config *config, const model_state *state, bool symmetric,
                     model_step steps[MODEL_STEPS_MAX]) {
  model_list list = {steps, 0};
  if (model_finished(config, state)) {
    return 0;
  }
  if (!config->timeless) {
    model_list_add(&list, MODEL_TICK, 0, 0);
  }
  for (unsigned i = 0; i < MODEL_CLIENTS && state->freezes < config->freezes; i++) {
    model_list_add(&list, MODEL_FREEZE, i, 0);
  }
  for (unsigned i = 0; i < config->nodes; i++) {
    /* Nodes that are in the same state are neighbours in the canonical form. */
    if (symmetric && config->list == 0 && i > 0 &&
        model_same_node(&state->nodes[i], &state->nodes[i - 1])) {
      continue;
    }
    for (unsigned attempt = 0; attempt < config->attempts[0] + config->attempts[1]; attempt++) {
      model_list_messages(&list, config, state, attempt, i);
    }
    model_list_faults(&list, config, state, i);
  }
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    model_list_client(&list, config, state, i);
  }
  return list.count;
}

/* ------------------------------------------------------------------------------------- taking */

/* Time passes; the clock of |frozen|, if there is such a client, does not notice. */
static void model_pass(const model_config *config, model_state *state, unsigned frozen) {
  for (unsigned i = 0; i < config->nodes; i++) {
    model_node *node = &state->nodes[i];
    node->remaining = (uint8_t)(node->remaining - (node->remaining > 0));
    node->owner = node->remaining > 0 ? node->owner : 0;
    node->quarantine = (uint8_t)(node->quarantine - (node->quarantine > 0));
    model_guard_tick(config, node, frozen);
  }
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    model_client *client = &state->clients[i];
    bool in_round = client->phase == MODEL_ACQUIRING || client->phase == MODEL_EXTENDING;
    if (i != frozen) {
      client->elapsed = (uint8_t)(client->elapsed + (in_round && client->elapsed < config->ttl));
      client->validity = (uint8_t)(client->validity - (client->validity > 0));
    }
  }
}

void model_take(const model_config *config, model_state *state, const model_step *step) {
  switch ((model_kind)step->kind) {
  case MODEL_TICK:
    model_pass(config, state, MODEL_CLIENTS);
    break;
  case MODEL_FREEZE:
    state->freezes++;
    model_pass(config, state, step->who);
    break;
  case MODEL_START:
  case MODEL_REPLY_SET:
  case MODEL_REPLY_EXTEND:
  case MODEL_REPLY_STALE:
  case MODEL_REPLY_CONFIRM:
  case MODEL_ASK:
  case MODEL_ASK_EARLY:
  case MODEL_GIVE_UP:
  case MODEL_EXTEND:
  case MODEL_SEND:
  case MODEL_BREAK:
  case MODEL_END_EXTEND:
  case MODEL_RELEASE:
  case MODEL_DETACH:
  case MODEL_ATTACH:
    model_client_step(config, state, step);
    break;
  default:
    model_node_step(config, state, step);
    break;
  }
  if (config->prompt) {
    model_guard_settle(config, state);
  }
}
