/*
 * The scripts that a node runs, and SET.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sim_script.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_sha1.h"
#include "check.h"
#include "sim_calls.h"
#include "sim_hold.h"
#include "sim_key.h"
#include "sim_trace.h"
#include "sim_watch.h"

/*
 * A script: of the core, or of a wrong core (controls.lua), which a checker must detect.
 */
typedef struct sim_script {
  const char *text;
  sim_command_kind kind;
  bool compares; /* acts only on a key that holds the token */
  bool creates;  /* sets an existing key, too */
  bool shortens; /* sets the expiry even if it is later */
  bool several;  /* keys */
  bool careless; /* of several, compares only the first */
  bool attaches; /* replaces one token by another */
  bool guarded;  /* compares the lineage record first; its key is the last one */
} sim_script;

/* The scripts that attach: |minds| compares the key, |sets| sets it. */
#define SIM_SCRIPT_ATTACH(minds, sets)                                                             \
  "local left=0 for i=1,#KEYS do local p=redis.call('PTTL',KEYS[i]) "                              \
  "if redis.call('GET',KEYS[i])" minds " or p<=tonumber(ARGV[4]) then return 0 end "               \
  "left=math.max(left,p) end for i=1,#KEYS do redis.call('" sets ",ARGV[3]) end "                  \
  "return redis.status_reply(string.format('OK %.0f',left))"

static const sim_script sim_scripts[] = {
    {"if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0",
     SIM_COMMAND_RELEASE, true, false, false, false, false, false, false},
    {"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
     "if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then "
     "redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 1",
     SIM_COMMAND_EXTEND, true, false, false, false, false, false, false},
    {"return redis.call('DEL',KEYS[1])", SIM_COMMAND_RELEASE, false, false, false, false, false,
     false, false},
    {"return redis.call('PEXPIRE',KEYS[1],ARGV[2])", SIM_COMMAND_EXTEND, false, false, true, false,
     false, false, false},
    {"redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return 1", SIM_COMMAND_EXTEND, false, true,
     true, false, false, false, false},
    {"if redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 end "
     "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
     "return redis.call('PEXPIRE',KEYS[1],ARGV[2])",
     SIM_COMMAND_EXTEND, true, true, true, false, false, false, false},
    {"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
     "return redis.call('PEXPIRE',KEYS[1],ARGV[2])",
     SIM_COMMAND_EXTEND, true, false, true, false, false, false, false},
    {"for i=1,#KEYS do if redis.call('EXISTS',KEYS[i])==1 then return i end end for "
     "i=1,#KEYS do redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end return "
     "redis.status_reply('OK')",
     SIM_COMMAND_SET, false, false, false, true, false, false, false},
    {"for i=1,#KEYS do local v=redis.call('GET',KEYS[i]) if v and v~=ARGV[1] then "
     "return i end end for i=1,#KEYS do if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
     "redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end end return redis.status_reply('OK')",
     SIM_COMMAND_SET, true, false, false, true, false, false, false},
    {"for i=1,#KEYS do if redis.call('GET',KEYS[i])~=ARGV[1] then return 0 end end for "
     "i=1,#KEYS do if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
     "redis.call('PEXPIRE',KEYS[i],ARGV[2]) end end return 1",
     SIM_COMMAND_EXTEND, true, false, false, true, false, false, false},
    {"local n,e=0 for i=1,#KEYS do local v=redis.pcall('GET',KEYS[i]) if v==ARGV[1] "
     "then n=n+redis.call('DEL',KEYS[i]) elseif type(v)=='table' then e=v end end if e "
     "then return e end if n==#KEYS then return 1 end return 0",
     SIM_COMMAND_RELEASE, true, false, false, true, false, false, false},
    {"for i=1,1 do if redis.call('EXISTS',KEYS[i])==1 then return i end end for "
     "i=1,#KEYS do redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end return "
     "redis.status_reply('OK')",
     SIM_COMMAND_SET, false, false, false, true, true, false, false},
    {SIM_SCRIPT_ATTACH("~=ARGV[1]", "SET',KEYS[i],ARGV[2],'PX'"), SIM_COMMAND_SET, true, false,
     false, false, false, true, false},
    {"if redis.call('GET',KEYS[#KEYS])~=ARGV[5] or "
     "redis.call('OBJECT','ENCODING','redlock:lineage '..string.sub(redis.sha1hex(ARGV[5]),1,12))~='raw' "
     "then return -1 end "
     "local run,past=string.match(ARGV[6],'^(%w*)-(%x*)$') local c,a,b=string.match("
     "redis.call('INFO','replication'),'role:(%a+).*_replid2:(%x+).*second_repl_offset:(%-?%d+)') "
     "local was=a and (c=='master' and '' or 'f')..string.sub(a,1,16)..string.format('%.0f',b+1) or '' if (past~='' and past~=was) or (run~='' and not "
     "string.find(redis.call('INFO','server'),'run_id:'..run,1,true)) then return -1 end "
     "local left=0 for i=1,#KEYS-1 do local p=redis.call('PTTL',KEYS[i]) "
     "if redis.call('GET',KEYS[i])~=ARGV[1] or p<=tonumber(ARGV[4]) then return 0 end "
     "left=math.max(left,p) end "
     "for i=1,#KEYS-1 do redis.call('SET',KEYS[i],ARGV[2],'PX',ARGV[3]) end "
     "return redis.status_reply(string.format('OK %.0f',left))",
     SIM_COMMAND_SET, true, false, false, false, false, true, true},
    {SIM_SCRIPT_ATTACH("~=ARGV[1]", "SET',KEYS[i],ARGV[1],'PX'"), SIM_COMMAND_SET, true, false,
     true, false, false, true, false},
    {SIM_SCRIPT_ATTACH("==ARGV[2]", "SET',KEYS[i],ARGV[2],'PX'"), SIM_COMMAND_SET, false, false,
     false, false, false, true, false},
};
#define SIM_SCRIPT_COUNT (sizeof sim_scripts / sizeof sim_scripts[0])

bool sim_script_is(const resp_request *command, rl_script script) {
  bool by_text = resp_is(command, 0, "EVAL");
  return resp_is(command, 1, by_text ? rl_script_text(script) : rl_script_sha1(script));
}

unsigned sim_script_resource(const resp_request *command, unsigned argument) {
  for (unsigned i = 0; i < SIM_RESOURCES_MAX; i++) {
    size_t length;
    const char *name = sim_resource(i, &length);
    if (command->lengths[argument] == length &&
        memcmp(command->words[argument], name, length) == 0) {
      return i;
    }
    name = sim_slot(i, &length);
    if (command->lengths[argument] == length &&
        memcmp(command->words[argument], name, length) == 0) {
      return i;
    }
  }
  return SIM_RESOURCES_MAX;
}

/* SET key token NX PX ttl */
void sim_script_set(sim *s, int connection, const resp_request *command,
                    const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = command->count >= 3 ? sim_script_resource(command, 1) : SIM_RESOURCES_MAX;
  bool nx = false;
  uint64_t px_ms = 0;
  for (unsigned i = 3; i < command->count; i++) {
    nx = nx || resp_is(command, i, "NX");
    if (resp_is(command, i, "PX") && i + 1 < command->count) {
      px_ms = resp_number(command, ++i);
    }
  }
  if (resource == SIM_RESOURCES_MAX || px_ms == 0 ||
      !sim_tap_is_token(command->words[2], command->lengths[2])) {
    sim_violation(s, "wire", "a SET that the node does not understand");
    return;
  }
  sim_key *held = sim_key_find(s, from->node, from->database, resource);
  if (s->breach == SIM_BREACH_NOT_ATOMIC && held != NULL && sim_below(&s->random_node, 8) == 0) {
    held = NULL;
    s->breached = true;
  }
  if (held != NULL && nx && s->breach == SIM_BREACH_COUNTED_PER_NODE && s->config.permits > 0 &&
      sim_key_find(s, from->node, from->database, 1 - resource) == NULL) {
    s->breached = true; /* The node admits as many holders as there are permits. */
    resource = 1 - resource;
    held = NULL;
  }
  if (held != NULL && nx) {
    sim_count(s, SIM_SET_TAKEN);
    sim_node_reply(s, connection, request, "$-1\r\n", SIM_OUTCOME_REFUSED);
    return;
  }
  if (held != NULL) {
    check_touched(s, from, held, request->token, SIM_COMMAND_SET);
  }
  sim_key_write(s, from->node, &s->nodes[from->node].data.keys[from->database][resource], resource,
                command, 2, request->token, px_ms);
  sim_count(s, SIM_SET_GRANTED);
  SIM_TRACE(s, "node %u: SET %u by token %u for %llu ms: OK%s", from->node, resource,
            request->token, (ull)px_ms,
            from->client_open ? "" : " (on a connection that was given up)");
  sim_node_reply(s, connection, request, "+OK\r\n", SIM_OUTCOME_GRANTED);
}

/* The script named or spelt by argument 1, if it is one of |known|; else SIM_SCRIPT_COUNT. */
static unsigned sim_script_find(sim *s, uint32_t known, const resp_request *command, bool by_text) {
  static_assert(SIM_SCRIPT_COUNT <= SIM_SCRIPTS_MAX, "room for the names");
  if (s->script_names[0][0] == '\0') {
    for (unsigned i = 0; i < SIM_SCRIPT_COUNT; i++) {
      s->script_lengths[i] = strlen(sim_scripts[i].text);
      rl_sha1(s->script_names[i], sim_scripts[i].text, s->script_lengths[i]);
    }
  }
  for (unsigned i = 0; i < SIM_SCRIPT_COUNT; i++) {
    if (by_text ? resp_equals(command, 1, sim_scripts[i].text, s->script_lengths[i])
                : (known >> i & 1) != 0 &&
                      resp_equals(command, 1, s->script_names[i], SIM_SHA1_LENGTH)) {
      return i;
    }
  }
  return SIM_SCRIPT_COUNT;
}

unsigned sim_script_token(sim *s, const resp_request *command) {
  if (sim_hold_is(s, command)) {
    return 3 + (unsigned)resp_number(command, 2);
  }
  if (sim_watch_like(command)) {
    sim_command_kind kind = sim_watch_kind(s, command);
    if (kind != SIM_COMMAND_UNKNOWN) {
      return kind == SIM_COMMAND_GUARD ? command->count : 3 + (unsigned)resp_number(command, 2);
    }
  }
  unsigned keys = (unsigned)resp_number(command, 2);
  if (keys >= 2 && keys <= SIM_RESOURCES_MAX + 1 && command->count == 9 + keys) {
    return 4 + keys; /* It attaches, and compares a record. */
  }
  unsigned first = resp_is(command, 2, "2") ? 5 : 4;
  return command->count == first + 4 ? first + 1
                                     : first; /* It attaches: the handed one comes first. */
}

sim_command_kind sim_script_kind(sim *s, const resp_request *command) {
  sim_command_kind calling = sim_calls_kind(s, command);
  if (calling != SIM_COMMAND_UNKNOWN) {
    return calling;
  }
  if (sim_hold_is(s, command)) {
    return SIM_COMMAND_RELEASE;
  }
  sim_command_kind watched =
      sim_watch_like(command) ? sim_watch_kind(s, command) : SIM_COMMAND_UNKNOWN;
  if (watched != SIM_COMMAND_UNKNOWN) {
    return watched;
  }
  unsigned script = sim_script_find(s, ~0u, command, resp_is(command, 0, "EVAL"));
  if (script < SIM_SCRIPT_COUNT && (sim_scripts[script].several || sim_scripts[script].attaches)) {
    return sim_scripts[script].kind;
  }
  return command->count == 6 ? SIM_COMMAND_EXTEND : SIM_COMMAND_RELEASE;
}

static bool sim_script_holds(const sim_key *key, const resp_request *command, unsigned word) {
  return key != NULL && !key->foreign_type && sim_key_is(key, command, word);
}

/* Sets the keys if none is in the way. Returns 0, or the number of the first one that is. */
static unsigned sim_script_take(sim *s, const sim_connection *from, const sim_script *script,
                                const resp_request *command, const sim_request *request,
                                unsigned keys) {
  unsigned node = from->node;
  uint64_t px_ms = resp_number(command, 4 + keys);
  for (unsigned i = 0; i < (script->careless ? 1u : keys); i++) {
    const sim_key *key = sim_key_find(s, node, from->database, sim_script_resource(command, 3 + i));
    if (key != NULL && !(script->compares && sim_script_holds(key, command, 3 + keys))) {
      return i + 1;
    }
  }
  for (unsigned i = 0; i < keys; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    const sim_key *key = sim_key_find(s, node, from->database, resource);
    if (key != NULL && key->expire_ms >= sim_key_wall_ms(s, node) + px_ms) {
      continue; /* A heal does not shorten it. */
    }
    if (key != NULL) { /* of the same token: it is prolonged */
      check_touched(s, from, key, request->token, SIM_COMMAND_EXTEND);
    }
    sim_key_write(s, node, &s->nodes[node].data.keys[from->database][resource], resource, command,
                  3 + keys, request->token, px_ms);
  }
  return 0;
}

static void sim_script_release(sim *s, const sim_connection *from, sim_key *key, unsigned resource,
                               const sim_request *request) {
  key->used = false;
  sim_key_deleted(s, from->node, resource, key->token);
  if (request->forced) {
    sim_key_forced(s, from->node, key->token);
  }
}

/* Prolongs the keys if all hold the token, or deletes those that do. Returns true if all do. */
static bool sim_script_run(sim *s, const sim_connection *from, const sim_script *script,
                           const resp_request *command, const sim_request *request, unsigned keys) {
  unsigned node = from->node, held = 0;
  unsigned token = 3 + keys;
  uint64_t px_ms = script->kind == SIM_COMMAND_EXTEND ? resp_number(command, 4 + keys) : 0;
  uint64_t expire_ms = sim_key_wall_ms(s, node) + px_ms;
  bool holds[SIM_RESOURCES_MAX];
  for (unsigned i = 0; i < keys; i++) {
    const sim_key *key = sim_key_find(s, node, from->database, sim_script_resource(command, 3 + i));
    holds[i] = sim_script_holds(key, command, token) || (key != NULL && !script->compares);
    held += holds[i] || (key == NULL && script->creates);
  }
  for (unsigned i = 0; i < keys; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    sim_key *slot = &s->nodes[node].data.keys[from->database][resource];
    bool extends = script->kind == SIM_COMMAND_EXTEND && held == keys;
    if (holds[i] && (extends || script->kind == SIM_COMMAND_RELEASE)) {
      check_touched(s, from, slot, request->token, script->kind);
    }
    if (holds[i] && script->kind == SIM_COMMAND_RELEASE) {
      sim_script_release(s, from, slot, resource, request);
    } else if (extends && (!holds[i] || (script->creates && !script->compares))) {
      sim_key_write(s, node, slot, resource, command, token, request->token, px_ms);
    } else if (extends && (script->shortens || expire_ms > slot->expire_ms)) {
      slot->expire_ms = expire_ms;
      slot->written_us = s->now_us;
      if (s->trace != NULL) {
        sim_trace_key(s, node, resource, slot->token, sim_key_dies_us(&s->nodes[node], slot));
      }
    }
  }
  return held == keys;
}

/*
 * Returns true if the key may be given another token: it holds the detached one, and enough of its
 * time is left.
 */
static bool sim_script_may_attach(sim *s, unsigned node, const sim_key *key,
                                  const resp_request *command, unsigned handed,
                                  const sim_script *script, uint64_t floor_ms) {
  bool ours = key != NULL && sim_key_is(key, command, handed);
  uint64_t wall_ms = sim_key_wall_ms(s, node);
  return key != NULL && (ours || !script->compares) && key->expire_ms > wall_ms + floor_ms;
}

/*
 * EVAL, script, number of keys, keys, detached token, new token, ttl, floor, and with a guard
 * record, run_id
 */
static void sim_script_eval_attach(sim *s, int connection, const resp_request *command,
                                   const sim_request *request, const sim_script *script) {
  const sim_connection *from = &s->connections[connection];
  unsigned value = sim_script_token(s, command), keys = value - 4 - script->guarded;
  unsigned resources[SIM_RESOURCES_MAX] = {0, 0};
  char granted[32];
  const char *reply = granted;
  uint64_t left_ms = 0;
  granted[0] = '+';
  bool understood = command->count == value + 3 + 2 * script->guarded && keys >= 1 &&
                    keys <= SIM_RESOURCES_MAX &&
                    sim_tap_is_token(command->words[value], command->lengths[value]) &&
                    sim_tap_is_token(command->words[value - 1], command->lengths[value - 1]);
  for (unsigned i = 0; i < keys && understood; i++) {
    resources[i] = sim_script_resource(command, 3 + i);
    understood = resources[i] < SIM_RESOURCES_MAX && (i == 0 || resources[0] != resources[1]);
  }
  if (!understood) {
    sim_violation(s, "wire", "a script that attaches, which the node does not understand");
    return;
  }
  sim_watch watch = {.record_key = 3 + keys, .record = value + 3, .run_id = value + 4};
  if (script->guarded && sim_watch_other(&s->nodes[from->node], from, command, &watch, false)) {
    sim_count(s, SIM_TAKE_OTHER);
    sim_node_reply(s, connection, request, ":-1\r\n", SIM_OUTCOME_OTHER);
    return;
  }
  for (unsigned i = 0; i < keys && reply == granted; i++) {
    const sim_key *key = sim_key_find(s, from->node, from->database, resources[i]);
    if (key != NULL && key->foreign_type) {
      reply = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    } else if (!sim_script_may_attach(s, from->node, key, command, value - 1, script,
                                      resp_number(command, value + 2))) {
      reply = ":0\r\n";
    } else if (key->expire_ms - sim_key_wall_ms(s, from->node) > left_ms) {
      left_ms = key->expire_ms - sim_key_wall_ms(s, from->node);
    }
  }
  (void)snprintf(granted, sizeof granted, "+OK %llu\r\n", (ull)left_ms);
  for (unsigned i = 0; i < keys && reply == granted; i++) {
    sim_key *key = sim_key_find(s, from->node, from->database, resources[i]);
    bool keeps = script->shortens; /* It sets the handed token once more. */
    if (!sim_key_is(key, command, value - 1)) {
      check_touched(s, from, key, request->token, SIM_COMMAND_SET);
    }
    sim_key_write(s, from->node, key, resources[i], command, keeps ? value - 1 : value,
                  keeps ? key->token : request->token, resp_number(command, value + 1));
  }
  SIM_TRACE(s, "node %u: token %u attaches: %.*s", from->node, request->token,
            (int)strcspn(reply, "\r"), reply);
  sim_node_reply(s, connection, request, reply,
                 reply == granted ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

static bool sim_script_understands(const sim_script *script, const resp_request *command,
                                   unsigned keys) {
  bool understood = resp_number(command, 2) == keys &&
                    command->count == (script->kind == SIM_COMMAND_RELEASE ? 4 : 5) + keys &&
                    sim_tap_is_token(command->words[3 + keys], command->lengths[3 + keys]);
  for (unsigned i = 0; i < keys && understood; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    understood =
        resource < SIM_RESOURCES_MAX && (i == 0 || resource != sim_script_resource(command, 3));
  }
  return understood;
}

/* EVALSHA or EVAL, script, number of keys, keys, token[, ttl] */
void sim_script_eval(sim *s, int connection, const resp_request *command,
                     const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  sim_node *node = &s->nodes[from->node];
  unsigned index = sim_script_find(s, node->scripts, command, request->by_text);
  const sim_script *script = index < SIM_SCRIPT_COUNT ? &sim_scripts[index] : NULL;
  char reply[8] = "+OK\r\n";
  if (script == NULL && !request->by_text) {
    sim_count(s, SIM_SCRIPT_UNKNOWN);
    sim_node_reply(s, connection, request, "-NOSCRIPT No matching script.\r\n",
                   SIM_OUTCOME_NO_SCRIPT);
    return;
  }
  if (script != NULL && script->attaches) {
    sim_script_eval_attach(s, connection, command, request, script);
    return;
  }
  unsigned keys = script != NULL && script->several ? 2 : 1;
  if (script == NULL || !sim_script_understands(script, command, keys)) {
    sim_violation(s, "wire", "a script that the node does not understand");
    return;
  }
  if (request->by_text) {
    node->scripts |= 1u << index;
    sim_count(s, SIM_SCRIPT_BY_TEXT);
  }
  if (script->kind == SIM_COMMAND_RELEASE && request->token < s->token_count && !request->forced) {
    s->tokens[request->token].released_there |= 1u << from->node;
  }
  const sim_key *key = sim_key_find(s, from->node, from->database, sim_script_resource(command, 3));
  if (key != NULL && key->foreign_type && keys == 1) {
    sim_count(s, SIM_SCRIPT_WRONG_TYPE);
    sim_node_reply(s, connection, request,
                   sim_below(&s->random_node, 2) == 0
                       ? "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
                       : "-ERR Error running script: WRONGTYPE Operation against a key\r\n",
                   SIM_OUTCOME_REFUSED);
    return;
  }
  bool sets = script->kind == SIM_COMMAND_SET;
  unsigned result = sets ? sim_script_take(s, from, script, command, request, keys)
                         : sim_script_run(s, from, script, command, request, keys);
  bool granted = result == (sets ? 0 : 1);
  sim_count(s, granted ? (sets ? SIM_SET_GRANTED : SIM_SCRIPT_GRANTED)
                       : (sets ? SIM_SET_TAKEN : SIM_SCRIPT_REFUSED));
  sim_count_if(s, keys > 1, granted ? SIM_SEVERAL_GRANTED : SIM_SEVERAL_REFUSED);
  SIM_TRACE(s, "node %u: %s of %s by token %u: %s%s", from->node,
            sets                                  ? "SET"
            : script->kind == SIM_COMMAND_RELEASE ? "release"
                                                  : "extend",
            keys > 1                               ? "both"
            : sim_script_resource(command, 3) == 0 ? "0"
                                                   : "1",
            request->token, granted ? "OK" : "refused",
            from->client_open ? "" : " (on a connection that was given up)");
  if (!sets || !granted) {
    (void)snprintf(reply, sizeof reply, ":%u\r\n", result);
  }
  sim_node_reply(s, connection, request, reply,
                 granted ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* ------------------------------------------------------------------------------------ operators */

/* EVAL, script, 1, key: an inspection. */
void sim_script_inspect(sim *s, int connection, const resp_request *command,
                        const sim_request *request) {
  static const char script[] =
      "local t=redis.call('TYPE',KEYS[1])['ok'] if t=='none' then return false end "
      "local a=t..' '..string.format('%.0f',redis.call('PTTL',KEYS[1])) "
      "if t=='string' and redis.call('STRLEN',KEYS[1])<=256 then "
      "local f=redis.pcall('GET',KEYS[1]..':redlock-fence') "
      "if type(f)=='string' and #f<=16 then a=a..'/'..f end "
      "a=a..' '..redis.call('GET',KEYS[1]) end return a";
  const sim_connection *from = &s->connections[connection];
  unsigned resource = sim_script_resource(command, 3);
  char answer[128], reply[160];
  sim_request seen = *request;
  if (resource == SIM_RESOURCES_MAX || !resp_is(command, 1, script) || !resp_is(command, 2, "1")) {
    sim_violation(s, "wire", "an inspection that the node does not understand");
    return;
  }
  const sim_key *key = sim_key_find(s, from->node, from->database, resource);
  seen.seen.state = key == NULL         ? REDLOCK_KEY_FREE
                    : key->foreign_type ? REDLOCK_KEY_OTHER
                                        : REDLOCK_KEY_HELD;
  seen.seen.token = SIM_NO_TOKEN;
  if (key == NULL) {
    sim_node_reply(s, connection, &seen, "$-1\r\n", SIM_OUTCOME_GRANTED);
    return;
  }
  uint64_t ttl_ms = key->expire_ms - sim_key_wall_ms(s, from->node);
  int length = snprintf(answer, sizeof answer, key->foreign_type ? "hash %llu" : "string %llu %.*s",
                        (ull)ttl_ms, (int)key->value_length, key->value);
  (void)snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", length, answer);
  seen.seen.ttl_us = ttl_ms * 1000;
  seen.seen.token = key->foreign_type ? SIM_NO_TOKEN : sim_tap_token(key->value, key->value_length);
  sim_node_reply(s, connection, &seen, reply, SIM_OUTCOME_GRANTED);
}

/* DEL key */
void sim_script_delete(sim *s, int connection, const resp_request *command,
                       const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = command->count == 2 ? sim_script_resource(command, 1) : SIM_RESOURCES_MAX;
  if (resource == SIM_RESOURCES_MAX) {
    sim_violation(s, "wire", "a DEL that the node does not understand");
    return;
  }
  sim_key *key = sim_key_find(s, from->node, from->database, resource);
  if (key != NULL) {
    key->used = false;
    sim_key_deleted(s, from->node, resource, key->token);
    sim_key_forced(s, from->node, key->token);
  }
  sim_node_reply(s, connection, request, key != NULL ? ":1\r\n" : ":0\r\n",
                 key != NULL ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}
