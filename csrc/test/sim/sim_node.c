/*
 * A Redis server, as far as a lock sees it.
 *
 * SPDX-License-Identifier: MIT
 *
 * It parses what the core emits, byte by byte, and expires keys by its own wall clock as Redis does:
 * a key set at wall time t (whole ms) for p ms is alive while the wall shows no more than t + p ms.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "resp.h"
#include "sim.h"
#include "sim_trace.h"

/*
 * What a script does. The first two are what the core should send; the others are what a wrong core
 * might, so that the checkers can be seen to notice.
 */
typedef struct sim_script {
  const char *text;
  sim_command_kind kind;
  bool compares; /* acts only on a key that holds the token */
  bool creates;  /* sets the key whether it is there or not */
  bool shortens; /* sets the expiry even if it is later */
  bool several;  /* keys */
  bool careless; /* of several, looks at the first only */
  bool attaches; /* puts one token in the place of another */
} sim_script;

/* That which attaches: |minds| what is there, and |sets| this. */
#define SIM_NODE_ATTACH(minds, sets)                                                               \
  "for i=1,#KEYS do if redis.call('GET',KEYS[i])" minds " or "                                     \
  "redis.call('PTTL',KEYS[i])<=tonumber(ARGV[4]) then return 0 end end for i=1,#KEYS do "          \
  "redis.call('" sets ",ARGV[3]) end return 1"

static const sim_script sim_scripts[] = {
    {"if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0",
     SIM_COMMAND_RELEASE, true, false, false, false, false, false},
    {"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
     "if redis.call('PTTL',KEYS[1])<tonumber(ARGV[2]) then "
     "redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 1",
     SIM_COMMAND_EXTEND, true, false, false, false, false, false},
    {"return redis.call('DEL',KEYS[1])", SIM_COMMAND_RELEASE, false, false, false, false, false,
     false},
    {"return redis.call('PEXPIRE',KEYS[1],ARGV[2])", SIM_COMMAND_EXTEND, false, false, true, false,
     false, false},
    {"redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return 1", SIM_COMMAND_EXTEND, false, true,
     true, false, false, false},
    {"if redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 end "
     "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
     "return redis.call('PEXPIRE',KEYS[1],ARGV[2])",
     SIM_COMMAND_EXTEND, true, true, true, false, false, false},
    {"if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
     "return redis.call('PEXPIRE',KEYS[1],ARGV[2])",
     SIM_COMMAND_EXTEND, true, false, true, false, false, false},
    {"for i=1,#KEYS do if redis.call('EXISTS',KEYS[i])==1 then return i end end for "
     "i=1,#KEYS do redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end return "
     "redis.status_reply('OK')",
     SIM_COMMAND_SET, false, false, false, true, false, false},
    {"for i=1,#KEYS do local v=redis.call('GET',KEYS[i]) if v and v~=ARGV[1] then "
     "return i end end for i=1,#KEYS do if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
     "redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end end return redis.status_reply('OK')",
     SIM_COMMAND_SET, true, false, false, true, false, false},
    {"for i=1,#KEYS do if redis.call('GET',KEYS[i])~=ARGV[1] then return 0 end end for "
     "i=1,#KEYS do if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "
     "redis.call('PEXPIRE',KEYS[i],ARGV[2]) end end return 1",
     SIM_COMMAND_EXTEND, true, false, false, true, false, false},
    {"local n,e=0 for i=1,#KEYS do local v=redis.pcall('GET',KEYS[i]) if v==ARGV[1] "
     "then n=n+redis.call('DEL',KEYS[i]) elseif type(v)=='table' then e=v end end if e "
     "then return e end if n==#KEYS then return 1 end return 0",
     SIM_COMMAND_RELEASE, true, false, false, true, false, false},
    {"for i=1,1 do if redis.call('EXISTS',KEYS[i])==1 then return i end end for "
     "i=1,#KEYS do redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end return "
     "redis.status_reply('OK')",
     SIM_COMMAND_SET, false, false, false, true, true, false},
    {SIM_NODE_ATTACH("~=ARGV[1]", "SET',KEYS[i],ARGV[2],'PX'"), SIM_COMMAND_SET, true, false, false,
     false, false, true},
    {SIM_NODE_ATTACH("~=ARGV[1]", "SET',KEYS[i],ARGV[1],'PX'"), SIM_COMMAND_SET, true, false, true,
     false, false, true},
    {SIM_NODE_ATTACH("==ARGV[2]", "SET',KEYS[i],ARGV[2],'PX'"), SIM_COMMAND_SET, false, false,
     false, false, false, true},
};
#define SIM_SCRIPT_COUNT (sizeof sim_scripts / sizeof sim_scripts[0])

static const char *const sim_node_error_texts[SIM_NODE_ERROR_COUNT] = {
    "",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-BUSY Redis is busy running a script.\r\n",
    "-MISCONF Redis is configured to save RDB snapshots.\r\n",
    "-NOREPLICAS Not enough good replicas to write.\r\n",
    "-MASTERDOWN Link with MASTER is down.\r\n",
    "-NOPERM this user has no permissions to run the 'set' command\r\n",
    "-NOPERM this user has no permissions to run the 'evalsha' command\r\n",
    "-ERR unknown subcommand 'SETNAME'\r\n",
};

static uint64_t sim_node_wall_ms(const sim *s, unsigned node) {
  return sim_clock_read(&s->nodes[node].clock, s->now_us) / 1000;
}

/* When the key dies, true time, if its node's clock is not stepped. */
static uint64_t sim_node_dies_us(const sim_node *node, const sim_key *key) {
  return sim_clock_when(&node->clock, (key->expire_ms + 1) * 1000);
}

sim_key *sim_node_key(sim *s, unsigned index, unsigned database, unsigned resource) {
  sim_key *key = &s->nodes[index].keys[database][resource];
  if (key->used && sim_node_wall_ms(s, index) > key->expire_ms) {
    key->used = false;
    sim_count(s, SIM_KEY_EXPIRED);
    sim_mix(s, key->token);
  }
  return key->used ? key : NULL;
}

uint64_t sim_node_holds(sim *s, unsigned index, unsigned resource, uint32_t token) {
  uint64_t dies_us = 0;
  for (unsigned i = 0; i < SIM_DATABASES_MAX; i++) {
    const sim_key *key = sim_node_key(s, index, i, resource);
    if (key != NULL && !key->foreign_type && key->token == token) {
      dies_us = sim_node_dies_us(&s->nodes[index], key);
    }
  }
  return dies_us;
}

uint64_t sim_node_keeps(sim *s, unsigned index, const sim_lock *lock, uint32_t token) {
  uint64_t first_us = SIM_NEVER;
  for (unsigned i = 0; i < (lock->both ? 2u : 1u); i++) {
    uint64_t dies_us = sim_node_holds(s, index, lock->resource ^ i, token);
    first_us = dies_us < first_us ? dies_us : first_us;
  }
  return first_us;
}

bool sim_node_has(sim *s, unsigned index, const sim_lock *lock, uint32_t token) {
  return sim_node_holds(s, index, lock->resource, token) != 0 ||
         (lock->both && sim_node_holds(s, index, 1 - lock->resource, token) != 0);
}

void sim_node_init(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  sim_random *random = &s->random_node;
  int64_t bound = (int64_t)s->config.node_ppm;
  memset(node, 0, sizeof *node);
  node->up = true;
  node->clock.local_us = 1700000000000000u + sim_below(random, 1000000000u);
  switch (sim_below(random, 4)) {
  case 0:
    node->clock.ppm = bound;
    break;
  case 1:
    node->clock.ppm = -bound;
    break;
  default:
    node->clock.ppm = (int64_t)sim_below(random, (uint64_t)(2 * bound + 1)) - bound;
    break;
  }
  if (s->breach == SIM_BREACH_FAST_NODE) {
    node->clock.ppm = 3 * (int64_t)(s->config.drift_factor * 1000000) + 100000;
  }
}

/* ------------------------------------------------------------------------------------- replies */

typedef struct sim_request {
  sim_command_kind kind;
  uint32_t token;
  bool by_text;
  bool forced; /* a release of what is another's */
  sim_seen seen;
} sim_request;

static void sim_node_reply(sim *s, int connection, const sim_request *request, const char *text,
                           sim_outcome outcome) {
  sim_note note = {.token = request->token,
                   .kind = (uint8_t)request->kind,
                   .outcome = (uint8_t)outcome,
                   .by_text = request->by_text,
                   .asked = true,
                   .seen = request->seen};
  sim_node *node = &s->nodes[s->connections[connection].node];
  if (node->swallowed > 0 && request->kind == SIM_COMMAND_SET) {
    node->swallowed--;
    s->breached = true;
    return;
  }
  if (node->false_errors > 0 && request->kind != SIM_COMMAND_HANDSHAKE &&
      outcome != SIM_OUTCOME_NO_SCRIPT) {
    node->false_errors--;
    sim_count(s, SIM_INJECTED_ERROR_AFTER_EXECUTION);
    text = "-ERR the proxy lost its patience\r\n";
    note.outcome = SIM_OUTCOME_ERROR;
  } else if (node->odd_replies > 0) {
    static const char *const odd[] = {"$3\r\nfoo\r\n",      "*0\r\n",    ":7\r\n", "+QUEUED\r\n",
                                      "*2\r\n:1\r\n:1\r\n", "?what\r\n", ":-1\r\n"};
    node->odd_replies--;
    text = odd[sim_below(&s->random_node, sizeof odd / sizeof odd[0])];
    /* A string is what holds the key, when that is asked. */
    text = request->kind == SIM_COMMAND_INSPECT && text[0] == '$' ? odd[1] : text;
    note.outcome = SIM_OUTCOME_ODD;
    sim_count(s, SIM_INJECTED_GARBAGE);
    if (sim_below(&s->random_node, 4) == 0) {
      sim_note unasked = {
          .token = SIM_NO_TOKEN, .kind = SIM_COMMAND_UNKNOWN, .outcome = SIM_OUTCOME_ODD};
      sim_count(s, SIM_INJECTED_GARBAGE_UNASKED);
      sim_network_reply(s, connection, "*1\r\n+hello\r\n", 12, &unasked);
    }
  }
  sim_mix(s, (uint64_t)note.outcome << 40 | request->token);
  sim_network_reply(s, connection, text, strlen(text), &note);
}

static const char *sim_node_refuses(sim *s, unsigned index, sim_command_kind kind) {
  const sim_node *node = &s->nodes[index];
  sim_node_error error = node->error;
  if (s->now_us < node->loading_until_us) {
    return "-LOADING Redis is loading the dataset in memory\r\n";
  }
  if (s->now_us >= node->error_until_us || error == SIM_NODE_ERROR_NONE ||
      error == SIM_NODE_ERROR_UNKNOWN_SETNAME) {
    return NULL;
  }
  /* Out of memory, scripts that only delete or prolong still run. */
  bool set_only = error == SIM_NODE_ERROR_OOM || error == SIM_NODE_ERROR_NOPERM;
  bool script_only = error == SIM_NODE_ERROR_NOPERM_SCRIPT;
  if ((set_only && kind != SIM_COMMAND_SET) || (script_only && kind == SIM_COMMAND_SET)) {
    return NULL;
  }
  return sim_node_error_texts[error];
}

/* ------------------------------------------------------------------------------------ commands */

static unsigned sim_node_resource(const resp_request *command, unsigned argument) {
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

static void sim_node_write(sim *s, unsigned index, sim_key *key, unsigned resource,
                           const resp_request *command, unsigned value, uint32_t token,
                           uint64_t px_ms) {
  key->used = true;
  key->foreign_type = false;
  key->token = token;
  key->expire_ms = sim_node_wall_ms(s, index) + px_ms;
  key->written_us = s->now_us;
  memcpy(key->value, command->words[value], sizeof key->value);
  if (token < s->token_count) {
    s->tokens[token].forced &= ~(1u << index);
  }
  if (token < s->token_count && (s->tokens[token].released_there >> index & 1) != 0 &&
      (s->tokens[token].orphaned >> index & 1) == 0) {
    s->tokens[token].orphaned |= 1u << index;
    sim_count(s, SIM_ORPHAN);
  }
  if (s->trace != NULL) {
    sim_trace_key(s, index, resource, token, sim_node_dies_us(&s->nodes[index], key));
  }
}

/* SET key token NX PX ttl */
static void sim_node_set(sim *s, int connection, const resp_request *command,
                         const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = command->count >= 3 ? sim_node_resource(command, 1) : SIM_RESOURCES_MAX;
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
  sim_key *held = sim_node_key(s, from->node, from->database, resource);
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
  sim_node_write(s, from->node, &s->nodes[from->node].keys[from->database][resource], resource,
                 command, 2, request->token, px_ms);
  sim_count(s, SIM_SET_GRANTED);
  SIM_TRACE(s, "node %u: SET %u by token %u for %llu ms: OK%s", from->node, resource,
            request->token, (unsigned long long)px_ms,
            from->client_open ? "" : " (on a connection that was given up)");
  sim_node_reply(s, connection, request, "+OK\r\n", SIM_OUTCOME_GRANTED);
}

/* The script named or spelt by argument 1, if it is one of |known|; else SIM_SCRIPT_COUNT. */
static unsigned sim_node_find_script(sim *s, uint32_t known, const resp_request *command,
                                     bool by_text) {
  _Static_assert(SIM_SCRIPT_COUNT <= SIM_SCRIPTS_MAX, "room for the names");
  if (s->script_names[0][0] == '\0') {
    for (unsigned i = 0; i < SIM_SCRIPT_COUNT; i++) {
      sim_sha1(s->script_names[i], sim_scripts[i].text, strlen(sim_scripts[i].text));
    }
  }
  for (unsigned i = 0; i < SIM_SCRIPT_COUNT; i++) {
    if (by_text ? resp_is(command, 1, sim_scripts[i].text)
                : resp_is(command, 1, s->script_names[i]) && (known >> i & 1) != 0) {
      return i;
    }
  }
  return SIM_SCRIPT_COUNT;
}

static unsigned sim_node_script(sim *s, const sim_node *node, const resp_request *command,
                                bool by_text) {
  return sim_node_find_script(s, node->scripts, command, by_text);
}

unsigned sim_node_script_token(const resp_request *command) {
  unsigned first = resp_is(command, 2, "2") ? 5 : 4;
  return command->count == first + 4 ? first + 1
                                     : first; /* It attaches: the handed one comes first. */
}

/* Whether it sets several keys, and minds none that are ours. */
bool sim_node_script_keeps(sim *s, const resp_request *command) {
  unsigned script = sim_node_find_script(s, ~0u, command, resp_is(command, 0, "EVAL"));
  return script < SIM_SCRIPT_COUNT && sim_scripts[script].kind == SIM_COMMAND_SET &&
         sim_scripts[script].several && sim_scripts[script].compares;
}

sim_command_kind sim_node_script_kind(sim *s, const resp_request *command) {
  unsigned script = sim_node_find_script(s, ~0u, command, resp_is(command, 0, "EVAL"));
  if (script < SIM_SCRIPT_COUNT && (sim_scripts[script].several || sim_scripts[script].attaches)) {
    return sim_scripts[script].kind;
  }
  return command->count == 6 ? SIM_COMMAND_EXTEND : SIM_COMMAND_RELEASE;
}

static void sim_node_deleted(sim *s, unsigned index, unsigned resource, uint32_t token) {
  SIM_TRACE(s, "node %u: token %u of %u deleted", index, token, resource);
  if (s->trace != NULL) {
    sim_trace_key(s, index, resource, SIM_NO_TOKEN, s->now_us);
  }
}

/* An operator has deleted the key: whose it was, knows nothing of that. */
static void sim_node_forced(sim *s, unsigned index, uint32_t token) {
  if (token < s->token_count) {
    s->forced++;
    s->tokens[token].forced |= 1u << index;
    sim_client_forced(s, token);
    sim_count(s, SIM_FORCED_KEY);
  }
}

/* Runs the script on its key. Returns the integer that it returns. */
static unsigned sim_node_run(sim *s, const sim_connection *from, const sim_script *script,
                             const resp_request *command, const sim_request *request,
                             unsigned resource) {
  unsigned index = from->node;
  sim_key *slot = &s->nodes[index].keys[from->database][resource];
  sim_key *key = sim_node_key(s, index, from->database, resource);
  uint64_t px_ms = script->kind == SIM_COMMAND_EXTEND ? resp_number(command, 5) : 0;
  bool ours = key != NULL && memcmp(key->value, command->words[4], REDLOCK_TOKEN_LENGTH) == 0;
  if (key == NULL && script->creates) {
    sim_node_write(s, index, slot, resource, command, 4, request->token, px_ms);
    return 1;
  }
  if (key == NULL || (script->compares && !ours)) {
    return 0;
  }
  check_touched(s, from, key, request->token, script->kind);
  if (script->kind == SIM_COMMAND_RELEASE) {
    key->used = false;
    sim_node_deleted(s, index, resource, key->token);
    if (request->forced) {
      sim_node_forced(s, index, key->token);
    }
    return 1;
  }
  uint64_t expire_ms = sim_node_wall_ms(s, index) + px_ms;
  if (script->creates && !script->compares) {
    sim_node_write(s, index, slot, resource, command, 4, request->token, px_ms);
  } else if (script->shortens || expire_ms > key->expire_ms) {
    key->expire_ms = expire_ms;
    key->written_us = s->now_us;
    if (s->trace != NULL) {
      sim_trace_key(s, index, resource, key->token, sim_node_dies_us(&s->nodes[index], key));
    }
  }
  return 1;
}

/* ---------------------------------------------------------------------------- several keys */

static bool sim_node_is_ours(const sim_key *key, const resp_request *command) {
  return key != NULL && !key->foreign_type &&
         memcmp(key->value, command->words[5], REDLOCK_TOKEN_LENGTH) == 0;
}

/* Sets both keys if neither is in the way. Returns 0, or the number of the one that is. */
static unsigned sim_node_set_both(sim *s, const sim_connection *from, const sim_script *script,
                                  const resp_request *command, const sim_request *request) {
  unsigned node = from->node;
  for (unsigned i = 0; i < (script->careless ? 1u : 2u); i++) {
    const sim_key *key = sim_node_key(s, node, from->database, sim_node_resource(command, 3 + i));
    if (key != NULL && !(script->compares && sim_node_is_ours(key, command))) {
      return i + 1;
    }
  }
  for (unsigned i = 0; i < 2; i++) {
    unsigned resource = sim_node_resource(command, 3 + i);
    const sim_key *key = sim_node_key(s, node, from->database, resource);
    if (key != NULL && key->expire_ms >= sim_node_wall_ms(s, node) + resp_number(command, 6)) {
      continue; /* A heal leaves it alone. */
    }
    if (key != NULL) { /* of the same token: it is prolonged */
      check_touched(s, from, key, request->token, SIM_COMMAND_EXTEND);
    }
    sim_node_write(s, node, &s->nodes[node].keys[from->database][resource], resource, command, 5,
                   request->token, resp_number(command, 6));
  }
  return 0;
}

/* Prolongs both keys if both are ours, or deletes those that are. Returns 1 when both were. */
static unsigned sim_node_run_both(sim *s, const sim_connection *from, const sim_script *script,
                                  const resp_request *command, const sim_request *request) {
  unsigned node = from->node, ours = 0;
  sim_key *keys[2];
  for (unsigned i = 0; i < 2; i++) {
    keys[i] = sim_node_key(s, node, from->database, sim_node_resource(command, 3 + i));
    ours += sim_node_is_ours(keys[i], command);
  }
  for (unsigned i = 0; i < 2; i++) {
    uint64_t expire_ms = sim_node_wall_ms(s, node) + resp_number(command, 6);
    if (script->kind == SIM_COMMAND_RELEASE && sim_node_is_ours(keys[i], command)) {
      check_touched(s, from, keys[i], request->token, script->kind);
      keys[i]->used = false;
      sim_node_deleted(s, node, sim_node_resource(command, 3 + i), keys[i]->token);
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
static void sim_node_eval_both(sim *s, int connection, const resp_request *command,
                               const sim_request *request, const sim_script *script) {
  const sim_connection *from = &s->connections[connection];
  unsigned first = sim_node_resource(command, 3), second = sim_node_resource(command, 4);
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
    result = sim_node_set_both(s, from, script, command, request);
    granted = result == 0;
    sim_count(s, granted ? SIM_SET_GRANTED : SIM_SET_TAKEN);
  } else {
    result = sim_node_run_both(s, from, script, command, request);
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

/* Whether the key may be given another token: it has the handed one, and enough is left of it. */
static bool sim_node_may_attach(sim *s, unsigned node, const sim_key *key, const char *handed,
                                const sim_script *script, uint64_t floor_ms) {
  bool ours = key != NULL && memcmp(key->value, handed, REDLOCK_TOKEN_LENGTH) == 0;
  uint64_t wall_ms = sim_node_wall_ms(s, node);
  return key != NULL && (ours || !script->compares) && key->expire_ms > wall_ms + floor_ms;
}

/* EVAL, script, 1 or 2, the keys, the handed token, the fresh one, ttl, floor */
static void sim_node_eval_attach(sim *s, int connection, const resp_request *command,
                                 const sim_request *request, const sim_script *script) {
  const sim_connection *from = &s->connections[connection];
  unsigned value = sim_node_script_token(command), keys = value - 4;
  unsigned resources[SIM_RESOURCES_MAX] = {0, 0};
  const char *reply = ":1\r\n";
  bool understood = command->count == value + 3 && keys >= 1 && keys <= SIM_RESOURCES_MAX &&
                    command->lengths[value] == REDLOCK_TOKEN_LENGTH &&
                    command->lengths[value - 1] == REDLOCK_TOKEN_LENGTH;
  for (unsigned i = 0; i < keys && understood; i++) {
    resources[i] = sim_node_resource(command, 3 + i);
    understood = resources[i] < SIM_RESOURCES_MAX && (i == 0 || resources[0] != resources[1]);
  }
  if (!understood) {
    sim_violation(s, "wire", "a script that attaches, which the node does not understand");
    return;
  }
  for (unsigned i = 0; i < keys && reply[1] == '1'; i++) {
    const sim_key *key = sim_node_key(s, from->node, from->database, resources[i]);
    if (key != NULL && key->foreign_type) {
      reply = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    } else if (!sim_node_may_attach(s, from->node, key, command->words[value - 1], script,
                                    resp_number(command, value + 2))) {
      reply = ":0\r\n";
    }
  }
  for (unsigned i = 0; i < keys && reply[1] == '1'; i++) {
    sim_key *key = sim_node_key(s, from->node, from->database, resources[i]);
    bool keeps = script->shortens; /* It sets the handed token once more. */
    if (memcmp(key->value, command->words[value - 1], REDLOCK_TOKEN_LENGTH) != 0) {
      check_touched(s, from, key, request->token, SIM_COMMAND_SET);
    }
    sim_node_write(s, from->node, key, resources[i], command, keeps ? value - 1 : value,
                   keeps ? key->token : request->token, resp_number(command, value + 1));
  }
  SIM_TRACE(s, "node %u: token %u attaches: %.*s", from->node, request->token,
            (int)strcspn(reply, "\r"), reply);
  sim_node_reply(s, connection, request, reply,
                 reply[1] == '1' ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* EVALSHA or EVAL, script, 1, key, token[, ttl] */
static void sim_node_eval(sim *s, int connection, const resp_request *command,
                          const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  sim_node *node = &s->nodes[from->node];
  unsigned script = sim_node_script(s, node, command, request->by_text);
  unsigned resource = command->count >= 5 ? sim_node_resource(command, 3) : SIM_RESOURCES_MAX;
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
    sim_node_eval_both(s, connection, command, request, &sim_scripts[script]);
    return;
  }
  if (script < SIM_SCRIPT_COUNT && sim_scripts[script].attaches) {
    sim_node_eval_attach(s, connection, command, request, &sim_scripts[script]);
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
  const sim_key *key = sim_node_key(s, from->node, from->database, resource);
  if (key != NULL && key->foreign_type) {
    sim_count(s, SIM_SCRIPT_WRONG_TYPE);
    sim_node_reply(s, connection, request,
                   sim_below(&s->random_node, 2) == 0
                       ? "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
                       : "-ERR Error running script: WRONGTYPE Operation against a key\r\n",
                   SIM_OUTCOME_REFUSED);
    return;
  }
  unsigned result = sim_node_run(s, from, &sim_scripts[script], command, request, resource);
  sim_count(s, result == 1 ? SIM_SCRIPT_GRANTED : SIM_SCRIPT_REFUSED);
  SIM_TRACE(s, "node %u: %s of %u by token %u: %u%s", from->node,
            sim_scripts[script].kind == SIM_COMMAND_RELEASE ? "release" : "extend", resource,
            request->token, result,
            from->client_open ? "" : " (on a connection that was given up)");
  sim_node_reply(s, connection, request, result == 1 ? ":1\r\n" : ":0\r\n",
                 result == 1 ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

/* ------------------------------------------------------------------------------------ operators */

/* EVAL, script, 1, key: what holds it. */
static void sim_node_inspect(sim *s, int connection, const resp_request *command,
                             const sim_request *request) {
  static const char script[] =
      "local t=redis.call('TYPE',KEYS[1])['ok'] if t=='none' then return false end "
      "local a=t..' '..string.format('%.0f',redis.call('PTTL',KEYS[1])) "
      "if t=='string' and redis.call('STRLEN',KEYS[1])<=256 then "
      "a=a..' '..redis.call('GET',KEYS[1]) end return a";
  const sim_connection *from = &s->connections[connection];
  unsigned resource = sim_node_resource(command, 3);
  char answer[128], reply[160];
  sim_request seen = *request;
  if (resource == SIM_RESOURCES_MAX || !resp_is(command, 1, script) || !resp_is(command, 2, "1")) {
    sim_violation(s, "wire", "an inspection that the node does not understand");
    return;
  }
  const sim_key *key = sim_node_key(s, from->node, from->database, resource);
  seen.seen.state = key == NULL         ? REDLOCK_KEY_FREE
                    : key->foreign_type ? REDLOCK_KEY_OTHER
                                        : REDLOCK_KEY_HELD;
  seen.seen.token = SIM_NO_TOKEN;
  if (key == NULL) {
    sim_node_reply(s, connection, &seen, "$-1\r\n", SIM_OUTCOME_GRANTED);
    return;
  }
  uint64_t ttl_ms = key->expire_ms - sim_node_wall_ms(s, from->node);
  int length = snprintf(answer, sizeof answer, key->foreign_type ? "hash %llu" : "string %llu %.*s",
                        (unsigned long long)ttl_ms, REDLOCK_TOKEN_LENGTH, key->value);
  (void)snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", length, answer);
  seen.seen.ttl_us = ttl_ms * 1000;
  seen.seen.token = key->foreign_type ? SIM_NO_TOKEN : sim_tap_token(key->value, sizeof key->value);
  sim_node_reply(s, connection, &seen, reply, SIM_OUTCOME_GRANTED);
}

/* DEL key */
static void sim_node_delete(sim *s, int connection, const resp_request *command,
                            const sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned resource = command->count == 2 ? sim_node_resource(command, 1) : SIM_RESOURCES_MAX;
  if (resource == SIM_RESOURCES_MAX) {
    sim_violation(s, "wire", "a DEL that the node does not understand");
    return;
  }
  sim_key *key = sim_node_key(s, from->node, from->database, resource);
  if (key != NULL) {
    key->used = false;
    sim_node_deleted(s, from->node, resource, key->token);
    sim_node_forced(s, from->node, key->token);
  }
  sim_node_reply(s, connection, request, key != NULL ? ":1\r\n" : ":0\r\n",
                 key != NULL ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_REFUSED);
}

static void sim_node_handshake(sim *s, int connection, const resp_request *command,
                               const sim_request *request) {
  sim_connection *from = &s->connections[connection];
  const sim_node *node = &s->nodes[from->node];
  const char *text = "+OK\r\n";
  if (resp_is(command, 0, "AUTH")) {
    from->authenticated = resp_is(command, command->count - 1, "secret");
    text = from->authenticated ? text : "-WRONGPASS invalid username-password pair\r\n";
  } else if (s->config.passwords && !from->authenticated) {
    text = "-NOAUTH Authentication required.\r\n";
  } else if (s->now_us < node->loading_until_us) {
    text = "-LOADING Redis is loading the dataset in memory\r\n";
  } else if (resp_is(command, 0, "SELECT")) {
    from->database = resp_is(command, 1, "3") ? 1 : 0;
  } else if (s->now_us < node->error_until_us && node->error == SIM_NODE_ERROR_UNKNOWN_SETNAME) {
    text = sim_node_error_texts[node->error];
  }
  if (text[0] == '-') {
    sim_count(s, SIM_HANDSHAKE_REFUSED);
  }
  sim_node_reply(s, connection, request, text,
                 text[0] == '+' ? SIM_OUTCOME_GRANTED : SIM_OUTCOME_ERROR);
}

/* Whether it releases a token of another client's, which has not been handed over. */
static bool sim_node_forces(const sim *s, const sim_connection *from, const sim_request *request) {
  return request->kind == SIM_COMMAND_RELEASE && request->token < s->token_count &&
         s->config.operators != 0 && s->tokens[request->token].client != from->client &&
         !s->tokens[request->token].abandoned;
}

static void sim_node_execute(sim *s, int connection, const resp_request *command) {
  const sim_connection *from = &s->connections[connection];
  sim_request request = {.kind = SIM_COMMAND_HANDSHAKE, .token = SIM_NO_TOKEN};
  if (resp_is(command, 0, "SET")) {
    request.kind = SIM_COMMAND_SET;
    request.token = sim_tap_token(command->words[2], command->lengths[2]);
  } else if (resp_is(command, 0, "DEL")) {
    request.kind = SIM_COMMAND_RELEASE;
  } else if (resp_is(command, 0, "EVAL") && command->count == 4) {
    request.kind = SIM_COMMAND_INSPECT;
  } else if (resp_is(command, 0, "EVAL") || resp_is(command, 0, "EVALSHA")) {
    unsigned token = sim_node_script_token(command);
    request.kind = sim_node_script_kind(s, command);
    request.by_text = command->lengths[0] == 4;
    request.token = command->count > token
                        ? sim_tap_token(command->words[token], command->lengths[token])
                        : SIM_NO_TOKEN;
    request.forced = sim_node_forces(s, from, &request);
  }
  if (request.kind == SIM_COMMAND_HANDSHAKE) {
    sim_node_handshake(s, connection, command, &request);
    return;
  }
  if (!from->client_open || from->replies_lost) {
    sim_count(s, SIM_ZOMBIE_EXECUTED);
  }
  const char *error = sim_node_refuses(s, from->node, request.kind);
  if (s->config.passwords && !from->authenticated) {
    error = "-NOAUTH Authentication required.\r\n";
  }
  if (error != NULL) {
    SIM_TRACE(s, "node %u: token %u: %.*s", from->node, request.token, (int)strcspn(error, "\r"),
              error);
    sim_node_reply(s, connection, &request, error,
                   strncmp(error, "-NO", 3) == 0 && strncmp(error, "-NOREP", 6) != 0
                       ? SIM_OUTCOME_FORBIDDEN
                       : SIM_OUTCOME_DECLINED);
  } else if (resp_is(command, 0, "SET")) {
    sim_node_set(s, connection, command, &request);
  } else if (resp_is(command, 0, "DEL")) {
    sim_node_delete(s, connection, command, &request);
  } else if (request.kind == SIM_COMMAND_INSPECT) {
    sim_node_inspect(s, connection, command, &request);
  } else {
    sim_node_eval(s, connection, command, &request);
  }
}

void sim_node_input(sim *s, int index) {
  sim_connection *connection = &s->connections[index];
  sim_node *node = &s->nodes[connection->node];
  sim_stream *stream = &connection->to_node;
  if (!connection->node_open || s->now_us < node->stopped_until_us || connection->executing) {
    return;
  }
  while (!s->failed) {
    resp_request command;
    long length = resp_read(&command, (const char *)stream->bytes + stream->head,
                            stream->arrived - stream->head);
    if (length == 0) {
      break;
    }
    if (length < 0) {
      sim_violation(s, "wire", "what the core sent is not RESP");
      return;
    }
    sim_node_execute(s, index, &command);
    stream->head += (size_t)length;
    if (s->now_us < node->slow_until_us && stream->head < stream->arrived) {
      connection->executing = true;
      connection->events++;
      sim_queue_add(s, s->now_us + node->service_us, SIM_EVENT_EXECUTE, (unsigned)index, 0, 0);
      break;
    }
  }
  sim_stream_compact(stream);
  sim_network_release(s, index);
}

/* ------------------------------------------------------------------------------ ups and downs */

void sim_node_crash(sim *s, unsigned index, bool empty, uint64_t down_us) {
  sim_node *node = &s->nodes[index];
  node->up = false;
  node->restart_empty = empty;
  node->back_us = s->now_us + down_us;
  node->stopped_until_us = 0;
  node->scripts = 0;
  sim_network_node_died(s, index, sim_below(&s->random_node, 4) == 0);
  sim_queue_add(s, node->back_us, SIM_EVENT_NODE, index, 0, 0);
}

void sim_node_stop(sim *s, unsigned index, uint64_t until_us) {
  s->nodes[index].stopped_until_us = until_us;
  sim_queue_add(s, until_us, SIM_EVENT_NODE, index, 0, 0);
}

static void sim_node_restart(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  node->up = true;
  node->epoch++;
  if (node->restart_empty) {
    memset(node->keys, 0, sizeof node->keys);
  }
  if (s->phase == SIM_PHASE_SAFETY && sim_below(&s->random_node, 2) == 0) {
    sim_count(s, SIM_INJECTED_LOADING);
    node->loading_until_us = s->now_us + sim_below(&s->random_node, 2 * s->config.ttl_max_us);
  }
  sim_trace_fault(s, index, s->now_us, "back%s", node->restart_empty ? ", empty" : "");
}

/* The time has come to be back, or to continue. */
void sim_node_event(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  if (!node->up && s->now_us >= node->back_us) {
    sim_node_restart(s, index);
  }
  if (!node->up || s->now_us < node->stopped_until_us) {
    return;
  }
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    if (s->connections[i].used && s->connections[i].node == index) {
      sim_node_input(s, i);
    }
  }
}
