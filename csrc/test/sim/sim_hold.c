/*
 * Releases that keep their keys: the use of hold_at_least, and the scripts of the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sim_hold.h"

#include <string.h>

#include "check.h"
#include "sim_calls.h"
#include "sim_key.h"
#include "sim_script.h"
#include "sim_trace.h"
#include "wait_queue.h"

#define SIM_HOLD_KNOWN 24 /* the first bit of these scripts in node->scripts */

/* -------------------------------------------------------------------------------- applications */

void sim_hold_draw(sim *s) {
  sim_config *config = &s->config;
  bool drawn = sim_below(&s->random_hold, 4) == 0;
  uint64_t most_us = sim_between(&s->random_hold, config->ttl_max_us / 4, 3 * config->ttl_max_us);
  if (!s->holding && (!drawn || s->breach != SIM_BREACH_NONE)) {
    return;
  }
  config->hold_us = most_us;
  redlock_duration longest_us = sim_config_hold_us(config) + config->lock_delay_us;
  if (config->guard && config->guard_max_ttl_us < longest_us) {
    config->guard_max_ttl_us = longest_us;
  }
}

redlock_duration sim_hold_option(sim *s) {
  if (s->config.hold_us == 0 || s->phase != SIM_PHASE_SAFETY ||
      sim_below(&s->random_hold, 3) == 0) {
    return 0;
  }
  return 1 + sim_below(&s->random_hold, s->config.hold_us);
}

/* --------------------------------------------------------------------------------- the scripts */

bool sim_hold_is(sim *s, const resp_request *command) {
  return s->config.hold_us != 0 && command->count >= 7 &&
         (resp_is(command, 0, "EVAL") || resp_is(command, 0, "EVALSHA")) &&
         (sim_script_is(command, RL_SCRIPT_HOLD) || sim_script_is(command, RL_SCRIPT_HOLD_NOTIFY));
}

bool sim_hold_leaves(sim *s, const resp_request *command, uint32_t *place) {
  if (!sim_hold_is(s, command) || !sim_script_is(command, RL_SCRIPT_HOLD_NOTIFY)) {
    return false;
  }
  unsigned entry = 6 + (unsigned)resp_number(command, 2);
  if (entry >= command->count || command->lengths[entry] != SIM_ENTRY_LENGTH) {
    return false;
  }
  *place = sim_calls_place(command->words[entry]);
  return true;
}

/*
 * Returns true if the node understands the command: script, number of keys, keys, their counters,
 * token, rest, number of the lock's keys[, entry[, name of the semaphore]].
 */
static bool sim_hold_understands(const sim *s, const resp_request *command, bool notifies,
                                 unsigned *count) {
  unsigned keys = (unsigned)resp_number(command, 2), at = 3 + keys;
  bool based = notifies && s->config.permits > 0;
  unsigned base = at + 3 + notifies;
  if (keys > 2 * SIM_RESOURCES_MAX || command->count != base + based ||
      (based && !resp_is(command, base, SIM_SEMAPHORE))) {
    return false;
  }
  *count = (unsigned)resp_number(command, at + 2);
  bool understood = *count >= 1 && *count <= SIM_RESOURCES_MAX &&
                    (keys == *count || keys == 2 * *count) &&
                    sim_tap_is_token(command->words[at], command->lengths[at]) &&
                    resp_number(command, at + 1) > 0;
  for (unsigned i = 0; i < *count && understood; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    understood =
        resource < SIM_RESOURCES_MAX && (i == 0 || resource != sim_script_resource(command, 3));
  }
  return understood;
}

/* Keeps one key. Returns true if it is the token's. */
static bool sim_hold_keep(sim *s, const sim_connection *from, const resp_request *command,
                          const sim_request *request, sim_key *key, unsigned at) {
  if (key == NULL || key->foreign_type || !sim_key_is(key, command, at)) {
    return false;
  }
  check_touched(s, from, key, request->token, SIM_COMMAND_RELEASE);
  key->expire_ms = sim_key_wall_ms(s, from->node) + resp_number(command, at + 1);
  key->written_us = s->now_us;
  s->tokens[request->token].kept |= 1u << from->node;
  check_kept(s, from, key, request->token);
  return true;
}

static void sim_hold_run(sim *s, int connection, const resp_request *command,
                         const sim_request *request, bool notifies, unsigned count) {
  const sim_connection *from = &s->connections[connection];
  unsigned at = 3 + (unsigned)resp_number(command, 2), ours = 0;
  wait_queue_notified said = WAIT_QUEUE_EMPTY;
  bool wrong = false;
  char reply[8];
  for (unsigned i = 0; i < count; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    sim_key *key = sim_key_find(s, from->node, from->database, resource);
    bool leaves = notifies && command->lengths[at + 3] == SIM_ENTRY_LENGTH;
    bool kept = sim_hold_keep(s, from, command, request, key, at);
    bool foreign = key != NULL && key->foreign_type;
    ours += kept;
    wrong = wrong || foreign;
    if (notifies && !foreign && (kept || leaves)) {
      wait_queue_notified one = sim_calls_held(
          s, from, resource, leaves ? command->words[at + 3] : NULL, kept || key == NULL, kept);
      said = one != WAIT_QUEUE_EMPTY ? one : said;
    }
  }
  SIM_TRACE(s, "node %u: release by token %u, which keeps the key: %u of %u%s", from->node,
            request->token, ours, count,
            from->client_open ? "" : " (on a connection that was given up)");
  sim_count(s, ours == count ? SIM_HOLD_KEPT : SIM_HOLD_REFUSED);
  (void)snprintf(reply, sizeof reply, ":%u\r\n", ours == count ? (unsigned)said : 0);
  sim_node_reply(s, connection, request,
                 wrong ? "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
                       : reply,
                 !wrong && ours == count ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

void sim_hold_eval(sim *s, int connection, const resp_request *command,
                   const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  bool notifies = sim_script_is(command, RL_SCRIPT_HOLD_NOTIFY);
  uint32_t bit = 1u << (SIM_HOLD_KNOWN + notifies);
  unsigned count;
  if (!request->by_text && (s->nodes[from->node].scripts & bit) == 0) {
    sim_count(s, SIM_SCRIPT_UNKNOWN);
    sim_node_reply(s, connection, request, "-NOSCRIPT No matching script.\r\n",
                   SIM_OUTCOME_NO_SCRIPT);
    return;
  }
  if (!sim_hold_understands(s, command, notifies, &count)) {
    sim_violation(s, "wire", "a release that keeps keys, which the node does not understand");
    return;
  }
  s->nodes[from->node].scripts |= bit;
  if (request->token < s->token_count) {
    s->tokens[request->token].released_there |= 1u << from->node;
  }
  sim_hold_run(s, connection, command, request, notifies, count);
}
