/*
 * The keys of a node.
 *
 * SPDX-License-Identifier: MIT
 *
 * Keys expire by the node's own wall clock as in Redis: a key set at wall time t (whole ms) for p
 * ms is alive while the wall clock shows at most t + p ms.
 */
#include <string.h>

#include "sim_key.h"

#include "check.h"
#include "sim_trace.h"

uint64_t sim_key_wall_ms(const sim *s, unsigned node) {
  return sim_clock_read(&s->nodes[node].clock, s->now_us) / 1000;
}

/* When the key dies, true time, if its node's clock is not stepped. */
uint64_t sim_key_dies_us(const sim_node *node, const sim_key *key) {
  return sim_clock_when(&node->clock, (key->expire_ms + 1) * 1000);
}

sim_key *sim_key_find(sim *s, unsigned index, unsigned database, unsigned resource) {
  index = sim_config_server(&s->config, index);
  sim_key *key = &s->nodes[index].data.keys[database][resource];
  if (key->used && sim_key_wall_ms(s, index) > key->expire_ms) {
    key->used = false;
    sim_count(s, SIM_KEY_EXPIRED);
    sim_mix(s, key->token);
  }
  return key->used ? key : NULL;
}

uint64_t sim_key_holds(sim *s, unsigned index, unsigned resource, uint32_t token) {
  uint64_t dies_us = 0;
  for (unsigned i = 0; i < SIM_DATABASES_MAX; i++) {
    const sim_key *key = sim_key_find(s, index, i, resource);
    if (key != NULL && !key->foreign_type && key->token == token) {
      dies_us = sim_key_dies_us(&s->nodes[sim_config_server(&s->config, index)], key);
    }
  }
  return dies_us;
}

uint64_t sim_key_keeps(sim *s, unsigned index, const sim_lock *lock, uint32_t token) {
  uint64_t first_us = SIM_NEVER;
  for (unsigned i = 0; i < (lock->both ? 2u : 1u); i++) {
    uint64_t dies_us = sim_key_holds(s, index, lock->resource ^ i, token);
    first_us = dies_us < first_us ? dies_us : first_us;
  }
  return first_us;
}

bool sim_key_has(sim *s, unsigned index, const sim_lock *lock, uint32_t token) {
  return sim_key_holds(s, index, lock->resource, token) != 0 ||
         (lock->both && sim_key_holds(s, index, 1 - lock->resource, token) != 0);
}

bool sim_key_is(const sim_key *key, const resp_request *command, unsigned word) {
  return key->value_length == command->lengths[word] &&
         memcmp(key->value, command->words[word], key->value_length) == 0;
}

void sim_key_write(sim *s, unsigned index, sim_key *key, unsigned resource,
                   const resp_request *command, unsigned word, uint32_t token, uint64_t px_ms) {
  key->used = true;
  key->foreign_type = false;
  key->token = token;
  key->expire_ms = sim_key_wall_ms(s, index) + px_ms;
  key->written_us = s->now_us;
  key->value_length = (uint8_t)command->lengths[word];
  memcpy(key->value, command->words[word], key->value_length);
  if (token < s->token_count) {
    s->tokens[token].forced &= ~(1u << index);
    s->tokens[token].forgotten &= ~(1u << index);
  }
  if (token < s->token_count && (s->tokens[token].released_there >> index & 1) != 0 &&
      (s->tokens[token].orphaned >> index & 1) == 0) {
    s->tokens[token].orphaned |= 1u << index;
    sim_count(s, SIM_ORPHAN);
  }
  if (s->trace != NULL) {
    sim_trace_key(s, index, resource, token, sim_key_dies_us(&s->nodes[index], key));
  }
}

void sim_key_deleted(sim *s, unsigned index, unsigned resource, uint32_t token) {
  SIM_TRACE(s, "node %u: token %u of %u deleted", index, token, resource);
  if (s->trace != NULL) {
    sim_trace_key(s, index, resource, SIM_NO_TOKEN, s->now_us);
  }
}

/* A control: all nodes lose a key of which an operator has deleted a part. */
static void sim_key_spread(sim *s, uint32_t token) {
  for (unsigned i = 0; i < SIM_NODES_MAX * SIM_DATABASES_MAX * SIM_RESOURCES_MAX; i++) {
    unsigned resource = i % SIM_RESOURCES_MAX, at = i / SIM_RESOURCES_MAX;
    sim_key *key = &s->nodes[at / SIM_DATABASES_MAX].data.keys[at % SIM_DATABASES_MAX][resource];
    bool kept = s->kept_by[resource].token == token && s->kept_until_us[resource] > s->now_us;
    key->used = key->used && !(kept && key->token == token);
  }
}

/* An operator has deleted the key, unknown to its holder. */
void sim_key_forced(sim *s, unsigned index, uint32_t token) {
  if (token < s->token_count) {
    s->forced++;
    s->tokens[token].forced |= 1u << index;
    s->tokens[token].forced_ever |= 1u << index;
    check_hold_forced(s, index, token);
    if (s->breach == SIM_BREACH_FORCE_SPREADS) {
      sim_key_spread(s, token);
    }
    sim_client_forced(s, token);
    sim_count(s, SIM_FORCED_KEY);
  }
}
