/*
 * The actions of a client, and its reactions to replies: the rules of csrc/core/lease.
 * rl_acquire.c, rl_extend.c, rl_release.c and rl_attach.c name the steps.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model.h"

unsigned model_list_length(const model_config *config, unsigned client) {
  return client == 1 && config->list != 0 ? config->list : config->nodes;
}

unsigned model_quorum(const model_config *config, unsigned client) {
  return config->quorum[client] != 0 ? config->quorum[client]
                                     : model_list_length(config, client) / 2 + 1;
}

unsigned model_extend_quorum(const model_config *config, unsigned client) {
  return config->extend_any ? 1 : model_quorum(config, client);
}

/* How many nodes have refused the extend in flight. */
static unsigned model_denied(const model_config *config, const model_state *state,
                             unsigned attempt) {
  unsigned denied = 0;
  for (unsigned i = 0; i < config->nodes; i++) {
    denied += state->nodes[i].messages[attempt].extend == MODEL_EXTEND_DENIED;
  }
  return denied;
}

/* Ends the messages of the extend in flight: replies no longer count, requests become stale. */
static void model_close_extend(const model_config *config, model_messages *messages) {
  if (config->native) {
    model_native_supersede(messages);
  } else if (messages->extend == MODEL_EXTEND_REQUESTED) {
    messages->stale++;
  }
  if (messages->extend == MODEL_EXTEND_CONFIRMED && config->round_unchecked) {
    messages->stale_reply = 1;
  }
  messages->extend = MODEL_EXTEND_NONE;
}

/* ------------------------------------------------------------------------------------ acquire */

/* The client may make its next attempt, if one is left. */
static void model_next_attempt(const model_config *config, model_state *state, unsigned index) {
  model_client *client = &state->clients[index];
  unsigned first = model_first_attempt(config, index);
  model_client next = {.phase = MODEL_DONE, .attempt = (uint8_t)first};
  if (client->attempt + 1u < first + config->attempts[index]) {
    next.phase = MODEL_IDLE;
    next.attempt = (uint8_t)(client->attempt + 1);
  }
  *client = next;
}

/* The lease is detached, and nothing is released. */
static void model_detach(const model_config *config, model_state *state, unsigned index) {
  const model_client *client = &state->clients[index];
  for (unsigned i = 0; i < config->nodes; i++) {
    model_node *node = &state->nodes[i];
    model_messages *messages = &node->messages[client->attempt];
    node->doubtful = messages->set == MODEL_SET_REQUESTED || messages->heal > 0;
    model_close_extend(config, messages);
  }
  state->handed = (uint8_t)(client->attempt + 1);
  model_next_attempt(config, state, index);
}

/* ACQ-5, REL-1, REL-2: the attempt, or the lease, is over. */
static void model_close(const model_config *config, model_state *state, unsigned index) {
  const model_client *client = &state->clients[index];
  model_fence_close(state, index);
  for (unsigned i = 0; i < model_list_length(config, index); i++) {
    model_messages *messages = &state->nodes[i].messages[client->attempt];
    model_close_extend(config, messages);
    model_native_close(messages);
    messages->unsure = 0;
    messages->stale_reply = 0;
    messages->release =
        !config->release_to_voters || messages->set == MODEL_SET_COUNTED ? 1 : messages->release;
    if (messages->set != MODEL_SET_REQUESTED) {
      messages->set = MODEL_SET_NONE;
    }
  }
  model_next_attempt(config, state, index);
}

/* ACQ-1, ACQ-2 */
static void model_start(const model_config *config, model_state *state, unsigned index) {
  model_client *client = &state->clients[index];
  unsigned asked = 0;
  client->phase = MODEL_ACQUIRING;
  client->elapsed = 0;
  client->votes = 0;
  client->floor = (uint8_t)model_fence_greatest(state);
  for (unsigned i = 0; i < model_list_length(config, index); i++) {
    model_node *node = &state->nodes[i];
    model_guard_send(config, node, index, client->attempt);
    asked += node->messages[client->attempt].set == MODEL_SET_REQUESTED;
  }
  if (asked < model_quorum(config, index)) { /* Only with prompt. */
    model_close(config, state, index);
  }
}

/* ACQ-4: the majority has come, and has confirmed the fencing token. Was it in time? */
void model_granted(const model_config *config, model_state *state, unsigned index) {
  model_client *client = &state->clients[index];
  model_client *other = &state->clients[1 - index];
  unsigned used = client->elapsed + config->drift;
  unsigned left = used < config->ttl ? config->ttl - used : config->no_recheck ? 1 : 0;
  if (left == 0) {
    model_close(config, state, index);
    return;
  }
  state->taken = state->handed != 0;
  state->issued |= (uint8_t)(config->fence << client->attempt);
  model_fence_close(state, index);
  client->phase = MODEL_HELD;
  client->validity = (uint8_t)(config->no_elapsed ? config->ttl - config->drift : left);
  client->elapsed = 0;
  client->votes = 0;
  for (unsigned i = 0; i < config->nodes && !config->release_to_voters; i++) {
    uint8_t *set = &state->nodes[i].messages[client->attempt].set;
    *set = *set == MODEL_SET_REQUESTED ? MODEL_SET_REQUESTED : MODEL_SET_NONE;
  }
  if (other->phase == MODEL_HELD || other->phase == MODEL_EXTENDING) {
    other->overtaken = config->extends > 0;
  }
}

/* ACQ-3 */
static void model_reply_set(const model_config *config, model_state *state,
                            const model_step *step) {
  unsigned index = model_client_of(config, step->who);
  model_client *client = &state->clients[index];
  uint8_t *set = &state->nodes[step->node].messages[step->who].set;
  *set = config->release_to_voters || config->fence ? MODEL_SET_COUNTED : MODEL_SET_NONE;
  bool silent = model_attaches(state, step->who) && !config->attach_all &&
                state->nodes[step->node].doubtful != 0; /* ATT-3 */
  if (client->phase == MODEL_ACQUIRING && !silent) {
    client->votes++;
    if (config->fence) {
      model_fence_vote(config, state, index, step->node);
    } else if (client->votes >= model_quorum(config, index)) {
      model_granted(config, state, index);
    }
  }
}

static void model_reply_confirm(const model_config *config, model_state *state,
                                const model_step *step) {
  state->nodes[step->node].messages[step->who].confirm = MODEL_CONFIRM_NONE;
  model_fence_confirmed(config, state, model_client_of(config, step->who));
}

/* ------------------------------------------------------------------------------------- extend */

/* EXT-1, EXT-2 */
static void model_begin_extend(const model_config *config, model_state *state,
                               const model_step *step) {
  unsigned index = step->who;
  model_client *client = &state->clients[index];
  client->asked = config->native ? step->number : 0;
  client->phase = MODEL_EXTENDING;
  client->elapsed = 0;
  client->votes = 0;
  client->confirmed = 0;
  client->extends++;
  for (unsigned i = 0; i < model_list_length(config, index); i++) {
    model_messages *messages = &state->nodes[i].messages[client->attempt];
    model_close_extend(config, messages);
    messages->extend = MODEL_EXTEND_REQUESTED;
  }
}

/* EXT-6. Later refusals still show the holder of each key. */
static void model_end_extend(const model_config *config, model_state *state, model_client *client) {
  client->phase = MODEL_HELD;
  client->elapsed = 0;
  client->votes = 0;
  for (unsigned i = 0; i < config->nodes; i++) {
    model_messages *messages = &state->nodes[i].messages[client->attempt];
    if (messages->extend == MODEL_EXTEND_COUNTED ||
        (messages->extend == MODEL_EXTEND_CONFIRMED && !config->round_unchecked) ||
        (config->native && messages->extend == MODEL_EXTEND_REQUESTED && messages->life == 0)) {
      messages->extend = MODEL_EXTEND_NONE;
    }
  }
}

/* EXT-5. Returns true if so many nodes have refused the extend that no majority is left. */
static bool model_lost(const model_config *config, const model_state *state, unsigned index) {
  unsigned denied = model_denied(config, state, state->clients[index].attempt);
  return model_list_length(config, index) - denied < model_extend_quorum(config, index);
}

/* EXT-4. A heal with an outdated record has no effect. */
static void model_heal(const model_config *config, model_node *node, unsigned index,
                       const model_client *client) {
  model_messages *messages = &node->messages[client->attempt];
  bool outdated = config->guard && !config->guard_heals && !config->guard_unchecked &&
                  !node->guards[index].current;
  bool heals = client->validity > 0 && (!outdated || config->prompt) &&
               model_guard_heals(config, node, index);
  messages->heal = (uint8_t)(messages->heal + heals);
  messages->void_heal = (uint8_t)(messages->void_heal + (heals && outdated));
  messages->extend = MODEL_EXTEND_NONE;
}

/* EXT-3, then EXT-4 */
static void model_extended(const model_config *config, model_state *state, unsigned index) {
  model_client *client = &state->clients[index];
  unsigned used = client->elapsed + config->drift;
  unsigned ttl = config->native ? client->asked : config->ttl;
  unsigned left = used < ttl ? ttl - used : 0;
  client->validity = (uint8_t)(left > client->validity ? left : client->validity);
  client->phase = MODEL_HELD;
  client->elapsed = 0;
  client->votes = 0;
  client->confirmed = 1;
  for (unsigned i = 0; i < config->nodes; i++) {
    model_messages *messages = &state->nodes[i].messages[client->attempt];
    if (messages->extend == MODEL_EXTEND_DENIED) {
      model_heal(config, &state->nodes[i], index, client);
    } else if (messages->extend == MODEL_EXTEND_COUNTED ||
               (messages->extend == MODEL_EXTEND_CONFIRMED && !config->round_unchecked)) {
      messages->extend = MODEL_EXTEND_NONE;
    }
  }
}

/*
 * EXT-3: acts on the votes as soon as they are decisive, if the old deadline has not been reached.
 */
static void model_decide_extend(const model_config *config, model_state *state, unsigned index) {
  model_client *client = &state->clients[index];
  bool late = client->validity == 0 && !config->extend_late;
  if (!late && client->votes >= model_extend_quorum(config, index)) {
    model_extended(config, state, index);
  } else if (late) {
    model_end_extend(config, state, client);
  } else if (model_lost(config, state, index)) {
    model_close(config, state, index);
  }
}

static void model_reply_extend(const model_config *config, model_state *state,
                               const model_step *step) {
  unsigned index = model_client_of(config, step->who);
  model_client *client = &state->clients[index];
  model_messages *messages = &state->nodes[step->node].messages[step->who];
  bool confirms = messages->extend == MODEL_EXTEND_CONFIRMED;
  if (client->phase == MODEL_EXTENDING) {
    client->votes = (uint8_t)(client->votes + confirms);
    messages->extend = !confirms                 ? MODEL_EXTEND_DENIED
                       : config->round_unchecked ? MODEL_EXTEND_COUNTED
                                                 : MODEL_EXTEND_NONE;
    model_decide_extend(config, state, index);
  } else if (confirms) {
    messages->extend = MODEL_EXTEND_NONE;
  } else if (client->confirmed) {
    model_heal(config, &state->nodes[step->node], index, client);
  } else {
    messages->extend = MODEL_EXTEND_DENIED;
    if (client->validity > 0 && model_lost(config, state, index)) {
      model_close(config, state, index);
    }
  }
}

/* A reply of an extend that is over counts for the one that is not. */
static void model_reply_stale(const model_config *config, model_state *state,
                              const model_step *step) {
  unsigned index = model_client_of(config, step->who);
  model_client *client = &state->clients[index];
  model_messages *messages = &state->nodes[step->node].messages[step->who];
  messages->stale_reply = 0;
  if (client->phase == MODEL_EXTENDING && messages->extend != MODEL_EXTEND_COUNTED &&
      messages->extend != MODEL_EXTEND_DENIED) {
    messages->stale = (uint8_t)(messages->stale + (messages->extend == MODEL_EXTEND_REQUESTED));
    messages->extend = MODEL_EXTEND_COUNTED;
    client->votes++;
    model_decide_extend(config, state, index);
  }
}

void model_client_step(const model_config *config, model_state *state, const model_step *step) {
  switch ((model_kind)step->kind) {
  case MODEL_START:
    model_start(config, state, step->who);
    break;
  case MODEL_DETACH:
    model_detach(config, state, step->who);
    break;
  case MODEL_ATTACH:
    state->attaches |= (uint8_t)(1u << state->clients[step->who].attempt);
    model_start(config, state, step->who);
    break;
  case MODEL_REPLY_SET:
    model_reply_set(config, state, step);
    break;
  case MODEL_REPLY_CONFIRM:
    model_reply_confirm(config, state, step);
    break;
  case MODEL_ASK:
  case MODEL_ASK_EARLY:
    model_guard_ask(config, &state->nodes[step->node], step->who, step->kind == MODEL_ASK_EARLY);
    break;
  case MODEL_REPLY_EXTEND:
    model_reply_extend(config, state, step);
    break;
  case MODEL_REPLY_STALE:
    model_reply_stale(config, state, step);
    break;
  case MODEL_EXTEND:
    model_begin_extend(config, state, step);
    break;
  case MODEL_SEND:
    model_native_send(config, state, step);
    break;
  case MODEL_BREAK:
    model_native_break(&state->nodes[step->node].messages[step->who]);
    break;
  case MODEL_END_EXTEND:
    model_end_extend(config, state, &state->clients[step->who]);
    break;
  default: /* MODEL_GIVE_UP, MODEL_RELEASE */
    model_close(config, state, step->who);
    break;
  }
}
