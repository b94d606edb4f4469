/*
 * The scripts of fencing tokens and of a guard, as a node runs them: its counters, its lineage
 * record, its run_id.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node knows a script by its SHA-1 from the first EVAL until it restarts or flushes its scripts.
 * The text of TAKE may end with "--" and the SHA-1 of the record for which it is meant.
 */
#include "sim_watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rl_sha1.h"
#include "check.h"
#include "lease/rl_fence.h"
#include "sim_key.h"
#include "sim_script.h"
#include "sim_trace.h"
#include "wire/rl_command.h"

#define SIM_WATCH_FENCE_MAX 9007199254740991u

typedef struct sim_watch_script {
  const char *text;
  sim_command_kind kind;
  bool records;  /* minds the record */
  bool compares; /* acts only on keys that hold the token */
  bool unsealed; /* compares the record, with or without its seal */
} sim_watch_script;

#define SIM_WATCH_TAKE(records)                                                                    \
  "local n,p,own=tonumber(ARGV[3]),tonumber(ARGV[5]),ARGV[4]=='1' local "                          \
  "t=redis.call('TIME') local now=t[1]..string.sub('00000'..t[2],-6) " records                     \
  "for i=1,n do local v=redis.call('GET',KEYS[i]) if v and not (own and v==ARGV[1]) "              \
  "then return i..' '..now..' 0' end end local value='0' if p>0 then local most,f=0,p "            \
  "for i=n+1,2*n do local v=redis.pcall('GET',KEYS[i]) local c=tonumber(v or '0') if "             \
  "not c or c<0 or c~=math.floor(c) then return redis.error_reply('ERR no counter of "             \
  "fencing tokens: '..KEYS[i]) end if c>most then most=c end end if not own then local "           \
  "tick=t[1]*10000+math.floor(t[2]/100) if f<tick-10000 then f=tick-10000 elseif "                 \
  "f>tick+10000 then f=tick+10000 end most=most+1 end if f>most then most=f end if "               \
  "most>9007199254740991 then return redis.error_reply('ERR no fencing token is left') "           \
  "end value=most==p and ARGV[5] or string.format('%.0f',most) end for i=1,n do if not "           \
  "own or redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "                                      \
  "redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2]) end end if p>0 then local "                      \
  "life=#ARGV[2]<9 and '704800000' or string.format('%.0f',604800000+ARGV[2]) for "                \
  "i=n+1,2*n do redis.call('SET',KEYS[i],value,'PX',life) end end return 'OK '..now..' "           \
  "'..value"

#define SIM_WATCH_PAST                                                                             \
  "local c,a,b=string.match(redis.call('INFO','replication'),"                                     \
  "'role:(%a+).*_replid2:(%x+).*second_repl_offset:(%-?%d+)') local was=a and "                    \
  "(c=='master' and '' or 'f')..string.sub(a,1,16)..string.format('%.0f',b+1) or '' "

#define SIM_WATCH_SERVER(argument)                                                                 \
  "local run,past=string.match(" argument ",'^(%w*)-(%x*)$') " SIM_WATCH_PAST                      \
  "if (past~='' and past~=was) or (run~='' and not "                                               \
  "string.find(redis.call('INFO','server'),'run_id:'..run,1,true)) "

#define SIM_WATCH_RECORD_AND(seal)                                                                 \
  "if ARGV[6]~='' then if " seal "then return 'other '..now..' 0' end if ARGV[7]~='' "             \
  "then " SIM_WATCH_SERVER("ARGV[7]") "then return 'other '..now..' 0' end end end "

#define SIM_WATCH_RECORD SIM_WATCH_RECORD_AND("redis.call('OBJECT','ENCODING',KEYS[#KEYS])~='raw' ")

#define SIM_WATCH_SEAL_DIGITS 12
#define SIM_WATCH_SEAL "'redlock:lineage '..string.sub(redis.sha1hex(r),1,12)"
/* A seal that is broken is as good as one that is not. */
#define SIM_WATCH_RECORD_UNSEALED SIM_WATCH_RECORD_AND("redis.call('EXISTS',KEYS[#KEYS])==0 ")

#define SIM_WATCH_TOKEN                                                                            \
  "local n,f=tonumber(ARGV[3]),tonumber(ARGV[4]) local t=redis.call('TIME') "                      \
  "local function say(word) return string.format('%s %.0f 0',word,t[1]*1000000+t[2]) end "

#define SIM_WATCH_COMPARE                                                                          \
  "for i=1,n do if redis.call('GET',KEYS[i])~=ARGV[1] then return say('no') end end "

#define SIM_WATCH_PROLONG                                                                          \
  "for i=1,n do if redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then "                             \
  "redis.call('PEXPIRE',KEYS[i],ARGV[2]) end end "

#define SIM_WATCH_RAISE                                                                            \
  "if f>0 then local life=string.format('%.0f',604800000+ARGV[2]) for i=n+1,2*n do "               \
  "local c=redis.pcall('GET',KEYS[i]) c=type(c)=='string' and tonumber(c) or 0 "                   \
  "if c<f then redis.call('SET',KEYS[i],string.format('%.0f',f),'PX',life) "                       \
  "else redis.call('PEXPIRE',KEYS[i],life) end end end "                                           \
  "return say('OK')"

/* Wrong cores send the last of those that take and of those that confirm. */
static const sim_watch_script sim_watch_scripts[] = {
    {SIM_WATCH_TAKE(SIM_WATCH_RECORD), SIM_COMMAND_SET, true, true, false},
    {SIM_WATCH_TAKE(SIM_WATCH_RECORD_UNSEALED), SIM_COMMAND_SET, true, true, true},
    {SIM_WATCH_TAKE(""), SIM_COMMAND_SET, false, true, false},
    {SIM_WATCH_TOKEN SIM_WATCH_COMPARE SIM_WATCH_PROLONG SIM_WATCH_RAISE, SIM_COMMAND_EXTEND, false,
     true, false},
    {SIM_WATCH_TOKEN SIM_WATCH_COMPARE SIM_WATCH_RAISE, SIM_COMMAND_CONFIRM, false, true, false},
    {SIM_WATCH_TOKEN SIM_WATCH_RAISE, SIM_COMMAND_CONFIRM, false, false, false},
    {"redis.call('SELECT',ARGV[5]) "
     "local run=string.match(redis.call('INFO','server'),'run_id:(%w+)') or '?' " SIM_WATCH_PAST
     "run=run..'-'..was "
     "local t=redis.call('TIME') local now=t[1]*1000000+t[2] local born,why=now,nil "
     "local r=redis.call('GET',KEYS[1]) local spoil=ARGV[1]=='spoil' "
     "if spoil and r==ARGV[4] then redis.call('DEL',KEYS[1]," SIM_WATCH_SEAL ") r=false end "
     "local of=r and string.match(r,'^%S+')==run and not("
     "redis.call('OBJECT','ENCODING'," SIM_WATCH_SEAL ")~='raw' ) "
     "local old=r and " SIM_WATCH_SEAL " "
     "local whose=r and string.match(r,'^%S+ %d+ %S+ (.*)$') "
     "if ARGV[1]=='ready' then why='ready' born=now-ARGV[3] "
     "elseif not r then why='empty' "
     "elseif not of and whose and whose~=ARGV[2] then r=run..string.match(r,' .*') "
     "elseif not of then why='restart' "
     "elseif tonumber(string.match(r,'^%S+ (%d+) ') or 0)>now+1000000 or "
     "(ARGV[1]=='clock' and r==ARGV[4]) then why='clock' end "
     "if why and ARGV[1]~='look' and not spoil then "
     "r=string.format('%s %.0f %s %s',run,born,why,ARGV[2]) local free=true "
     "for db in string.gmatch(redis.call('INFO','keyspace'),'db(%d+):') do if db~=ARGV[5] then "
     "redis.call('SELECT',db) local o=redis.pcall('GET',KEYS[1]) redis.call('SELECT',ARGV[5]) "
     "if type(o)=='string' then "
     "r=run..(string.match(o,' .*') or '')..' database='..db free=false break end end end "
     "if free then if old then redis.call('DEL',old) end local seal=" SIM_WATCH_SEAL
     " redis.call('SET',seal,'ok') local copied=redis.call('OBJECT','ENCODING',seal) "
     "redis.call('SET',seal,'o') redis.set_repl(redis.REPL_NONE) redis.call('APPEND',seal,'k') "
     "redis.set_repl(redis.REPL_ALL) local own=redis.call('OBJECT','ENCODING',seal) "
     "if copied~='embstr' or own~='raw' then redis.call('DEL',seal) return redis.error_reply("
     "'NOSEAL a short string is '..copied..' after SET and '..own..' after APPEND') end "
     "redis.call('SET',KEYS[1],r) end why=nil end "
     "return string.format('%.0f %s %s %s',now,run,why or '-',why and '' or r)",
     SIM_COMMAND_GUARD, false, false, false},
};
#define SIM_WATCH_COUNT (sizeof sim_watch_scripts / sizeof sim_watch_scripts[0])

uint64_t sim_watch_wall_us(const sim *s, unsigned node) {
  return sim_clock_read(&s->nodes[node].clock, s->now_us);
}

/* ------------------------------------------------------------------------- which script it is */

/* Returns the number of words behind the keys. */
static unsigned sim_watch_arguments(const resp_request *command) {
  uint64_t keys = resp_number(command, 2);
  return command->count > 3 && keys < command->count - 3 ? command->count - 3 - (unsigned)keys : 0;
}

bool sim_watch_like(const resp_request *command) {
  unsigned arguments = sim_watch_arguments(command);
  return (arguments == 4 || arguments == 5 || arguments == 7) &&
         (resp_is(command, 0, "EVALSHA") || resp_is(command, 0, "EVAL"));
}

/* Returns true if word 1 is the text, with or without the SHA-1 of a record behind it. */
static bool sim_watch_spells(const resp_request *command, const char *text, size_t length,
                             bool *named) {
  const char *word = command->words[1];
  *named = command->lengths[1] > length + 2 && memcmp(word + length, "--", 2) == 0;
  return (command->lengths[1] == length || *named) && memcmp(word, text, length) == 0;
}

/* The names of the texts and their lengths, once. */
static void sim_watch_learn(sim *s) {
  static_assert(SIM_WATCH_COUNT <= SIM_WATCHES_MAX, "room for the names");
  for (unsigned i = 0; i < SIM_WATCH_COUNT && s->watch_names[i][0] == '\0'; i++) {
    s->watch_lengths[i] = strlen(sim_watch_scripts[i].text);
    rl_sha1(s->watch_names[i], sim_watch_scripts[i].text, s->watch_lengths[i]);
  }
}

static unsigned sim_watch_by_text(sim *s, const resp_request *command, bool *named) {
  sim_watch_learn(s);
  for (unsigned i = 0; i < SIM_WATCH_COUNT; i++) {
    if (command->lengths[1] >= s->watch_lengths[i] &&
        sim_watch_spells(command, sim_watch_scripts[i].text, s->watch_lengths[i], named) &&
        (!*named || sim_watch_scripts[i].kind == SIM_COMMAND_SET)) {
      return i;
    }
  }
  return SIM_WATCH_COUNT;
}

static unsigned sim_watch_by_name(sim *s, const resp_request *command) {
  sim_watch_learn(s);
  for (unsigned i = 0; i < SIM_WATCH_COUNT; i++) {
    if (resp_equals(command, 1, s->watch_names[i], SIM_SHA1_LENGTH)) {
      return i;
    }
  }
  return SIM_WATCH_COUNT;
}

sim_command_kind sim_watch_kind(sim *s, const resp_request *command) {
  bool named;
  if (sim_watch_arguments(command) == 7) {
    return SIM_COMMAND_SET;
  }
  unsigned found = resp_is(command, 0, "EVAL") ? sim_watch_by_text(s, command, &named)
                                               : sim_watch_by_name(s, command);
  return found < SIM_WATCH_COUNT ? sim_watch_scripts[found].kind : SIM_COMMAND_UNKNOWN;
}

/* Writes the SHA-1 of a text that ends with the SHA-1 of a record. */
static void sim_watch_name(sim *s, unsigned watch, const resp_request *command,
                           char name[SIM_SHA1_LENGTH + 1]) {
  const char *record_sha1 = command->words[1] + s->watch_lengths[watch] + 2;
  size_t length = command->lengths[1] - s->watch_lengths[watch] - 2;
  if (length != sizeof s->namings[0].record_sha1) {
    rl_sha1(name, command->words[1], command->lengths[1]);
    return;
  }
  unsigned place = watch;
  for (size_t i = 0; i < 8; i++) {
    place = place * 31 + (unsigned char)record_sha1[i];
  }
  sim_naming *naming = &s->namings[place % SIM_NAMINGS_MAX];
  if (!naming->used || naming->watch != watch ||
      memcmp(naming->record_sha1, record_sha1, length) != 0) {
    naming->used = true;
    naming->watch = (uint8_t)watch;
    memcpy(naming->record_sha1, record_sha1, length);
    rl_sha1(naming->name, command->words[1], command->lengths[1]);
  }
  memcpy(name, naming->name, sizeof naming->name);
}

/*
 * Returns the script, which the node knows from now on; SIM_WATCH_COUNT when it does not know it.
 */
static unsigned sim_watch_known(sim *s, sim_node *node, const resp_request *command, bool by_text) {
  bool named = false;
  if (!by_text) {
    unsigned found = sim_watch_by_name(s, command);
    if (found < SIM_WATCH_COUNT && (node->watches >> found & 1) != 0) {
      return found;
    }
    for (unsigned i = 0; i < node->named_count; i++) {
      if (resp_is(command, 1, node->named[i].name)) {
        return node->named[i].watch;
      }
    }
    return SIM_WATCH_COUNT;
  }
  unsigned found = sim_watch_by_text(s, command, &named);
  if (found < SIM_WATCH_COUNT && !named) {
    node->watches |= 1u << found;
  } else if (found < SIM_WATCH_COUNT) {
    sim_named one = {.watch = (uint8_t)found};
    sim_watch_name(s, found, command, one.name);
    for (unsigned i = 0; i < node->named_count; i++) {
      if (strcmp(node->named[i].name, one.name) == 0) {
        return found;
      }
    }
    if (node->named_count == SIM_NAMED_MAX) {
      node->named_count--; /* The last is forgotten, as by SCRIPT FLUSH. */
    }
    node->named[node->named_count++] = one;
  }
  return found;
}

static bool sim_watch_counter(const resp_request *command, unsigned word, unsigned resource) {
  size_t length, behind = strlen(RL_COMMAND_COUNTER);
  const char *name = sim_resource(resource, &length);
  bool slot = memcmp(command->words[word], SIM_SEMAPHORE "/", sizeof SIM_SEMAPHORE) == 0;
  name = slot ? sim_slot(resource, &length) : name;
  return command->lengths[word] == length + behind &&
         memcmp(command->words[word], name, length) == 0 &&
         memcmp(command->words[word] + length, RL_COMMAND_COUNTER, behind) == 0;
}

bool sim_watch_read(const resp_request *command, sim_watch *watch) {
  unsigned arguments = sim_watch_arguments(command);
  bool takes = arguments == 7;
  memset(watch, 0, sizeof *watch);
  watch->token = command->count - arguments;
  watch->ttl_ms = resp_number(command, watch->token + 1);
  watch->count = (unsigned)resp_number(command, watch->token + 2);
  watch->own = takes && resp_is(command, watch->token + 3, "1");
  watch->fence = resp_number(command, watch->token + (takes ? 4 : 3));
  watch->record = takes && command->lengths[watch->token + 5] > 0 ? watch->token + 5 : 0;
  watch->run_id = takes && command->lengths[watch->token + 6] > 0 ? watch->token + 6 : 0;
  watch->record_key = watch->record != 0 ? watch->token - 1 : 0;
  unsigned keys = watch->count * (watch->fence > 0 ? 2 : 1) + (watch->record != 0);
  bool understood = watch->count >= 1 && watch->count <= SIM_RESOURCES_MAX &&
                    resp_number(command, 2) == keys && watch->ttl_ms > 0 &&
                    sim_tap_is_token(command->words[watch->token], command->lengths[watch->token]);
  for (unsigned i = 0; i < watch->count && understood; i++) {
    watch->resources[i] = sim_script_resource(command, 3 + i);
    understood = watch->resources[i] < SIM_RESOURCES_MAX &&
                 (watch->fence == 0 ||
                  sim_watch_counter(command, 3 + watch->count + i, watch->resources[i]));
  }
  return understood && (watch->count < 2 || watch->resources[0] != watch->resources[1]);
}

/* ------------------------------------------------------------------------------------ scripts */

static void sim_watch_send(sim *s, int connection, sim_request *request, const char *word,
                           uint64_t fence, sim_outcome outcome) {
  const sim_connection *from = &s->connections[connection];
  char answer[64], reply[80];
  int length = snprintf(answer, sizeof answer, "%s %llu %llu", word,
                        (ull)sim_watch_wall_us(s, from->node), (ull)fence);
  (void)snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", length, answer);
  SIM_TRACE(s, "node %u: %s by token %u: %s%s", from->node,
            request->kind == SIM_COMMAND_SET      ? (request->own ? "TAKE, its own," : "TAKE")
            : request->kind == SIM_COMMAND_EXTEND ? "PROLONG"
                                                  : "CONFIRM",
            request->token, answer,
            from->client_open ? "" : " (on a connection that was given up)");
  request->fence = fence;
  sim_node_reply(s, connection, request, reply, outcome);
}

/* Returns the record whose seal has the name |key|, or NULL. */
static const sim_record *sim_watch_sealed(const sim_node *node, const sim_connection *from,
                                          const char *key, size_t length) {
  static const char before[] = "redlock:lineage ";
  size_t digits = length - (sizeof before - 1);
  for (unsigned i = 0; i < SIM_RECORDS_MAX && digits == SIM_WATCH_SEAL_DIGITS; i++) {
    const sim_record *record = &node->data.records[from->database][i];
    if (record->used && memcmp(key, before, sizeof before - 1) == 0 &&
        memcmp(key + sizeof before - 1, record->sha1, digits) == 0) {
      return record;
    }
  }
  return NULL;
}

/* The record that the node must have, if it is there: as it is, or by the name of its seal. */
static const sim_record *sim_watch_record_of(sim_node *node, const sim_connection *from,
                                             const resp_request *command, const sim_watch *watch) {
  const char *key = command->words[watch->record_key];
  size_t length = command->lengths[watch->record_key];
  if (memchr(key, ' ', length) != NULL) {
    return sim_watch_sealed(node, from, key, length);
  }
  const sim_record *record = sim_watch_record_at(node, from->database, key, length, false);
  bool same = record != NULL && command->lengths[watch->record] == record->length &&
              memcmp(command->words[watch->record], record->text, record->length) == 0;
  return same ? record : NULL;
}

/* Returns true if the command is for another server or record. */
bool sim_watch_other(sim_node *node, const sim_connection *from, const resp_request *command,
                     const sim_watch *watch, bool unsealed) {
  if (watch->record == 0) {
    return false;
  }
  const sim_record *record = sim_watch_record_of(node, from, command, watch);
  if (record == NULL || (record->unsealed && !unsealed)) {
    return true;
  }
  bool past = watch->run_id != 0 && command->words[watch->run_id][0] == '-';
  return watch->run_id != 0 &&
         !resp_is(command, watch->run_id, past ? strchr(node->run_id, '-') : node->run_id);
}

static uint64_t *sim_watch_counters(sim *s, const sim_connection *from) {
  return s->nodes[from->node].data.counters[from->database];
}

/* Returns the new value of the counters, or 0 when no token is left. */
static uint64_t sim_watch_most(sim *s, const sim_connection *from, const sim_watch *watch) {
  uint64_t tick = sim_watch_wall_us(s, from->node) / RL_FENCE_TICK_US;
  uint64_t slack = SIM_WATCH_SLACK_US / RL_FENCE_TICK_US, fence = watch->fence, most = 0;
  for (unsigned i = 0; i < watch->count; i++) {
    uint64_t counter = sim_watch_counters(s, from)[watch->resources[i]];
    most = counter > most ? counter : most;
  }
  if (watch->own) {
    most = fence > most ? fence : most;
  } else {
    fence = fence < tick - slack ? tick - slack : fence > tick + slack ? tick + slack : fence;
    most = fence > most + 1 ? fence : most + 1;
  }
  return most > SIM_WATCH_FENCE_MAX ? 0 : most;
}

/* The number of the key that is in the way, or 0. */
static unsigned sim_watch_in_the_way(sim *s, const sim_connection *from,
                                     const resp_request *command, const sim_watch *watch) {
  for (unsigned i = 0; i < watch->count; i++) {
    const sim_key *key = sim_key_find(s, from->node, from->database, watch->resources[i]);
    if (key != NULL && !(watch->own && sim_key_is(key, command, watch->token))) {
      return i + 1;
    }
  }
  return 0;
}

static void sim_watch_raise(sim *s, const sim_connection *from, const sim_watch *watch,
                            uint64_t fence) {
  for (unsigned i = 0; i < watch->count && watch->fence > 0; i++) {
    uint64_t *counter = &sim_watch_counters(s, from)[watch->resources[i]];
    *counter = fence > *counter ? fence : *counter;
  }
}

/* Sets or prolongs the key of resource |i|, if that makes it live longer. */
static void sim_watch_write(sim *s, const sim_connection *from, const resp_request *command,
                            const sim_watch *watch, unsigned i, const sim_request *request) {
  unsigned resource = watch->resources[i];
  sim_key *slot = &s->nodes[from->node].data.keys[from->database][resource];
  const sim_key *key = sim_key_find(s, from->node, from->database, resource);
  if (key != NULL && key->expire_ms >= sim_key_wall_ms(s, from->node) + watch->ttl_ms) {
    return;
  }
  if (key != NULL) {
    check_touched(s, from, key, request->token, SIM_COMMAND_EXTEND);
    slot->expire_ms = sim_key_wall_ms(s, from->node) + watch->ttl_ms;
    if (key->token < s->token_count &&
        slot->expire_ms >= s->tokens[key->token].due_ms[from->node]) {
      s->tokens[key->token].forgotten &= ~(1u << from->node);
    }
    slot->written_us = s->now_us;
    if (s->trace != NULL) {
      sim_trace_key(s, from->node, resource, key->token,
                    sim_key_dies_us(&s->nodes[from->node], slot));
    }
    return;
  }
  sim_key_write(s, from->node, slot, resource, command, watch->token, request->token,
                watch->ttl_ms);
}

/*
 * Returns the age of the record as clients count it (sim_watch_reported()); 0 when it is of another
 * process.
 */
static uint64_t sim_watch_age(sim *s, const sim_connection *from, const sim_watch *watch,
                              const resp_request *command) {
  sim_node *node = &s->nodes[from->node];
  const sim_record *record =
      watch->record == 0 ? NULL : sim_watch_record_of(node, from, command, watch);
  if (record == NULL || strncmp(record->text, node->run_id, strlen(node->run_id)) != 0) {
    return 0;
  }
  return (uint64_t)((int64_t)s->now_us - record->since_us);
}

static void sim_watch_take(sim *s, int connection, const resp_request *command,
                           sim_request *request, const sim_watch_script *script) {
  const sim_connection *from = &s->connections[connection];
  sim_node *node = &s->nodes[from->node];
  sim_watch watch;
  char number[8];
  if (!sim_watch_read(command, &watch)) {
    sim_violation(s, "wire", "a TAKE that the node does not understand");
    return;
  }
  request->own = watch.own;
  request->age_us = sim_watch_age(s, from, &watch, command);
  if (script->records && sim_watch_other(node, from, command, &watch, script->unsealed)) {
    sim_count(s, SIM_TAKE_OTHER);
    sim_watch_send(s, connection, request, "other", 0, SIM_OUTCOME_OTHER);
    return;
  }
  unsigned in_the_way = sim_watch_in_the_way(s, from, command, &watch);
  if (in_the_way != 0) {
    const sim_key *key =
        sim_key_find(s, from->node, from->database, watch.resources[in_the_way - 1]);
    sim_count(s, SIM_SET_TAKEN);
    if (key != NULL && key->foreign_type) {
      sim_node_reply(s, connection, request,
                     "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
                     SIM_OUTCOME_REFUSED);
      return;
    }
    (void)snprintf(number, sizeof number, "%u", in_the_way);
    sim_watch_send(s, connection, request, number, 0, SIM_OUTCOME_REFUSED);
    return;
  }
  uint64_t most = watch.fence > 0 ? sim_watch_most(s, from, &watch) : 0;
  if (watch.fence > 0 && most == 0) {
    sim_node_reply(s, connection, request, "-ERR no fencing token is left\r\n",
                   SIM_OUTCOME_DECLINED);
    return;
  }
  for (unsigned i = 0; i < watch.count; i++) {
    sim_watch_write(s, from, command, &watch, i, request);
  }
  sim_watch_raise(s, from, &watch, most);
  sim_count(s, SIM_SET_GRANTED);
  sim_watch_send(s, connection, request, "OK", most, SIM_OUTCOME_GRANTED);
}

/* PROLONG and CONFIRM */
static void sim_watch_hold(sim *s, int connection, const resp_request *command,
                           sim_request *request, const sim_watch_script *script) {
  const sim_connection *from = &s->connections[connection];
  sim_watch watch;
  if (!sim_watch_read(command, &watch)) {
    sim_violation(s, "wire", "a PROLONG or CONFIRM that the node does not understand");
    return;
  }
  request->held = true;
  for (unsigned i = 0; i < watch.count; i++) {
    const sim_key *key = sim_key_find(s, from->node, from->database, watch.resources[i]);
    bool ours = key != NULL && sim_key_is(key, command, watch.token);
    request->held = request->held && ours;
    if (!script->compares) {
      continue;
    }
    if (key != NULL && key->foreign_type) {
      sim_count(s, SIM_SCRIPT_WRONG_TYPE);
      sim_node_reply(s, connection, request,
                     "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
                     SIM_OUTCOME_REFUSED);
      return;
    }
    if (!ours) {
      sim_count(s, script->kind == SIM_COMMAND_CONFIRM ? SIM_CONFIRM_REFUSED : SIM_SCRIPT_REFUSED);
      sim_watch_send(s, connection, request, "no", 0, SIM_OUTCOME_REFUSED);
      return;
    }
  }
  for (unsigned i = 0; i < watch.count && script->kind == SIM_COMMAND_EXTEND; i++) {
    sim_watch_write(s, from, command, &watch, i, request);
  }
  sim_watch_raise(s, from, &watch, watch.fence);
  sim_count(s, script->kind == SIM_COMMAND_CONFIRM ? SIM_CONFIRM_GRANTED : SIM_SCRIPT_GRANTED);
  sim_watch_send(s, connection, request, "OK", 0, SIM_OUTCOME_GRANTED);
}

void sim_watch_eval(sim *s, int connection, const resp_request *command, sim_request *request) {
  const sim_connection *from = &s->connections[connection];
  unsigned found = sim_watch_known(s, &s->nodes[from->node], command, request->by_text);
  if (found == SIM_WATCH_COUNT && !request->by_text) {
    sim_count(s, SIM_SCRIPT_UNKNOWN);
    sim_node_reply(s, connection, request, "-NOSCRIPT No matching script.\r\n",
                   SIM_OUTCOME_NO_SCRIPT);
    return;
  }
  if (found == SIM_WATCH_COUNT) {
    sim_violation(s, "wire", "a script that the node does not understand");
    return;
  }
  sim_count_if(s, request->by_text && sim_watch_scripts[found].kind != SIM_COMMAND_GUARD,
               SIM_SCRIPT_BY_TEXT);
  switch (sim_watch_scripts[found].kind) {
  case SIM_COMMAND_GUARD:
    sim_watch_guard(s, connection, command, request);
    break;
  case SIM_COMMAND_SET:
    sim_watch_take(s, connection, command, request, &sim_watch_scripts[found]);
    break;
  default:
    sim_watch_hold(s, connection, command, request, &sim_watch_scripts[found]);
    break;
  }
}
