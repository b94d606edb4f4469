/*
 * Native commands of a node: DELIFEQ, DELEX, SET IFEQ; and nodes without scripts.
 *
 * SPDX-License-Identifier: MIT
 *
 * In one run some nodes know one of the commands, some know none, and some run no scripts.
 */
#include "sim_native.h"

#include <string.h>

#include "check.h"
#include "sim_calls.h"
#include "sim_key.h"
#include "sim_script.h"
#include "sim_trace.h"
#include "wire/rl_command.h"

/*
 * Nodes without scripts take part in plain locks only. Short extends follow long ones, and long
 * ones follow short ones that a broken connection has left unanswered.
 */
static void sim_native_draw_scriptless(sim *s, sim_random *random) {
  sim_config *config = &s->config;
  if (!s->scriptless) {
    return;
  }
  config->fenced = config->leading = config->several = 0;
  config->handovers = config->operators = config->forces = 0;
  config->twins = false;
  config->extends = 6;
  config->ttl_us[1] =
      sim_between(random, config->ttl_us[0] / 8000, config->ttl_us[0] / 2000) * 1000;
  config->ttl_us[1] = config->ttl_us[1] < 4000 ? 4000 : config->ttl_us[1];
  config->tail = 1000;
  config->fault_every_us = config->ttl_us[0] / 2;
  config->weights[SIM_FAULT_BREAK] = 100;
  config->break_weights[0] = config->break_weights[1] = 0;
  config->break_weights[2] = 20; /* A node executes the requests later. */
  sim_config_weigh(config);
}

void sim_native_draw(sim *s, sim_random *random) {
  sim_config *config = &s->config;
  bool drawn = sim_below(random, 4) == 0;
  bool lacks = sim_below(random, 2) == 0;
  if (!s->native && (!drawn || s->breach != SIM_BREACH_NONE)) {
    return;
  }
  config->native = true;
  sim_native_draw_scriptless(s, random);
  /* A node without scripts cannot take part in these. */
  config->lacks_scripts = (lacks || s->scriptless) && !config->guard && config->fenced == 0 &&
                          config->several == 0 && config->handovers == 0 &&
                          config->operators == 0 && !config->twins && config->permits == 0;
}

void sim_native_init(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  uint64_t random = (s->seed * SIM_NODES_MAX + index + 1) * 0x9e3779b97f4a7c15u;
  random = (random ^ random >> 29) * 0xbf58476d1ce4e5b9u;
  unsigned known = (unsigned)(random >> 40 & 3);
  node->native = !s->config.native ? 0
                 : known < 2       ? RL_NATIVE_DELIFEQ
                 : known == 2      ? RL_NATIVE_DELEX
                                   : 0;
  /* A node with neither keeps the keys of failed attempts: no lock makes progress there. */
  node->lacks_scripts =
      s->config.lacks_scripts && node->native != 0 && (s->scriptless || (random >> 44 & 1) != 0);
  node->lacks_ifeq = node->native == 0 || (random >> 46 & 7) == 0;
}

static bool sim_native_is_flag(const resp_request *command) {
  size_t suffix = strlen(RL_COMMAND_WAIT);
  return command->count == 2 && resp_is(command, 0, "EXISTS") && command->lengths[1] > suffix &&
         memcmp(command->words[1] + command->lengths[1] - suffix, RL_COMMAND_WAIT, suffix) == 0;
}

sim_command_kind sim_native_kind(const resp_request *command, unsigned *token) {
  if (command->count == 3 && resp_is(command, 0, "DELIFEQ")) {
    *token = 2;
    return SIM_COMMAND_RELEASE;
  }
  if (command->count == 4 && resp_is(command, 0, "DELEX") && resp_is(command, 2, "IFEQ")) {
    *token = 3;
    return SIM_COMMAND_RELEASE;
  }
  if (command->count == 7 && resp_is(command, 0, "SET") && resp_is(command, 3, "IFEQ")) {
    *token = 2;
    return SIM_COMMAND_EXTEND;
  }
  return sim_native_is_flag(command) ? SIM_COMMAND_FLAG : SIM_COMMAND_UNKNOWN;
}

const char *sim_native_refuses(const sim *s, unsigned node, const resp_request *command) {
  bool script = resp_is(command, 0, "EVAL") || resp_is(command, 0, "EVALSHA");
  return !script || !s->nodes[node].lacks_scripts ? NULL
         : node % 2 == 0 ? "-NOPERM this user has no permissions to run the 'eval' command\r\n"
                         : "-NOPERM User lock has no permissions to run the 'evalsha' command\r\n";
}

static void sim_native_delete(sim *s, int connection, const resp_request *command,
                              const sim_request *request, unsigned token) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = sim_script_resource(command, 1);
  unsigned known = token == 2 ? RL_NATIVE_DELIFEQ : RL_NATIVE_DELEX;
  if (resource == SIM_RESOURCES_MAX) {
    sim_violation(s, "wire", "a native release that the node does not understand");
    return;
  }
  if (s->nodes[from->node].native != known) {
    sim_count(s, SIM_NATIVE_UNKNOWN);
    sim_node_reply(s, connection, request, "-ERR unknown command 'DEL', with args\r\n",
                   SIM_OUTCOME_NO_SCRIPT);
    return;
  }
  if (request->token < s->token_count && !request->forced) {
    s->tokens[request->token].released_there |= 1u << from->node;
  }
  sim_key *key = sim_key_find(s, from->node, from->database, resource);
  if (key != NULL && key->foreign_type) {
    sim_node_reply(s, connection, request, "-WRONGTYPE Operation against a key\r\n",
                   SIM_OUTCOME_REFUSED);
    return;
  }
  bool ours = key != NULL && sim_key_is(key, command, token);
  if (ours) {
    check_touched(s, from, key, request->token, SIM_COMMAND_RELEASE);
    key->used = false;
    sim_key_deleted(s, from->node, resource, key->token);
    if (request->forced) {
      sim_key_forced(s, from->node, key->token);
    }
  }
  sim_count(s, ours ? SIM_NATIVE_RELEASED : SIM_NATIVE_DENIED);
  SIM_TRACE(s, "node %u: native release of %u by token %u: %d%s", from->node, resource,
            request->token, ours, from->client_open ? "" : " (on a connection that was given up)");
  sim_node_reply(s, connection, request, ours ? ":1\r\n" : ":0\r\n",
                 ours ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* SET key token IFEQ token PX ttl */
static void sim_native_extend(sim *s, int connection, const resp_request *command,
                              const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = sim_script_resource(command, 1);
  uint64_t px_ms = resp_number(command, 6);
  if (resource == SIM_RESOURCES_MAX || px_ms == 0) {
    sim_violation(s, "wire", "a native extend that the node does not understand");
    return;
  }
  if (s->nodes[from->node].lacks_ifeq) {
    sim_node_reply(s, connection, request, "-ERR syntax error\r\n", SIM_OUTCOME_ERROR);
    return;
  }
  sim_key *key = sim_key_find(s, from->node, from->database, resource);
  bool ours = key != NULL && !key->foreign_type && sim_key_is(key, command, 4);
  if (ours) {
    check_touched(s, from, key, request->token, SIM_COMMAND_EXTEND);
    bool shorter = key->expire_ms > sim_key_wall_ms(s, from->node) + px_ms;
    sim_count_if(s, shorter, SIM_NATIVE_SHORTENED);
    sim_key_write(s, from->node, key, resource, command, 2, request->token, px_ms);
  }
  sim_count(s, ours ? SIM_NATIVE_EXTENDED : SIM_NATIVE_DENIED);
  SIM_TRACE(s, "node %u: native extend of %u by token %u for %llu ms: %d%s", from->node, resource,
            request->token, (ull)px_ms, ours,
            from->client_open ? "" : " (on a connection that was given up)");
  sim_node_reply(s, connection, request, ours ? "+OK\r\n" : "$-1\r\n",
                 ours ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* EXISTS key:redlock-wait */
static void sim_native_flag(sim *s, int connection, const resp_request *command,
                            const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  resp_request key = *command;
  key.lengths[1] -= strlen(RL_COMMAND_WAIT);
  bool pool = resp_equals(&key, 1, SIM_SEMAPHORE, sizeof SIM_SEMAPHORE - 1);
  unsigned resource = pool ? 0 : sim_script_resource(&key, 1);
  if (resource == SIM_RESOURCES_MAX || pool != (s->config.permits > 0)) {
    sim_violation(s, "wire", "a waiters flag of no resource");
    return;
  }
  const sim_waiters *waiters = &s->nodes[from->node].data.waiters[from->database][resource];
  bool flag = waiters->sign_ms != 0 && sim_key_wall_ms(s, from->node) <= waiters->sign_ms;
  sim_count(s, flag ? SIM_NATIVE_FLAG : SIM_NATIVE_NO_FLAG);
  sim_node_reply(s, connection, request, flag ? ":1\r\n" : ":0\r\n", SIM_OUTCOME_GRANTED);
}

void sim_native_execute(sim *s, int connection, const resp_request *command,
                        const sim_request *request) {
  unsigned token = 0;
  switch (sim_native_kind(command, &token)) {
  case SIM_COMMAND_RELEASE:
    sim_native_delete(s, connection, command, request, token);
    break;
  case SIM_COMMAND_EXTEND:
    sim_native_extend(s, connection, command, request);
    break;
  default:
    sim_native_flag(s, connection, command, request);
    break;
  }
}
