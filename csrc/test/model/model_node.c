/*
 * Requests that a node executes, and its faults.
 *
 * SPDX-License-Identifier: MIT
 *
 * Replies without effect are not kept: that of a refused SET (the client may give up at any time
 * anyway), those of rounds that are over, of heals and of releases.
 */
#include "model.h"

static bool model_node_has(const model_config *config, const model_node *node, unsigned attempt) {
  return node->owner != 0 && model_token(config, node->owner - 1u) == model_token(config, attempt);
}

static void model_node_clear(model_node *node) {
  node->owner = 0;
  node->remaining = 0;
}

static void model_node_put(const model_config *config, model_node *node, unsigned attempt) {
  node->owner = (uint8_t)(attempt + 1);
  node->remaining = (uint8_t)config->ttl;
}

/* SET key token NX PX ttl. Returns true if the key was set. */
static bool model_node_set(const model_config *config, model_node *node, unsigned attempt,
                           bool anyway) {
  if (node->quarantine > 0 || (node->owner != 0 && !config->set_overwrites && !anyway)) {
    return false;
  }
  model_node_put(config, node, attempt);
  return true;
}

/*
 * The same for a heal or a backfill of a lease. With a fencing token, or a guard, that is TAKE: it
 * prolongs a key of the lease that exists.
 */
static bool model_node_give(const model_config *config, model_node *node, unsigned attempt,
                            unsigned left) {
  if ((config->fence || config->guard) && model_node_has(config, node, attempt)) {
    node->remaining = (uint8_t)(node->remaining < left ? left : node->remaining);
    return true;
  }
  if (!model_node_set(config, node, attempt, false)) {
    return false;
  }
  node->remaining = (uint8_t)left;
  return true;
}

/* Attach: the fresh token replaces the detached one. Returns true if it did. */
static bool model_node_attach(const model_config *config, const model_state *state,
                              model_node *node, unsigned attempt) {
  bool missing = node->owner == 0 && config->attach_creates && node->quarantine == 0;
  if (node->owner != state->handed && !missing) {
    return false;
  }
  model_node_put(config, node, config->attach_keeps ? state->handed - 1u : attempt);
  return true;
}

/* Returns the remaining time for a backfill: of the attempt, or of the lease. */
static unsigned model_left(const model_config *config, const model_client *client) {
  return client->phase == MODEL_ACQUIRING ? config->ttl - client->elapsed
                                          : client->validity + config->drift;
}

/* PROLONG, CONFIRM, and a TAKE of a lease: raises the counter to the token. */
static void model_node_raise(model_node *node, unsigned token) {
  node->counter = (uint8_t)(node->counter < token ? token : node->counter);
}

static void model_execute_confirm(const model_config *config, model_state *state,
                                  const model_step *step) {
  model_node *node = &state->nodes[step->node];
  const model_client *client = &state->clients[model_client_of(config, step->who)];
  bool awaited = model_open(config, state, step->who) && client->phase == MODEL_ACQUIRING;
  bool takes = model_node_has(config, node, step->who) || config->fence_blind;
  if (takes) {
    model_node_raise(node, state->tokens[step->who]);
  }
  node->messages[step->who].confirm = takes && awaited ? MODEL_CONFIRM_DONE : MODEL_CONFIRM_NONE;
}

/* The counter of a node that has set the key; |counts| when the client waits for its vote. */
static void model_node_count(model_state *state, const model_step *step, bool lease, bool counts) {
  model_node *node = &state->nodes[step->node];
  if (lease) {
    model_node_raise(node, state->tokens[step->who]);
  } else {
    node->counter = step->number;
    node->messages[step->who].number = counts ? step->number : 0;
  }
}

/* Returns true if the record that the SET carries is not the node's. */
static bool model_outdated(const model_config *config, const model_node *node,
                           const model_step *step, bool lease) {
  bool checks = config->guard && !config->guard_unchecked && !(lease && config->guard_heals);
  bool outdated = step->kind == MODEL_EXECUTE_JOIN
                      ? !node->guards[model_client_of(config, step->who)].current
                      : node->messages[step->who].record != 0;
  return checks && outdated;
}

static void model_execute_set(const model_config *config, model_state *state,
                              const model_step *step) {
  model_node *node = &state->nodes[step->node];
  const model_client *client = &state->clients[model_client_of(config, step->who)];
  bool twice = step->kind == MODEL_EXECUTE_DOUBLE;
  unsigned left = step->kind == MODEL_EXECUTE_JOIN ? model_left(config, client) : config->ttl;
  /* A backfill of a lease is a SET, too. */
  bool lease = step->kind == MODEL_EXECUTE_JOIN && client->phase == MODEL_HELD;
  bool attaches = model_attaches(state, step->who) && !lease;
  bool outdated = model_outdated(config, node, step, lease);
  bool granted = !outdated && (attaches ? model_node_attach(config, state, node, step->who)
                               : lease  ? model_node_give(config, node, step->who, left)
                                        : model_node_set(config, node, step->who, twice));
  bool awaited = model_open(config, state, step->who) && client->phase == MODEL_ACQUIRING;
  state->doubles = (uint8_t)(state->doubles + twice);
  node->remaining = (uint8_t)(granted && !lease ? left : node->remaining);
  node->messages[step->who].set = granted && awaited ? MODEL_SET_GRANTED : MODEL_SET_NONE;
  node->messages[step->who].record = 0;
  if (outdated && config->prompt) {
    model_guard_suspect(node, model_client_of(config, step->who));
  }
  if (granted && config->fence) {
    model_node_count(state, step, lease, awaited);
  }
}

static void model_execute_heal(const model_config *config, model_state *state,
                               const model_step *step) {
  model_node *node = &state->nodes[step->node];
  node->messages[step->who].heal--;
  if (node->messages[step->who].void_heal > 0) {
    node->messages[step->who].void_heal--;
    model_guard_ask(config, node, model_client_of(config, step->who), false);
  } else if (model_node_give(config, node, step->who,
                             config->native ? step->number : config->ttl)) {
    model_node_raise(node, state->tokens[step->who]);
  }
}

/* Compare-and-expire. Returns true if it confirms. */
static bool model_node_extend(const model_config *config, const model_state *state,
                              model_node *node, unsigned attempt) {
  if (model_node_has(config, node, attempt)) {
    model_node_raise(node, state->tokens[attempt]);
    node->remaining = (uint8_t)config->ttl;
    return true;
  }
  if (config->extend_recreate && node->owner == 0 && node->quarantine == 0) {
    model_node_put(config, node, attempt);
    return true;
  }
  return config->extend_foreign != 0;
}

static void model_execute_extend(const model_config *config, model_state *state,
                                 const model_step *step) {
  model_node *node = &state->nodes[step->node];
  const model_client *client = &state->clients[model_client_of(config, step->who)];
  bool confirmed = config->native ? model_native_execute(config, node, step->who)
                                  : model_node_extend(config, state, node, step->who);
  uint8_t *reply = &node->messages[step->who].extend;
  if (client->phase == MODEL_EXTENDING) {
    *reply = confirmed ? MODEL_EXTEND_CONFIRMED : MODEL_EXTEND_REFUSED;
  } else if (confirmed) { /* It was confirmed without this node. */
    *reply = config->round_unchecked ? MODEL_EXTEND_CONFIRMED : MODEL_EXTEND_NONE;
  } else {
    *reply = client->validity > 0 ? MODEL_EXTEND_REFUSED : MODEL_EXTEND_NONE;
  }
}

static void model_execute_stale(const model_config *config, model_state *state,
                                const model_step *step) {
  model_node *node = &state->nodes[step->node];
  model_messages *messages = &node->messages[step->who];
  bool confirmed = model_node_extend(config, state, node, step->who);
  messages->stale--;
  if (config->round_unchecked && confirmed && model_open(config, state, step->who)) {
    messages->stale_reply = 1;
  }
}

static void model_execute_release(const model_config *config, model_node *node, unsigned attempt) {
  node->messages[attempt].release = 0;
  if (model_node_has(config, node, attempt) || config->release_blind) {
    model_node_clear(node);
  }
}

/*
 * The node starts again without its keys. Its connections break, and its unexecuted requests are
 * gone, except releases, which go out again with the next connection. Replies may have reached the
 * client's machine before. But a heal, which follows from a reply, would go out on the broken
 * connection.
 */
static void model_crash(const model_config *config, model_state *state, model_node *node,
                        bool record) {
  state->crashes++;
  model_node_clear(node);
  node->counter = 0;
  if (config->guard) {
    model_guard_forget(config, node, true, record);
  } else {
    node->quarantine = (uint8_t)config->quarantine;
  }
  for (unsigned i = 0; i < MODEL_ATTEMPTS_MAX && !config->proxy; i++) {
    model_messages *messages = &node->messages[i];
    messages->stale = 0;
    messages->heal = 0;
    messages->void_heal = 0;
    if (messages->set == MODEL_SET_REQUESTED && (!config->guard || config->prompt)) {
      messages->set = MODEL_SET_NONE;
    }
    if (messages->confirm == MODEL_CONFIRM_REQUESTED) {
      messages->confirm = MODEL_CONFIRM_NONE;
    }
    if (messages->extend == MODEL_EXTEND_REQUESTED || messages->extend == MODEL_EXTEND_REFUSED) {
      messages->extend = MODEL_EXTEND_NONE;
    }
  }
}

void model_node_step(const model_config *config, model_state *state, const model_step *step) {
  model_node *node = &state->nodes[step->node];
  switch ((model_kind)step->kind) {
  case MODEL_EXECUTE_SET:
  case MODEL_EXECUTE_JOIN:
  case MODEL_EXECUTE_DOUBLE:
    model_execute_set(config, state, step);
    break;
  case MODEL_EXECUTE_EXTEND:
    model_execute_extend(config, state, step);
    break;
  case MODEL_EXECUTE_STALE:
  case MODEL_EXECUTE_LOOSE:
    if (config->native) {
      model_native_execute_old(config, node, step);
    } else {
      model_execute_stale(config, state, step);
    }
    break;
  case MODEL_EXECUTE_HEAL:
    model_execute_heal(config, state, step);
    break;
  case MODEL_EXECUTE_CONFIRM:
    model_execute_confirm(config, state, step);
    break;
  case MODEL_EXECUTE_RELEASE:
    model_execute_release(config, node, step->who);
    break;
  case MODEL_CRASH:
  case MODEL_CRASH_KEPT:
    model_crash(config, state, node, step->kind == MODEL_CRASH_KEPT);
    break;
  case MODEL_FLUSH:
    state->flushes++;
    model_node_clear(node);
    node->counter = 0;
    model_guard_forget(config, node, false, false);
    break;
  case MODEL_LOSE_KEY:
    state->losses = (uint8_t)(state->losses + !config->timeless);
    model_node_clear(node);
    break;
  default: /* MODEL_EXPIRE_EARLY */
    model_node_clear(node);
    break;
  }
}
