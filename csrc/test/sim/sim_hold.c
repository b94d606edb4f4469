/*
 * Releases that keep their keys: the use of hold_at_least, and the scripts of the nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sim_hold.h"

#include <string.h>

#include "base/rl_sha1.h"
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

#define SIM_HOLD_PROLONGS                                                                          \
  "redis.call('PEXPIRE',l,ARGV[2]) local f=KEYS[n+i] if f then local p=redis.call('PTTL',f) "      \
  "if p>=0 and p<604800000+t then "                                                                \
  "redis.call('PEXPIRE',f,string.format('%.0f',604800000+t)) end end "

static const char *const sim_hold_texts[SIM_HOLD_SCRIPTS] = {
    "local n,t,d,e=tonumber(ARGV[3]),tonumber(ARGV[2]),0,nil for i=1,n do local l=KEYS[i] "
    "local v=redis.pcall('GET',l) if type(v)=='table' then e=v "
    "elseif v==ARGV[1] then " SIM_HOLD_PROLONGS "d=d+1 end end "
    "if e then return e end if d==n then return 1 end return 0",
    "local n,t,o,d,e,c=tonumber(ARGV[3]),tonumber(ARGV[2]),ARGV[4],0,nil,1 "
    "if o=='' then o=nil end for i=1,n do local l=KEYS[i] local k=ARGV[5] or l "
    "local v=redis.pcall('GET',l) local ours=v==ARGV[1] if type(v)=='table' then e=v else "
    "if ours then " SIM_HOLD_PROLONGS "d=d+1 end if ours or o then "
    "local q=k..':redlock-queue' local r=redis.pcall('MGET',q) if r.err then c=3 end "
    "local s=r[1] if not s or #s%24~=0 then s='' end local w=#s "
    "local p=o and string.find(s,o,1,true) "
    "if p then s=string.sub(s,1,p-1)..string.sub(s,p+24) end "
    "if ours or not v then local at=1 while at<=#s and at<24576 do local h=redis.pcall("
    "'PUBLISH','redlock:call:'..string.sub(s,at,at+15),string.sub(s,at+16,at+23)..l) "
    "if h~=0 then c=type(h)=='number' and 2 or 3 break end at=at+24 end s=string.sub(s,at) end "
    "if s=='' then if w>0 then redis.pcall('DEL',q,k..':redlock-wait') end elseif #s~=w and "
    "redis.pcall('SET',q,s,'PX',60000).err and type(redis.pcall('DEL',q))=='table' then c=3 end "
    "end end end if e then return e end if d==n then return c end return 0",
};

/* Returns which script it is: 1 notifies; SIM_HOLD_SCRIPTS if it is none. */
static unsigned sim_hold_find(sim *s, const resp_request *command) {
  bool by_text = resp_is(command, 0, "EVAL");
  unsigned i = 0;
  for (; i < SIM_HOLD_SCRIPTS && s->hold_names[i][0] == '\0'; i++) {
    rl_sha1(s->hold_names[i], sim_hold_texts[i], strlen(sim_hold_texts[i]));
  }
  for (i = 0; i < SIM_HOLD_SCRIPTS; i++) {
    if (by_text ? resp_is(command, 1, sim_hold_texts[i])
                : resp_equals(command, 1, s->hold_names[i], SIM_SHA1_LENGTH)) {
      break;
    }
  }
  return i;
}

bool sim_hold_is(sim *s, const resp_request *command) {
  return s->config.hold_us != 0 && command->count >= 7 &&
         (resp_is(command, 0, "EVAL") || resp_is(command, 0, "EVALSHA")) &&
         sim_hold_find(s, command) < SIM_HOLD_SCRIPTS;
}

bool sim_hold_leaves(sim *s, const resp_request *command, uint32_t *place) {
  if (!sim_hold_is(s, command) || sim_hold_find(s, command) != 1) {
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
static bool sim_hold_understands(const sim *s, const resp_request *command, unsigned script,
                                 unsigned *count) {
  unsigned keys = (unsigned)resp_number(command, 2), at = 3 + keys;
  bool based = script == 1 && s->config.permits > 0;
  unsigned base = at + 3 + script;
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
                         const sim_request *request, unsigned script, unsigned count) {
  const sim_connection *from = &s->connections[connection];
  unsigned at = 3 + (unsigned)resp_number(command, 2), ours = 0;
  wait_queue_notified said = WAIT_QUEUE_EMPTY;
  bool wrong = false;
  char reply[8];
  for (unsigned i = 0; i < count; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    sim_key *key = sim_key_find(s, from->node, from->database, resource);
    bool leaves = script == 1 && command->lengths[at + 3] == SIM_ENTRY_LENGTH;
    bool kept = sim_hold_keep(s, from, command, request, key, at);
    bool foreign = key != NULL && key->foreign_type;
    ours += kept;
    wrong = wrong || foreign;
    if (script == 1 && !foreign && (kept || leaves)) {
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
  unsigned script = sim_hold_find(s, command), count;
  uint32_t bit = 1u << (SIM_HOLD_KNOWN + script);
  if (!request->by_text && (s->nodes[from->node].scripts & bit) == 0) {
    sim_count(s, SIM_SCRIPT_UNKNOWN);
    sim_node_reply(s, connection, request, "-NOSCRIPT No matching script.\r\n",
                   SIM_OUTCOME_NO_SCRIPT);
    return;
  }
  if (!sim_hold_understands(s, command, script, &count)) {
    sim_violation(s, "wire", "a release that keeps keys, which the node does not understand");
    return;
  }
  s->nodes[from->node].scripts |= bit;
  if (request->token < s->token_count) {
    s->tokens[request->token].released_there |= 1u << from->node;
  }
  sim_hold_run(s, connection, command, request, script, count);
}
