/*
 * The doctor: asks every node for all that rl_finding.c judges.
 *
 * SPDX-License-Identifier: MIT
 *
 *   DOC-1. A probe goes first: a script by a name that no node knows. The time of its answer is the
 *          round trip. It also shows the right to run scripts by their names. The client awaits
 *          this answer before it searches keys. Otherwise a server that reads both commands at once
 *          answers the probe only after the search.
 *   DOC-2. The examination is one script. It asks for the role, the settings and the clock. It
 *          tries each command that a lock or an inspection needs under a key that does not exist,
 *          so it changes nothing. Of commands that would change something it asks the ACL. The key
 *          is the lock's key with a suffix, so that the ACL of the lock's keys applies. Of the
 *          lock's own key the script asks only if it exists. It searches keys only on demand. A
 *          node that knows no scripts is asked for its role: a Sentinel looks like a server whose
 *          commands were renamed.
 *   DOC-3. The time limit is 1 s, or node_timeout if that is longer. So slow nodes are not reported
 *          as down.
 *   DOC-4. The operation succeeds if a majority has answered.
 *   DOC-5. The answers are kept as they came: any of them may be missing, or a lie. Only the
 *          password is masked.
 */
#include "operator/rl_doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/rl_printable.h"
#include "lock/rl_round.h"
#include "node/rl_guard.h"
#include "operator/rl_ask.h"
#include "wait/rl_subscriber.h"

#define RL_DOCTOR_TIMEOUT_US REDLOCK_SECONDS

/* The commands. */
typedef enum rl_doctor_step { RL_DOCTOR_PROBE, RL_DOCTOR_EXAMINE, RL_DOCTOR_ROLE } rl_doctor_step;

/*
 * Answers one string of "name=value" and spaces. No value has a space but that of "said", the last:
 *
 *   set get pttl pexpire exists del type strlen mget publish object time info scan   why the node
 *     refused it: "command", "key" (or a channel), or "unknown" for a command that it does not know
 *
 *   append subscribe ping setname setinfo delifeq delex   "command" if the user may not run it, by
 *     redis.acl_check_cmd(), which older servers than Redis 7 lack; they do not try it
 *
 *   version valkey run_id role read_only master port replicas good maxmemory policy aof aof_write
 *   rdb_save cluster   these lines of INFO; "good" is there with min-replicas-to-write only
 *
 *   own, now   1 if the user may read the lock's own key; the node's clock in microseconds
 *
 *   keys   number of strings without expiry that look like the token of a lock; "key" is one of
 *     them, and "more" is 1 if the search did not reach all keys
 *
 *   said   the first other error
 *
 * Commands that write come first, because old servers need it.
 */
static const char rl_doctor_script[] =
    "local k,h,a,seen,said,no=ARGV[1],'" RL_COMMAND_CHANNEL "doctor',{},{},nil,nil "
    "local function add(n,v) if not seen[n] then seen[n]=true "
    "a[#a+1]=n..'='..string.gsub(string.sub(v,1,64),'[^%w%.:_/-]','_') end end "
    "local function try(n,...) local r=redis.pcall(...) "
    "if type(r)~='table' or not r['err'] then return r end "
    "local e=string.gsub(r['err'],'^@user_script:%s*%d+: %-?','') "
    "if string.find(e,'permissions to access') or string.find(e,'can.t access') or "
    "string.find(e,'can.t publish') then no=true add(n,'key') "
    "elseif string.find(e,'permission') or string.find(e,'can.t run') then add(n,'command') "
    "elseif string.find(e,'nknown[%a ]* command') then add(n,'unknown') "
    "else said=said or e end end "
    "local function ask(n,...) local known,may=pcall(redis.acl_check_cmd,...) "
    "if known and not may then add(n,'command') end end "
    "try('set','SET',k,'1','XX','PX','1') try('pexpire','PEXPIRE',k,'1') try('del','DEL',k) "
    "try('get','GET',k) try('pttl','PTTL',k) try('exists','EXISTS',k) "
    "try('type','TYPE',k) try('strlen','STRLEN',k) "
    "try('mget','MGET',k) try('object','OBJECT','ENCODING',k) "
    "if not no then ask('append','APPEND',k,'') ask('delifeq','DELIFEQ',k,'1') "
    "ask('delex','DELEX',k) end "
    "no=nil try('publish','PUBLISH',h,'') if not no then ask('subscribe','SUBSCRIBE',h) end "
    "ask('ping','PING') ask('setname','CLIENT','SETNAME','1') "
    "ask('setinfo','CLIENT','SETINFO','LIB-NAME','1') "
    "if try('own','EXISTS',(string.gsub(k,':redlock%-doctor:%x+$',''))) then add('own','1') end "
    "local t=try('time','TIME') "
    "if t then add('now',string.format('%.0f',t[1]*1000000+t[2])) end "
    "local i=try('info','INFO') "
    "if i then for n,f in string.gmatch('version:redis_version valkey:valkey_version "
    "run_id:run_id role:role read_only:slave_read_only master:master_host port:master_port "
    "replicas:connected_slaves good:min_slaves_good_slaves "
    "maxmemory:maxmemory policy:maxmemory_policy aof:aof_enabled "
    "aof_write:aof_last_write_status rdb_save:rdb_last_bgsave_status "
    "cluster:cluster_enabled','([%w_]+):([%w_]+)') do "
    "local v=string.match(i,'\\n'..f..':([^\\r\\n]*)') if v then add(n,v) end end end "
    "if ARGV[2]=='1' then local c,n,turns,near,one='0',0,0,0,nil "
    "local p=string.gsub(ARGV[3],'[%*%?%[%]\\\\^]','\\\\%0')..'*' "
    "repeat local r=try('scan','SCAN',c,'MATCH',p,'COUNT','500') if not r then break end "
    "c=r[1] turns=turns+1 "
    "near=near+#r[2] for _,x in ipairs(r[2]) do if redis.pcall('PTTL',x)==-1 then "
    "local l=try('scan','STRLEN',x) if type(l)=='number' and l>=16 and l<=64 then "
    "local v=redis.pcall('GET',x) "
    "if type(v)=='string' and string.find(v,'^[%w_+/=-]+$') and string.find(v,'%a') then "
    "n=n+1 one=one or x end end end end until c=='0' or turns==20 or near>=2000 "
    "add('keys',tostring(n)) if c~='0' then add('more','1') end if one then add('key',one) end end "
    "if said then a[#a+1]='said='..said end return string.sub(table.concat(a,' '),1,500)";

static rl_doctor *rl_doctor_find(const rl_lock *lock) {
  return rl_ask_answers(lock, RL_OPERATION_DOCTOR);
}

const rl_doctor *rl_doctor_of(const rl_lock *lock) {
  const rl_doctor *doctor = rl_doctor_find(lock);
  return doctor == NULL || !doctor->done ? NULL : doctor;
}

static const char *rl_doctor_wrong(const rl_lock *lock, const rl_question *question) {
  (void)lock;
  return (question->flags & ~REDLOCK_DOCTOR_KEYS) != 0 ? "the flags are 0 or REDLOCK_DOCTOR_KEYS"
                                                       : NULL;
}

/* Notes what the client knows without asking. */
static void rl_doctor_prepare(rl_lock *lock, redlock_time now_us, const rl_question *question) {
  rl_doctor *doctor = rl_doctor_find(lock);
  const rl_core *core = lock->core;
  const rl_options *options = rl_lock_options(lock);
  uint64_t number = core->random ^ (now_us * UINT64_C(0x9e3779b97f4a7c15));
  doctor->count = core->node_count;
  doctor->keys = (question->flags & REDLOCK_DOCTOR_KEYS) != 0;
  doctor->guard = core->guards != NULL;
  doctor->fence = options->fence == REDLOCK_YES;
  doctor->permits = options->permits > 1;
  doctor->notify = core->notify != NULL && core->node_count <= RL_NOTIFY_NODES_MAX;
  if (core->guards != NULL) {
    doctor->quarantine_us = core->guards->quarantine_us;
    doctor->spare_us =
        rl_time_sub(core->guards->max_ttl_us, rl_time_add(options->ttl_us, options->lock_delay_us));
  }
  doctor->ttl_us = options->ttl_us;
  doctor->node_timeout_us = rl_options_node_timeout(options, options->ttl_us);
  doctor->key = lock->resource->key;
  doctor->key_length = lock->resource->key_length;
  doctor->prefix = core->prefix;
  doctor->prefix_length = core->prefix_length;
  (void)snprintf(doctor->suffix, sizeof doctor->suffix, ":redlock-doctor:%016llx",
                 (unsigned long long)number);
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_address *address = &core->nodes[i]->address;
    rl_doctor_node *node = &doctor->nodes[i];
    node->name = address->name;
    node->username = address->has_username ? address->username : NULL;
    node->db = address->db;
    node->round_trip_us = REDLOCK_NEVER;
    node->certificate_us = REDLOCK_NEVER;
  }
}

/* DOC-3 */
static redlock_duration rl_doctor_timeout(const rl_lock *lock) {
  return rl_time_max(rl_doctor_find(lock)->node_timeout_us, RL_DOCTOR_TIMEOUT_US);
}

/* DOC-2 */
static const char *rl_doctor_examine(const rl_lock *lock, redlock_time now_us, rl_node *node) {
  const rl_doctor *doctor = rl_doctor_find(lock);
  size_t suffix_length = strlen(doctor->suffix);
  char key[REDLOCK_KEY_MAX + sizeof doctor->suffix];
  memcpy(key, doctor->key, doctor->key_length);
  memcpy(key + doctor->key_length, doctor->suffix, suffix_length);
  const rl_command_bytes arguments[] = {
      rl_command_word("EVAL"),
      rl_command_word(rl_doctor_script),
      rl_command_word("0"),
      {key, doctor->key_length + suffix_length},
      rl_command_word(doctor->keys ? "1" : "0"),
      {doctor->prefix_length > 0 ? doctor->prefix : "", doctor->prefix_length}};
  return rl_ask_send(lock, now_us, node, RL_DOCTOR_EXAMINE, arguments, 6);
}

/* DOC-1 */
static const char *rl_doctor_send(rl_lock *lock, redlock_time now_us, rl_node *node) {
  const rl_command_bytes probe[] = {rl_command_word("EVALSHA"),
                                    rl_command_word("0000000000000000000000000000000000000000"),
                                    rl_command_word("0")};
  const char *unsent = rl_ask_send(lock, now_us, node, RL_DOCTOR_PROBE, probe, 3);
  return unsent != NULL || rl_doctor_find(lock)->keys ? unsent
                                                      : rl_doctor_examine(lock, now_us, node);
}

/* DOC-5. The node read its clock between the command and the answer. */
static void rl_doctor_read_clock(rl_doctor_node *node, redlock_time now_us,
                                 redlock_duration took_us) {
  uint64_t clock_us;
  if (rl_doctor_node_number(node, "now", &clock_us)) {
    node->has_clock = true;
    node->clock_us = (now_us - took_us / 2) - clock_us;
    node->clock_error_us = took_us;
  }
}

/* DOC-5. A shorter password occurs in any text, which reveals nothing. */
#define RL_DOCTOR_PASSWORD_MIN 4

static void rl_doctor_mask(char *said, const char *bytes, size_t length,
                           const rl_address *address) {
  size_t secret = address->has_password ? address->password_length : 0;
  for (size_t at = 0; secret >= RL_DOCTOR_PASSWORD_MIN && at + secret <= length; at++) {
    if (memcmp(bytes + at, address->password, secret) == 0) {
      memset(said + at, '*', secret);
    }
  }
}

static bool rl_doctor_is_unknown(const rl_reply *reply) {
  return reply->type == RL_REPLY_ERROR && strncmp(reply->text, "ERR unknown command", 19) == 0;
}

/* DOC-1. Returns true if the examination cannot follow. */
static bool rl_doctor_note_probe(const rl_lock *lock, redlock_time now_us, rl_answer *answer,
                                 rl_doctor_node *node) {
  const rl_reply *reply = &answer->node->link.reader.reply;
  node->round_trip_us = rl_time_sub(now_us, answer->command->sent_us);
  node->no_evalsha = reply->type == RL_REPLY_ERROR && strncmp(reply->text, "NOPERM", 6) == 0;
  node->unknown_evalsha = rl_doctor_is_unknown(reply);
  answer->reason =
      rl_doctor_find(lock)->keys ? rl_doctor_examine(lock, now_us, answer->node) : NULL;
  return answer->reason != NULL;
}

/* DOC-2. Returns true if the node was asked for its role. */
static bool rl_doctor_ask_role(const rl_lock *lock, redlock_time now_us, rl_answer *answer,
                               rl_doctor_node *node) {
  const rl_command_bytes role[] = {rl_command_word("ROLE")};
  if (!node->unknown_evalsha || !rl_doctor_is_unknown(&answer->node->link.reader.reply)) {
    return false;
  }
  (void)snprintf(node->said, sizeof node->said, "%s", answer->reason);
  return rl_ask_send(lock, now_us, answer->node, RL_DOCTOR_ROLE, role, 1) == NULL;
}

static bool rl_doctor_note(rl_core *core, redlock_time now_us, rl_answer *answer) {
  const rl_reply *reply = &answer->node->link.reader.reply;
  rl_doctor_step step = (rl_doctor_step)answer->command->step;
  bool awaited = rl_ask_awaits(answer->command);
  const rl_lock *lock = answer->command->attempt->lock;
  rl_doctor_node *node = awaited ? &rl_doctor_find(lock)->nodes[answer->node->index] : NULL;
  (void)core;
  if (step == RL_DOCTOR_ROLE) { /* The examination has failed: no reply is a vote. */
    answer->verdict = (rl_verdict){.vote = REDLOCK_VOTE_ERROR};
  } else if (reply->type != RL_REPLY_STRING && reply->type != RL_REPLY_ERROR) {
    answer->verdict = rl_verdict_unreadable();
  }
  if (!awaited) {
    return step != RL_DOCTOR_PROBE;
  }
  node->login_supplied = answer->node->link.login_supplied;
  if (step == RL_DOCTOR_PROBE) {
    return rl_doctor_note_probe(lock, now_us, answer, node);
  }
  if (step == RL_DOCTOR_ROLE) {
    node->sentinel = strcmp(reply->word, "sentinel") == 0;
    answer->reason = node->said;
    return true;
  }
  if (rl_doctor_ask_role(lock, now_us, answer, node)) {
    return false;
  }
  if (reply->type == RL_REPLY_STRING) {
    node->answered = true;
    rl_printable_copy(node->said, sizeof node->said, reply->bytes, reply->length, ' ');
    rl_doctor_mask(node->said, reply->bytes, reply->length, &answer->node->address);
    rl_doctor_read_clock(node, now_us, rl_time_sub(now_us, answer->command->sent_us));
  }
  return true;
}

/* Notes what the client knows of a node whether it has answered or not. */
static void rl_doctor_conclude(rl_lock *lock, redlock_time now_us, unsigned index) {
  const rl_node *node = lock->core->nodes[index];
  const rl_guard *guard = node->link.guard;
  rl_doctor_node *known = &rl_doctor_find(lock)->nodes[index];
  if (!known->answered) {
    (void)snprintf(known->said, sizeof known->said, "%s", rl_round_reason(lock, index));
  }
  known->certificate_us = rl_node_certificate(node, now_us);
  if (rl_doctor_find(lock)->notify) {
    const char *reason;
    (void)rl_subscriber_state(lock->core, index, &reason);
    (void)snprintf(known->mute, sizeof known->mute, "%s", reason != NULL ? reason : "");
  }
  if (guard != NULL && guard->state != RL_GUARD_UNKNOWN) {
    known->refused = rl_guard_refuses(guard);
    (void)rl_guard_reason(guard, now_us, known->quarantine, sizeof known->quarantine);
  }
}

/* DOC-4 */
static void rl_doctor_decide(rl_lock *lock, redlock_time now_us) {
  if (!rl_ask_is_answered(lock)) {
    return;
  }
  for (unsigned i = 0; i < lock->core->node_count; i++) {
    rl_doctor_conclude(lock, now_us, i);
  }
  rl_doctor_find(lock)->done = true;
  rl_ask_decide(lock, now_us);
}

const rl_steps rl_doctor_steps = {
    .answers_size = sizeof(rl_doctor),
    .answer_size = sizeof(rl_doctor_node),
    .wrong = rl_doctor_wrong,
    .prepare = rl_doctor_prepare,
    .timeout = rl_doctor_timeout,
    .send = rl_doctor_send,
    .note = rl_doctor_note,
    .decide = rl_doctor_decide,
};
