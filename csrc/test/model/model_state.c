/*
 * The state of the model: beginning, packed form, canonical form.
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <string.h>

#include "model.h"

unsigned model_first_attempt(const model_config *config, unsigned client) {
  return client == 0 ? 0 : config->attempts[0];
}

unsigned model_client_of(const model_config *config, unsigned attempt) {
  return attempt < config->attempts[0] ? 0 : 1;
}

unsigned model_token(const model_config *config, unsigned attempt) {
  return config->token_reused ? model_client_of(config, attempt) + 1 : attempt + 1;
}

static unsigned model_attempts(const model_config *config) {
  return config->attempts[0] + config->attempts[1];
}

void model_initial(const model_config *config, model_state *state) {
  memset(state, 0, sizeof *state);
  for (unsigned i = 0; i < config->nodes && config->guard; i++) {
    model_guard_initial(config, &state->nodes[i]);
  }
  for (unsigned client = 0; client < MODEL_CLIENTS; client++) {
    state->clients[client].attempt = (uint8_t)model_first_attempt(config, client);
    state->clients[client].phase = config->attempts[client] > 0 ? MODEL_IDLE : MODEL_DONE;
  }
}

bool model_attaches(const model_state *state, unsigned attempt) {
  return (state->attaches >> attempt & 1) != 0;
}

bool model_open(const model_config *config, const model_state *state, unsigned attempt) {
  const model_client *client = &state->clients[model_client_of(config, attempt)];
  return client->attempt == attempt && client->phase != MODEL_IDLE && client->phase != MODEL_DONE;
}

bool model_holds(const model_config *config, const model_state *state, unsigned client) {
  const model_client *it = &state->clients[client];
  return (it->phase == MODEL_HELD || it->phase == MODEL_EXTENDING) &&
         (it->validity > 0 || config->deadline_ignored);
}

bool model_finished(const model_config *config, const model_state *state) {
  bool done[MODEL_CLIENTS] = {state->clients[0].phase == MODEL_DONE,
                              state->clients[1].phase == MODEL_DONE};
  if ((config->properties & MODEL_ORPHAN) != 0) {
    return false;
  }
  if (config->native) {
    return model_native_finished(config, state);
  }
  if (config->extend_late || config->token_reused || config->release_blind || config->fence ||
      state->handed != 0) {
    return done[0] && done[1];
  }
  return done[0] || done[1];
}

/* ------------------------------------------------------------------------------------ packing */

/* Writes |value| to the next bits of the word, or reads it from there. */
#define MODEL_INLINE static inline __attribute__((always_inline))
MODEL_INLINE void model_code(uint64_t *word, unsigned *at, unsigned bits, uint8_t *value,
                             bool packs) {
  if (packs) {
    assert(*value < 1u << bits && *at + bits <= 64);
    *word |= (uint64_t)*value << *at;
  } else {
    *value = (uint8_t)(*word >> *at & ((1u << bits) - 1));
  }
  *at += bits;
}

size_t model_width(const model_config *config) {
  return config->nodes + 1 + (config->fence != 0);
}

static unsigned model_time_bits(const model_config *config) {
  return config->timeless ? 0 : 3;
}

/* The fields that only fencing tokens, or only a guard, need. */
MODEL_INLINE void model_code_watched(const model_config *config, uint64_t *word, unsigned *at,
                                     model_node *node, bool packs) {
  unsigned fence = config->fence ? 1 : 0, guard = config->guard ? 1 : 0;
  model_code(word, at, 4 * fence, &node->counter, packs);
  model_code(word, at, guard, &node->record, packs);
  model_code(word, at, 3 * guard, &node->age, packs);
  for (unsigned i = 0; i < MODEL_CLIENTS && guard; i++) {
    model_code(word, at, config->prompt ? 2 : 1, &node->guards[i].asked, packs);
    model_code(word, at, 1, &node->guards[i].current, packs);
    model_code(word, at, 3, &node->guards[i].wait, packs);
  }
  for (unsigned i = 0; i < model_attempts(config) && (fence || guard); i++) {
    model_messages *messages = &node->messages[i];
    model_code(word, at, 4 * fence, &messages->number, packs);
    model_code(word, at, 2 * fence, &messages->confirm, packs);
    model_code(word, at, 2 * guard, &messages->record, packs);
    model_code(word, at, config->prompt ? 2 : 0, &messages->void_heal, packs);
  }
}

/* The fields that only native extends need. */
MODEL_INLINE void model_code_native(const model_config *config, uint64_t *word, unsigned *at,
                                    model_messages *messages, bool packs) {
  unsigned bits = config->native + 1; /* of a request */
  if (config->native == 0) {
    return;
  }
  model_code(word, at, bits, &messages->life, packs);
  for (unsigned i = 0; i < MODEL_EXTENDS_MAX; i++) {
    model_code(word, at, bits, &messages->loose[i], packs);
  }
  for (unsigned i = 0; i + 1 < MODEL_EXTENDS_MAX; i++) {
    model_code(word, at, bits, &messages->earlier[i], packs);
  }
  model_code(word, at, 1, &messages->unsure, packs);
}

MODEL_INLINE void model_code_node(const model_config *config, uint64_t *word, model_node *node,
                                  bool packs) {
  unsigned at = 0;
  unsigned bits = config->extends > 0 || !config->timeless ? 1 : 0; /* of what extends need */
  /* Without time the remaining time of a key is always its ttl. */
  uint8_t remaining = config->timeless ? 0 : node->remaining;
  model_code(word, &at, 3, &node->owner, packs);
  model_code(word, &at, model_time_bits(config), &remaining, packs);
  node->remaining = config->timeless ? (uint8_t)(node->owner > 0 ? config->ttl : 0) : remaining;
  model_code(word, &at, model_time_bits(config), &node->quarantine, packs);
  model_code(word, &at, 1, &node->doubtful, packs);
  for (unsigned i = 0; i < model_attempts(config); i++) {
    model_messages *messages = &node->messages[i];
    model_code(word, &at, 2, &messages->set, packs);
    model_code(word, &at, 3 * bits, &messages->extend, packs);
    model_code(word, &at, config->native ? 0 : 2 * bits, &messages->stale, packs);
    model_code(word, &at, config->native ? 0 : bits, &messages->stale_reply, packs);
    model_code(word, &at, 2 * bits, &messages->heal, packs);
    model_code(word, &at, 1, &messages->release, packs);
    model_code_native(config, word, &at, messages, packs);
  }
  model_code_watched(config, word, &at, node, packs);
}

MODEL_INLINE void model_code_rest(const model_config *config, uint64_t *words, model_state *state,
                                  bool packs) {
  unsigned at = 0;
  unsigned native = config->native ? 1 : 0;
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    model_client *client = &state->clients[i];
    model_code(words, &at, 3, &client->phase, packs);
    model_code(words, &at, 2, &client->attempt, packs);
    model_code(words, &at, 3, &client->elapsed, packs);
    model_code(words, &at, 3, &client->validity, packs);
    model_code(words, &at, 3, &client->votes, packs);
    model_code(words, &at, 2, &client->extends, packs);
    model_code(words, &at, 1, &client->confirmed, packs);
    model_code(words, &at, 1, &client->overtaken, packs);
    model_code(words, &at, 2 * native, &client->asked, packs);
    model_code(words, &at, 2 * native, &client->least, packs);
  }
  model_code(words, &at, 3, &state->crashes, packs);
  model_code(words, &at, 3, &state->losses, packs);
  model_code(words, &at, 3, &state->freezes, packs);
  model_code(words, &at, 3, &state->doubles, packs);
  model_code(words, &at, native ? 0 : 3, &state->handed, packs);
  model_code(words, &at, native ? 0 : MODEL_ATTEMPTS_MAX, &state->attaches, packs);
  model_code(words, &at, native ? 0 : 1, &state->taken, packs);
  model_code(words, &at, native ? 0 : 3, &state->flushes, packs);
  at = 0;
  for (unsigned i = 0; i < MODEL_CLIENTS && config->fence; i++) {
    model_code(words + 1, &at, 3, &state->clients[i].confirms, packs);
    model_code(words + 1, &at, 4, &state->clients[i].floor, packs);
  }
  for (unsigned i = 0; i < MODEL_ATTEMPTS_MAX && config->fence; i++) {
    model_code(words + 1, &at, 4, &state->tokens[i], packs);
  }
  if (config->fence) {
    model_code(words + 1, &at, MODEL_ATTEMPTS_MAX, &state->issued, packs);
  }
}

void model_unpack(const model_config *config, const uint64_t *words, model_state *state) {
  uint64_t copy[MODEL_WORDS_MAX];
  memcpy(copy, words, model_width(config) * sizeof *copy);
  memset(state, 0, sizeof *state);
  for (unsigned i = 0; i < config->nodes; i++) {
    model_code_node(config, &copy[i], &state->nodes[i], false);
  }
  model_code_rest(config, copy + config->nodes, state, false);
}

/* ---------------------------------------------------------------------------------- canonical */

/* Returns true if the token is on the node, or a request that may put it there is on its way. */
static bool model_token_may_come(const model_config *config, const model_node *node,
                                 unsigned attempt) {
  unsigned token = model_token(config, attempt);
  if (node->owner != 0 && model_token(config, node->owner - 1u) == token) {
    return true;
  }
  for (unsigned i = 0; i < model_attempts(config); i++) {
    const model_messages *messages = &node->messages[i];
    if (model_token(config, i) == token &&
        (messages->set == MODEL_SET_REQUESTED || messages->heal > 0)) {
      return true;
    }
  }
  return config->token_reused;
}

/* A compare-and-delete, or -expire, has no effect if its token is not there and cannot come. */
static void model_forget_requests(const model_config *config, model_node *node) {
  for (unsigned i = 0; i < model_attempts(config); i++) {
    model_messages *messages = &node->messages[i];
    if ((messages->release == 0 && messages->stale == 0 && messages->confirm == 0) ||
        model_token_may_come(config, node, i)) {
      continue;
    }
    messages->confirm = messages->confirm == MODEL_CONFIRM_REQUESTED && !config->fence_blind
                            ? 0
                            : messages->confirm;
    messages->release = config->release_blind ? messages->release : 0;
    messages->stale = config->extend_recreate || config->round_unchecked ? messages->stale : 0;
  }
}

/* A release has no effect where keys vanish anyway; nor has a SET whose vote cannot count. */
static void model_forget_sets(const model_config *config, const model_state *state,
                              model_node *node) {
  for (unsigned i = 0; i < model_attempts(config); i++) {
    model_messages *messages = &node->messages[i];
    bool open = model_open(config, state, i);
    messages->release = config->timeless ? 0 : messages->release;
    if (messages->record != 0 && !open &&
        (messages->record == MODEL_RECORD_UNSENT || !config->guard_unchecked)) {
      messages->set = MODEL_SET_NONE;
      messages->record = 0;
    }
  }
}

/* Removes the state of the second round when the attempt is over, and votes without effect. */
static void model_forget_fence(const model_config *config, model_state *state, unsigned attempt) {
  model_client *client = &state->clients[model_client_of(config, attempt)];
  bool open = model_open(config, state, attempt);
  bool asks = open && client->phase == MODEL_ACQUIRING;
  bool issued = (state->issued >> attempt & 1) != 0;
  unsigned token = state->tokens[attempt];
  bool used = asks || issued;
  for (unsigned i = 0; i < config->nodes; i++) {
    model_messages *messages = &state->nodes[i].messages[attempt];
    used = used || messages->confirm == MODEL_CONFIRM_REQUESTED;
    if (asks && token != 0 && messages->set == MODEL_SET_GRANTED && messages->number > token &&
        !config->fence_above) {
      messages->set = MODEL_SET_NONE;
      messages->number = 0;
    }
  }
  state->tokens[attempt] = (uint8_t)(used ? token : 0);
  if (open) {
    client->floor = (uint8_t)(asks ? client->floor : 0);
    client->votes = (uint8_t)(asks && token != 0 ? 0 : client->votes);
  }
}

/*
 * Removes the votes of a round that can no longer succeed, and the state that only a valid lease
 * needs.
 */
static void model_forget_round(const model_config *config, model_state *state, unsigned index) {
  model_client *client = &state->clients[index];
  bool failed = client->phase == MODEL_ACQUIRING &&
                client->elapsed + config->drift >= config->ttl && !config->no_recheck &&
                !config->release_to_voters;
  bool ran_out = (client->phase == MODEL_HELD || client->phase == MODEL_EXTENDING) &&
                 client->validity == 0 && !config->extend_late && !config->round_unchecked;
  for (unsigned i = 0; i < config->nodes && (failed || ran_out); i++) {
    model_messages *messages = &state->nodes[i].messages[client->attempt];
    messages->set = messages->set == MODEL_SET_REQUESTED ? MODEL_SET_REQUESTED : MODEL_SET_NONE;
    messages->number = 0;
    messages->confirm = (uint8_t)(messages->confirm == MODEL_CONFIRM_REQUESTED);
    messages->extend =
        messages->extend == MODEL_EXTEND_REQUESTED ? MODEL_EXTEND_REQUESTED : MODEL_EXTEND_NONE;
  }
  if (failed || ran_out) {
    client->votes = 0;
    client->confirms = 0;
    client->elapsed = (uint8_t)config->ttl;
  }
  if (ran_out) {
    client->extends = (uint8_t)config->extends;
    client->overtaken = 0;
  }
}

/* The number of an attempt, counted from 1, when the clients have changed their names; 0 stays. */
static uint8_t model_swap_attempt(unsigned half, uint8_t attempt) {
  return (uint8_t)(attempt == 0 ? 0 : attempt > half ? attempt - half : attempt + half);
}

/* The clients change their names. */
static void model_swap(const model_config *config, const model_state *state, model_state *swapped) {
  unsigned half = config->attempts[0];
  *swapped = *state;
  for (unsigned i = 0; i < config->nodes; i++) {
    const model_node *from = &state->nodes[i];
    model_node *to = &swapped->nodes[i];
    to->owner = model_swap_attempt(half, from->owner);
    to->guards[0] = from->guards[1];
    to->guards[1] = from->guards[0];
    for (unsigned j = 0; j < half; j++) {
      to->messages[j] = from->messages[j + half];
      to->messages[j + half] = from->messages[j];
    }
  }
  swapped->handed = model_swap_attempt(half, state->handed);
  swapped->attaches =
      (uint8_t)((state->attaches << half & ((1u << 2 * half) - 1)) | state->attaches >> half);
  for (unsigned j = 0; j < half; j++) {
    swapped->tokens[j] = state->tokens[j + half];
    swapped->tokens[j + half] = state->tokens[j];
  }
  swapped->issued =
      (uint8_t)((state->issued << half & ((1u << 2 * half) - 1)) | state->issued >> half);
  swapped->clients[0] = state->clients[1];
  swapped->clients[1] = state->clients[0];
  swapped->clients[0].attempt = (uint8_t)(state->clients[1].attempt - half);
  swapped->clients[1].attempt = (uint8_t)(state->clients[0].attempt + half);
}

static void model_pack_sorted(const model_config *config, model_state *state, uint64_t *words) {
  for (unsigned i = 0; i < config->nodes; i++) {
    uint64_t word = 0;
    unsigned at = i;
    model_code_node(config, &word, &state->nodes[i], true);
    while (at > 0 && words[at - 1] > word && config->list == 0) {
      words[at] = words[at - 1];
      at--;
    }
    words[at] = word;
  }
  memset(words + config->nodes, 0, (model_width(config) - config->nodes) * sizeof *words);
  model_code_rest(config, words + config->nodes, state, true);
}

void model_pack_canonical(const model_config *config, const model_state *state, uint64_t *words) {
  model_state kept = *state;
  for (unsigned i = 0; i < MODEL_CLIENTS; i++) {
    model_forget_round(config, &kept, i);
  }
  for (unsigned i = 0; i < config->nodes; i++) {
    model_forget_sets(config, &kept, &kept.nodes[i]);
    model_forget_requests(config, &kept.nodes[i]);
  }
  for (unsigned i = 0; i < model_attempts(config) && config->fence; i++) {
    model_forget_fence(config, &kept, i);
  }
  model_pack_sorted(config, &kept, words);
  if (config->attempts[0] == config->attempts[1] && config->quorum[0] == config->quorum[1] &&
      config->list == 0 && !config->native) {
    uint64_t other[MODEL_WORDS_MAX];
    size_t size = model_width(config) * sizeof *words;
    model_state swapped;
    model_swap(config, &kept, &swapped);
    model_pack_sorted(config, &swapped, other);
    if (memcmp(other, words, size) < 0) {
      memcpy(words, other, size);
    }
  }
}
