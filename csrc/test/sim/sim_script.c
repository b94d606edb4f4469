/*
 * The scripts that a node runs, and SET.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sim_script.h"

#include <stdlib.h>
#include <string.h>

#include "base/rl_sha1.h"
#include "check.h"
#include "sim_calls.h"
#include "sim_key.h"
#include "sim_trace.h"
#include "sim_watch.h"

/*
 * A script. The first two are those of the core. Wrong cores send the rest, so that the checkers
 * can detect them.
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
  "for i=1,#KEYS do if redis.call('GET',KEYS[i])" minds " or "                                     \
  "redis.call('PTTL',KEYS[i])<=tonumber(ARGV[4]) then return 0 end end for i=1,#KEYS do "          \
  "redis.call('" sets ",ARGV[3]) end return 1"

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
     "for i=1,#KEYS-1 do if redis.call('GET',KEYS[i])~=ARGV[1] or "
     "redis.call('PTTL',KEYS[i])<=tonumber(ARGV[4]) then return 0 end end "
     "for i=1,#KEYS-1 do redis.call('SET',KEYS[i],ARGV[2],'PX',ARGV[3]) end return 1",
     SIM_COMMAND_SET, true, false, false, false, false, true, true},
    {SIM_SCRIPT_ATTACH("~=ARGV[1]", "SET',KEYS[i],ARGV[1],'PX'"), SIM_COMMAND_SET, true, false,
     true, false, false, true, false},
    {SIM_SCRIPT_ATTACH("==ARGV[2]", "SET',KEYS[i],ARGV[2],'PX'"), SIM_COMMAND_SET, false, false,
     false, false, false, true, false},
};
#define SIM_SCRIPT_COUNT (sizeof sim_scripts / sizeof sim_scripts[0])

unsigned sim_script_resource(const resp_request *command, unsigned argument) {
  for (unsigned i = 0; i < SIM_RESOURCES_MAX; i++) {
    size_t length;
    const char *name = sim_resource(i, &length);
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
  if (resource == SIM_RESOURCES_MAX || px_ms == 0 || command->lengths[2] != REDLOCK_TOKEN_LENGTH) {
    sim_violation(s, "wire", "a SET that the node does not understand");
    return;
  }
  sim_key *held = sim_key_find(s, from->node, from->database, resource);
  if (s->breach == SIM_BREACH_NOT_ATOMIC && held != NULL && sim_below(&s->random_node, 8) == 0) {
    held = NULL;
    s->breached = true;
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
                command->words[2], request->token, px_ms);
  sim_count(s, SIM_SET_GRANTED);
  SIM_TRACE(s, "node %u: SET %u by token %u for %llu ms: OK%s", from->node, resource,
            request->token, (unsigned long long)px_ms,
            from->client_open ? "" : " (on a connection that was given up)");
  sim_node_reply(s, connection, request, "+OK\r\n", SIM_OUTCOME_GRANTED);
}

/* The script named or spelt by argument 1, if it is one of |known|; else SIM_SCRIPT_COUNT. */
static unsigned sim_script_find(sim *s, uint32_t known, const resp_request *command, bool by_text) {
  _Static_assert(SIM_SCRIPT_COUNT <= SIM_SCRIPTS_MAX, "room for the names");
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

static unsigned sim_script_known(sim *s, const sim_node *node, const resp_request *command,
                                 bool by_text) {
  return sim_script_find(s, node->scripts, command, by_text);
}

unsigned sim_script_token(sim *s, const resp_request *command) {
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

/* Returns true if it sets several keys, and accepts keys of its own token. */
bool sim_script_keeps(sim *s, const resp_request *command) {
  sim_watch watch;
  if (sim_watch_like(command) && sim_watch_kind(s, command) == SIM_COMMAND_SET) {
    return sim_watch_read(command, &watch) && watch.own && watch.count > 1;
  }
  unsigned script = sim_script_find(s, ~0u, command, resp_is(command, 0, "EVAL"));
  return script < SIM_SCRIPT_COUNT && sim_scripts[script].kind == SIM_COMMAND_SET &&
         sim_scripts[script].several && sim_scripts[script].compares;
}

sim_command_kind sim_script_kind(sim *s, const resp_request *command) {
  sim_command_kind calling = sim_calls_kind(s, command);
  if (calling != SIM_COMMAND_UNKNOWN) {
    return calling;
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

/* Runs the script on its key. Returns the integer that it returns. */
static unsigned sim_script_run(sim *s, const sim_connection *from, const sim_script *script,
                               const resp_request *command, const sim_request *request,
                               unsigned resource) {
  unsigned index = from->node;
  sim_key *slot = &s->nodes[index].data.keys[from->database][resource];
  sim_key *key = sim_key_find(s, index, from->database, resource);
  uint64_t px_ms = script->kind == SIM_COMMAND_EXTEND ? resp_number(command, 5) : 0;
  bool ours = key != NULL && memcmp(key->value, command->words[4], REDLOCK_TOKEN_LENGTH) == 0;
  if (key == NULL && script->creates) {
    sim_key_write(s, index, slot, resource, command->words[4], request->token, px_ms);
    return 1;
  }
  if (key == NULL || (script->compares && !ours)) {
    return 0;
  }
  check_touched(s, from, key, request->token, script->kind);
  if (script->kind == SIM_COMMAND_RELEASE) {
    key->used = false;
    sim_key_deleted(s, index, resource, key->token);
    if (request->forced) {
      sim_key_forced(s, index, key->token);
    }
    return 1;
  }
  uint64_t expire_ms = sim_key_wall_ms(s, index) + px_ms;
  if (script->creates && !script->compares) {
    sim_key_write(s, index, slot, resource, command->words[4], request->token, px_ms);
  } else if (script->shortens || expire_ms > key->expire_ms) {
    key->expire_ms = expire_ms;
    key->written_us = s->now_us;
    if (s->trace != NULL) {
      sim_trace_key(s, index, resource, key->token, sim_key_dies_us(&s->nodes[index], key));
    }
  }
  return 1;
}

/* ---------------------------------------------------------------------------- several keys */

static bool sim_script_holds(const sim_key *key, const resp_request *command) {
  return key != NULL && !key->foreign_type &&
         memcmp(key->value, command->words[5], REDLOCK_TOKEN_LENGTH) == 0;
}

/* Sets both keys if neither is in the way. Returns 0, or the number of the one that is. */
static unsigned sim_script_set_both(sim *s, const sim_connection *from, const sim_script *script,
                                    const resp_request *command, const sim_request *request) {
  unsigned node = from->node;
  for (unsigned i = 0; i < (script->careless ? 1u : 2u); i++) {
    const sim_key *key = sim_key_find(s, node, from->database, sim_script_resource(command, 3 + i));
    if (key != NULL && !(script->compares && sim_script_holds(key, command))) {
      return i + 1;
    }
  }
  for (unsigned i = 0; i < 2; i++) {
    unsigned resource = sim_script_resource(command, 3 + i);
    const sim_key *key = sim_key_find(s, node, from->database, resource);
    if (key != NULL && key->expire_ms >= sim_key_wall_ms(s, node) + resp_number(command, 6)) {
      continue; /* A heal does not shorten it. */
    }
    if (key != NULL) { /* of the same token: it is prolonged */
      check_touched(s, from, key, request->token, SIM_COMMAND_EXTEND);
    }
    sim_key_write(s, node, &s->nodes[node].data.keys[from->database][resource], resource,
                  command->words[5], request->token, resp_number(command, 6));
  }
  return 0;
}

/* Prolongs both keys if both hold the token, or deletes those that do. Returns 1 if both did. */
static unsigned sim_script_run_both(sim *s, const sim_connection *from, const sim_script *script,
                                    const resp_request *command, const sim_request *request) {
  unsigned node = from->node, ours = 0;
  sim_key *keys[2];
  for (unsigned i = 0; i < 2; i++) {
    keys[i] = sim_key_find(s, node, from->database, sim_script_resource(command, 3 + i));
    ours += sim_script_holds(keys[i], command);
  }
  for (unsigned i = 0; i < 2; i++) {
    uint64_t expire_ms = sim_key_wall_ms(s, node) + resp_number(command, 6);
    if (script->kind == SIM_COMMAND_RELEASE && sim_script_holds(keys[i], command)) {
      check_touched(s, from, keys[i], request->token, script->kind);
      keys[i]->used = false;
      sim_key_deleted(s, node, sim_script_resource(command, 3 + i), keys[i]->token);
    } else if (script->kind == SIM_COMMAND_EXTEND && ours == 2 && keys[i] != NULL &&
               expire_ms > keys[i]->expire_ms) {
      check_touched(s, from, keys[i], request->token, script->kind);
      keys[i]->expire_ms = expire_ms;
      keys[i]->written_us = s->now_us;
    }
  }
  return ours == 2;
}

/* EVALSHA or EVAL, script, 2, key, key, token[, ttl] */
static void sim_script_eval_both(sim *s, int connection, const resp_request *command,
                                 const sim_request *request, const sim_script *script) {
  const sim_connection *from = &s->connections[connection];
  unsigned first = sim_script_resource(command, 3), second = sim_script_resource(command, 4);
  char reply[8] = "+OK\r\n";
  if (first == SIM_RESOURCES_MAX || second == SIM_RESOURCES_MAX || first == second ||
      command->lengths[5] != REDLOCK_TOKEN_LENGTH ||
      command->count != (script->kind == SIM_COMMAND_RELEASE ? 6u : 7u)) {
    sim_violation(s, "wire", "a script of several keys that the node does not understand");
    return;
  }
  if (script->kind == SIM_COMMAND_RELEASE && request->token < s->token_count) {
    s->tokens[request->token].released_there |= 1u << from->node;
  }
  unsigned result;
  bool granted;
  if (script->kind == SIM_COMMAND_SET) {
    result = sim_script_set_both(s, from, script, command, request);
    granted = result == 0;
    sim_count(s, granted ? SIM_SET_GRANTED : SIM_SET_TAKEN);
  } else {
    result = sim_script_run_both(s, from, script, command, request);
    granted = result == 1;
    sim_count(s, granted ? SIM_SCRIPT_GRANTED : SIM_SCRIPT_REFUSED);
  }
  sim_count(s, granted ? SIM_SEVERAL_GRANTED : SIM_SEVERAL_REFUSED);
  SIM_TRACE(s, "node %u: %s of both by token %u: %s", from->node,
            script->kind == SIM_COMMAND_SET       ? "SET"
            : script->kind == SIM_COMMAND_RELEASE ? "release"
                                                  : "extend",
            request->token, granted ? "OK" : "refused");
  if (script->kind != SIM_COMMAND_SET || !granted) {
    (void)snprintf(reply, sizeof reply, ":%u\r\n", result);
  }
  sim_node_reply(s, connection, request, reply,
                 granted ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/*
 * Returns true if the key may be given another token: it holds the detached one, and enough of its
 * time is left.
 */
static bool sim_script_may_attach(sim *s, unsigned node, const sim_key *key, const char *handed,
                                  const sim_script *script, uint64_t floor_ms) {
  bool ours = key != NULL && memcmp(key->value, handed, REDLOCK_TOKEN_LENGTH) == 0;
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
  const char *reply = ":1\r\n";
  bool understood = command->count == value + 3 + 2 * script->guarded && keys >= 1 &&
                    keys <= SIM_RESOURCES_MAX && command->lengths[value] == REDLOCK_TOKEN_LENGTH &&
                    command->lengths[value - 1] == REDLOCK_TOKEN_LENGTH;
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
  for (unsigned i = 0; i < keys && reply[1] == '1'; i++) {
    const sim_key *key = sim_key_find(s, from->node, from->database, resources[i]);
    if (key != NULL && key->foreign_type) {
      reply = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    } else if (!sim_script_may_attach(s, from->node, key, command->words[value - 1], script,
                                      resp_number(command, value + 2))) {
      reply = ":0\r\n";
    }
  }
  for (unsigned i = 0; i < keys && reply[1] == '1'; i++) {
    sim_key *key = sim_key_find(s, from->node, from->database, resources[i]);
    bool keeps = script->shortens; /* It sets the handed token once more. */
    if (memcmp(key->value, command->words[value - 1], REDLOCK_TOKEN_LENGTH) != 0) {
      check_touched(s, from, key, request->token, SIM_COMMAND_SET);
    }
    sim_key_write(s, from->node, key, resources[i], command->words[keeps ? value - 1 : value],
                  keeps ? key->token : request->token, resp_number(command, value + 1));
  }
  SIM_TRACE(s, "node %u: token %u attaches: %.*s", from->node, request->token,
            (int)strcspn(reply, "\r"), reply);
  sim_node_reply(s, connection, request, reply,
                 reply[1] == '1' ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* EVALSHA or EVAL, script, 1, key, token[, ttl] */
void sim_script_eval(sim *s, int connection, const resp_request *command,
                     const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  sim_node *node = &s->nodes[from->node];
  unsigned script = sim_script_known(s, node, command, request->by_text);
  unsigned resource = command->count >= 5 ? sim_script_resource(command, 3) : SIM_RESOURCES_MAX;
  if (script == SIM_SCRIPT_COUNT && !request->by_text) {
    sim_count(s, SIM_SCRIPT_UNKNOWN);
    sim_node_reply(s, connection, request, "-NOSCRIPT No matching script.\r\n",
                   SIM_OUTCOME_NO_SCRIPT);
    return;
  }
  if (script < SIM_SCRIPT_COUNT && sim_scripts[script].several) {
    if (request->by_text) {
      node->scripts |= 1u << script;
      sim_count(s, SIM_SCRIPT_BY_TEXT);
    }
    sim_script_eval_both(s, connection, command, request, &sim_scripts[script]);
    return;
  }
  if (script < SIM_SCRIPT_COUNT && sim_scripts[script].attaches) {
    sim_script_eval_attach(s, connection, command, request, &sim_scripts[script]);
    return;
  }
  if (script == SIM_SCRIPT_COUNT || resource == SIM_RESOURCES_MAX ||
      command->lengths[4] != REDLOCK_TOKEN_LENGTH || !resp_is(command, 2, "1") ||
      command->count != (sim_scripts[script].kind == SIM_COMMAND_EXTEND ? 6u : 5u)) {
    sim_violation(s, "wire", "a script that the node does not understand");
    return;
  }
  if (request->by_text) {
    node->scripts |= 1u << script;
    sim_count(s, SIM_SCRIPT_BY_TEXT);
  }
  if (sim_scripts[script].kind == SIM_COMMAND_RELEASE && request->token < s->token_count &&
      !request->forced) {
    s->tokens[request->token].released_there |= 1u << from->node;
  }
  const sim_key *key = sim_key_find(s, from->node, from->database, resource);
  if (key != NULL && key->foreign_type) {
    sim_count(s, SIM_SCRIPT_WRONG_TYPE);
    sim_node_reply(s, connection, request,
                   sim_below(&s->random_node, 2) == 0
                       ? "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
                       : "-ERR Error running script: WRONGTYPE Operation against a key\r\n",
                   SIM_OUTCOME_REFUSED);
    return;
  }
  unsigned result = sim_script_run(s, from, &sim_scripts[script], command, request, resource);
  sim_count(s, result == 1 ? SIM_SCRIPT_GRANTED : SIM_SCRIPT_REFUSED);
  SIM_TRACE(s, "node %u: %s of %u by token %u: %u%s", from->node,
            sim_scripts[script].kind == SIM_COMMAND_RELEASE ? "release" : "extend", resource,
            request->token, result,
            from->client_open ? "" : " (on a connection that was given up)");
  sim_node_reply(s, connection, request, result == 1 ? ":1\r\n" : ":0\r\n",
                 result == 1 ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* ------------------------------------------------------------------------------------ operators */

/* EVAL, script, 1, key: an inspection. */
void sim_script_inspect(sim *s, int connection, const resp_request *command,
                        const sim_request *request) {
  static const char script[] =
      "local t=redis.call('TYPE',KEYS[1])['ok'] if t=='none' then return false end "
      "local a=t..' '..string.format('%.0f',redis.call('PTTL',KEYS[1])) "
      "if t=='string' and redis.call('STRLEN',KEYS[1])<=256 then "
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
                        (unsigned long long)ttl_ms, REDLOCK_TOKEN_LENGTH, key->value);
  (void)snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", length, answer);
  seen.seen.ttl_us = ttl_ms * 1000;
  seen.seen.token = key->foreign_type ? SIM_NO_TOKEN : sim_tap_token(key->value, sizeof key->value);
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
