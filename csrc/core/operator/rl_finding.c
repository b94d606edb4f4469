/*
 * Findings: problems of nodes and options, by the answers to the doctor, and what to do about them.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each check finds at most one problem of a node. A missing answer is no problem: a node that hides
 * its INFO has no role. All checks run for each requested finding, so that no finding is stored.
 */
#include "operator/rl_finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/rl_printable.h"
#include "node/rl_native.h"
#include "wire/rl_command.h"

#define RL_FINDING_OLD_MAJOR 5 /* the oldest tested version */
#define RL_FINDING_CLOCKS_US (2 * REDLOCK_SECONDS)
#define RL_FINDING_SPARE_US (3 * REDLOCK_SECONDS) /* for a min-replicas-max-lag of 1 s */
#define RL_FINDING_DAY_US (86400 * REDLOCK_SECONDS)
#define RL_FINDING_CERTIFICATE_US (30 * RL_FINDING_DAY_US)

/* The search for one finding. */
typedef struct rl_finding_search {
  const rl_doctor *doctor;
  redlock_severity severity; /* of the finding */
  unsigned skip;             /* findings of this severity that come first */
  unsigned node;             /* the node that is checked, or RL_FINDING_NO_NODE */
  rl_finding *finding;
  bool found;
} rl_finding_search;

const char *redlock_severity_name(int severity) {
  switch (severity) {
#define RL_SEVERITY_NAME(value, name)                                                              \
  case value:                                                                                      \
    return #name;
    RL_SEVERITIES(RL_SEVERITY_NAME)
  default:
    return "unknown";
  }
}

__attribute__((format(printf, 4, 5))) static void rl_finding_add(rl_finding_search *search,
                                                                 const char *name,
                                                                 redlock_severity severity,
                                                                 const char *format, ...) {
  va_list arguments;
  if (severity != search->severity || search->found) {
    return;
  }
  if (search->skip > 0) {
    search->skip--;
    return;
  }
  search->found = true;
  search->finding->severity = severity;
  search->finding->name = name;
  search->finding->node = search->node;
  va_start(arguments, format);
  (void)vsnprintf(search->finding->message, sizeof search->finding->message, format, arguments);
  va_end(arguments);
}

/* A misspelt name does not compile. */
#define RL_FINDING_NAME(name) static const char rl_finding_name_##name[] = #name;
RL_FINDINGS(RL_FINDING_NAME)

static double rl_finding_ms(redlock_duration duration_us) {
  return (double)duration_us / (double)REDLOCK_MILLISECONDS;
}

/* ------------------------------------------------------------------- why a node has no vote */

static bool rl_finding_lacks_rights(const rl_doctor_node *node) {
  return !node->answered && strncmp(node->said, "NOPERM", 6) == 0;
}

/* Returns what to do about a server that answers |said|; NULL if no server answers that. */
static const char *rl_finding_advice(const char *said) {
  static const char *const advices[][2] = {
      {"WRONGPASS ", "check its username and password"},
      {"NOAUTH ", "set its username and password"},
      {"LOADING ", "wait until it has loaded its data"},
      {"BUSY ", "wait, or end the script that runs there (SCRIPT KILL)"},
      {"DENIED ", "check its bind, protected-mode and requirepass"},
      {"ERR ", "check its username, password, database and configuration"},
  };
  for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++) {
    if (strncmp(said, advices[i][0], strlen(advices[i][0])) == 0) {
      return advices[i][1];
    }
  }
  return NULL;
}

/* Returns true if the node has no interpreter of scripts: Valkey 9.1 without its module. */
static bool rl_finding_lacks_interpreter(const rl_doctor_node *node) {
  return !node->answered && strstr(node->said, "find scripting engine") != NULL;
}

static void rl_finding_check_scripts(rl_finding_search *search, const rl_doctor_node *node) {
  bool lacks = rl_finding_lacks_interpreter(node);
  if (lacks || (rl_finding_lacks_rights(node) && rl_native_refuses_scripts(node->said))) {
    rl_finding_add(
        search, rl_finding_name_scripts, lacks ? REDLOCK_SEVERITY_ERROR : REDLOCK_SEVERITY_NOTE,
        "%.100s runs no scripts, so it takes part only in locks of one resource without fence, "
        "guard and notifications, and releases them only if it knows DELIFEQ or DELEX: %s",
        node->name, lacks ? "load its module for Lua scripts" : "allow EVAL and EVALSHA");
  }
}

static void rl_finding_check_down(rl_finding_search *search, const rl_doctor_node *node) {
  if (node->answered || rl_finding_lacks_rights(node) || rl_finding_lacks_interpreter(node)) {
    return;
  }
  if (node->sentinel) {
    rl_finding_add(search, rl_finding_name_refuses, REDLOCK_SEVERITY_ERROR,
                   "%.100s is a Sentinel, which keeps no keys: %s", node->name,
                   search->doctor->count == 1
                       ? "name its master by a list of Sentinels, sentinel://HOST,HOST/MASTER"
                       : "name servers that are independent of each other instead, by their own "
                         "addresses");
    return;
  }
  if (strncmp(node->said, "it is the same server as ", 25) == 0) {
    rl_finding_add(search, rl_finding_name_same_server, REDLOCK_SEVERITY_ERROR,
                   "%.100s has no vote: %.190s", node->name, node->said);
    return;
  }
  if (strncmp(node->said, "the reply is not RESP", 21) == 0) {
    rl_finding_add(search, rl_finding_name_down, REDLOCK_SEVERITY_ERROR,
                   "%.100s answers in another protocol: %.190s", node->name, node->said);
    return;
  }
  const char *advice = rl_finding_advice(node->said);
  rl_finding_add(search, rl_finding_name_down, REDLOCK_SEVERITY_ERROR, "%.100s %s: %.190s; %s",
                 node->name, advice != NULL ? "refuses" : "did not answer", node->said,
                 advice != NULL ? advice : "check that the server is running and reachable");
}

/* Bootstrap is only for new nodes: a restarted node would vote at once, without its locks. */
static const char *rl_finding_patience(const char *quarantine) {
  if (strncmp(quarantine, "its clock is ", 13) == 0) {
    return "synchronise its clock, for example with chrony";
  }
  return strstr(quarantine, "it has no record") == NULL
             ? "wait"
             : "wait, or run bootstrap() if the cluster is new and has no locks";
}

/* The reason of the guard, unless the run_id shows the same server twice. */
static void rl_finding_check_quarantined(rl_finding_search *search, const rl_doctor_node *node) {
  size_t length;
  bool same = strncmp(node->quarantine, "it is the same server as ", 25) == 0 &&
              rl_doctor_node_find(node, "run_id", &length) != NULL;
  if (!node->answered || node->quarantine[0] == '\0' || same) {
    return;
  }
  if (node->refused) {
    rl_finding_add(search, rl_finding_name_quarantined, REDLOCK_SEVERITY_ERROR,
                   "the guard refuses %.100s: %.190s", node->name, node->quarantine);
  } else {
    rl_finding_add(search, rl_finding_name_quarantined, REDLOCK_SEVERITY_WARNING,
                   "%.100s does not vote yet: %.190s; %s", node->name, node->quarantine,
                   rl_finding_patience(node->quarantine));
  }
}

static void rl_finding_check_same_server(rl_finding_search *search, const rl_doctor_node *node) {
  char run_id[RL_DOCTOR_WORD_MAX + 1];
  if (rl_doctor_node_value(node, "run_id", run_id)[0] == '\0') {
    return;
  }
  for (unsigned i = 0; i < search->node; i++) {
    const rl_doctor_node *other = &search->doctor->nodes[i];
    if (rl_doctor_node_is(other, "run_id", run_id)) {
      rl_finding_add(
          search, rl_finding_name_same_server, REDLOCK_SEVERITY_ERROR,
          "%.100s is the same server as %.100s (run_id %s)%s: its failure costs two votes; use a "
          "separate server for each node",
          node->name, other->name, run_id, node->db == other->db ? "" : ", with another database");
      return;
    }
  }
}

static void rl_finding_check_role(rl_finding_search *search, const rl_doctor_node *node) {
  char of[RL_DOCTOR_MASTER_SIZE];
  if (!rl_doctor_node_is(node, "role", "slave")) {
    return;
  }
  if (rl_doctor_node_is(node, "read_only", "0")) {
    rl_finding_add(
        search, rl_finding_name_writable_replica, REDLOCK_SEVERITY_ERROR,
        "%.100s is a replica that can be written to: its locks vanish when it synchronises with "
        "its master; make it an independent master (REPLICAOF NO ONE)",
        node->name);
  } else {
    rl_finding_add(search, rl_finding_name_replica, REDLOCK_SEVERITY_ERROR,
                   "%.100s is a read-only replica%s: %s", node->name,
                   rl_doctor_node_master(node, of),
                   search->doctor->count == 1
                       ? "name its master, by an address that follows the master at a fail-over "
                         "(docs/one-server.md)"
                       : "replace it by an independent master, or make it one (REPLICAOF NO ONE)");
  }
}

/*
 * The only node, which fails over to a replica: its lost write alone makes two holders. A promoted
 * replica that needs a replica itself, and has none, grants nothing at all.
 */
static void rl_finding_check_failover(rl_finding_search *search, const rl_doctor_node *node,
                                      uint64_t replicas) {
  const rl_doctor *doctor = search->doctor;
  uint64_t good;
  if (!doctor->guard) {
    rl_finding_add(
        search, rl_finding_name_replicas, REDLOCK_SEVERITY_WARNING,
        "%.100s has %llu replica%s, and is the only node: client A acquires a lock, the master "
        "crashes before it has sent the key, the replica is promoted, and client B acquires the "
        "same lock; turn the guard on (docs/one-server.md)",
        node->name, (unsigned long long)replicas, replicas == 1 ? "" : "s");
  } else if (replicas == 1 && rl_doctor_node_number(node, "good", &good)) {
    rl_finding_add(
        search, rl_finding_name_replicas, REDLOCK_SEVERITY_NOTE,
        "%.100s has 1 replica and min-replicas-to-write: when either server crashes, no lock is "
        "acquired, extended or released until it is back as a replica, and after a fail-over none "
        "is acquired for %.1f s more; use two replicas (docs/one-server.md)",
        node->name, rl_finding_ms(doctor->quarantine_us) / 1000);
  } else {
    rl_finding_add(search, rl_finding_name_replicas, REDLOCK_SEVERITY_NOTE,
                   "%.100s has %llu replica%s: after a fail-over the guard grants no lock for "
                   "%.1f s, until those that the promoted replica may lack have expired",
                   node->name, (unsigned long long)replicas, replicas == 1 ? "" : "s",
                   rl_finding_ms(doctor->quarantine_us) / 1000);
  }
}

static void rl_finding_check_replicas(rl_finding_search *search, const rl_doctor_node *node) {
  uint64_t replicas;
  if (rl_doctor_node_is(node, "role", "slave") ||
      !rl_doctor_node_number(node, "replicas", &replicas) || replicas == 0) {
    return;
  }
  if (search->doctor->count == 1) {
    rl_finding_check_failover(search, node, replicas);
    return;
  }
  rl_finding_add(search, rl_finding_name_replicas, REDLOCK_SEVERITY_NOTE,
                 "%.100s has %llu replica%s: a promoted replica may lack the latest locks; %s",
                 node->name, (unsigned long long)replicas, replicas == 1 ? "" : "s",
                 search->doctor->guard ? "the guard keeps it from voting until they have expired"
                                       : "do not promote any, or turn the guard on");
}

/*
 * The only node must stop when it is cut off from its replicas, before the promoted one votes. INFO
 * shows the number of good replicas only if min-replicas-to-write is set, and never
 * min-replicas-max-lag.
 */
static void rl_finding_check_min_replicas(rl_finding_search *search, const rl_doctor_node *node) {
  const rl_doctor *doctor = search->doctor;
  uint64_t replicas, good;
  if (doctor->count != 1 || !doctor->guard || rl_doctor_node_is(node, "role", "slave") ||
      !rl_doctor_node_number(node, "replicas", &replicas)) {
    return;
  }
  if (!rl_doctor_node_number(node, "good", &good)) {
    if (replicas > 0) {
      rl_finding_add(
          search, rl_finding_name_min_replicas, REDLOCK_SEVERITY_WARNING,
          "%.100s grants locks when it is cut off from its replicas, while a promoted replica does, "
          "too: set min-replicas-to-write 1 on all servers (docs/one-server.md)",
          node->name);
    }
  } else if (doctor->spare_us < RL_FINDING_SPARE_US) {
    rl_finding_add(
        search, rl_finding_name_min_replicas, REDLOCK_SEVERITY_WARNING,
        "%.100s stops min-replicas-max-lag + 2 s after it was cut off from its replicas, "
        "and max_ttl exceeds ttl + lock_delay by %.1f s: raise max_ttl to ttl + "
        "lock_delay + min-replicas-max-lag + 2 s",
        node->name, rl_finding_ms(doctor->spare_us) / 1000);
  }
}

static void rl_finding_check_cluster(rl_finding_search *search, const rl_doctor_node *node) {
  if (rl_doctor_node_is(node, "cluster", "1")) {
    rl_finding_add(
        search, rl_finding_name_cluster, REDLOCK_SEVERITY_ERROR,
        "%.100s is in cluster mode: it has only some of the keys, and they move; use a server "
        "with cluster-enabled no",
        node->name);
  }
}

static void rl_finding_check_eviction(rl_finding_search *search, const rl_doctor_node *node) {
  char policy[RL_DOCTOR_WORD_MAX + 1];
  uint64_t bytes;
  if (rl_doctor_node_number(node, "maxmemory", &bytes) && bytes > 0 &&
      strcmp(rl_doctor_node_value(node, "policy", policy), "noeviction") != 0 &&
      policy[0] != '\0') {
    rl_finding_add(search, rl_finding_name_eviction, REDLOCK_SEVERITY_ERROR,
                   "%.100s evicts keys, including locks, when its %llu bytes are full "
                   "(%s): CONFIG SET maxmemory-policy noeviction",
                   node->name, (unsigned long long)bytes, policy);
  }
}

/* A refusal that follows from the role or the mode is no other finding. */
static void rl_finding_check_refuses(rl_finding_search *search, const rl_doctor_node *node) {
  size_t length = 0;
  const char *said = rl_doctor_node_find(node, "said", &length);
  if (said != NULL && !rl_doctor_node_is(node, "role", "slave") &&
      !rl_doctor_node_is(node, "cluster", "1")) {
    rl_finding_add(search, rl_finding_name_refuses, REDLOCK_SEVERITY_ERROR,
                   "%.100s refuses what a lock needs: %.190s%s", node->name, said,
                   strncmp(said, "NOREPLICAS", 10) == 0
                       ? " Start a replica, or lower min-replicas-to-write"
                       : "");
  }
}

/* --------------------------------------------------------------------------------------- rights */

/* The purpose of a command. It decides the severity of a refusal. */
typedef enum rl_finding_purpose {
  RL_FINDING_LOCK,    /* any lock */
  RL_FINDING_INSPECT, /* inspect() and what is built on it (rl_inspect.c) */
  RL_FINDING_NOTIFY,  /* notifications of waiters */
  RL_FINDING_KEYS,    /* the search of keys */
  RL_FINDING_EXAMINE, /* the doctor alone */
  RL_FINDING_SPARE,   /* nothing that fails without it */
  RL_FINDING_NOTHING  /* nothing that this client does */
} rl_finding_purpose;

typedef struct rl_finding_command {
  const char *word; /* in the answer */
  const char *name; /* as in an ACL */
  rl_finding_purpose purpose;
  bool guard, fence, permits; /* a lock with that option needs it */
} rl_finding_command;

static const rl_finding_command rl_finding_commands[] = {
    {"set", "set", RL_FINDING_LOCK, 0, 0, 0},
    {"get", "get", RL_FINDING_LOCK, 0, 0, 0},
    {"del", "del", RL_FINDING_LOCK, 0, 0, 0},
    {"pttl", "pttl", RL_FINDING_LOCK, 0, 0, 0},
    {"pexpire", "pexpire", RL_FINDING_LOCK, 0, 0, 0},
    {"exists", "exists", RL_FINDING_LOCK, 0, 0, 0},
    {"type", "type", RL_FINDING_INSPECT, 0, 0, 0},
    {"strlen", "strlen", RL_FINDING_INSPECT, 0, 0, 0},
    {"subscribe", "subscribe", RL_FINDING_NOTIFY, 0, 0, 0},
    {"ping", "ping", RL_FINDING_NOTIFY, 0, 0, 0},
    {"publish", "publish", RL_FINDING_NOTIFY, 0, 0, 0},
    {"mget", "mget", RL_FINDING_NOTIFY, 0, 0, true},
    {"append", "append", RL_FINDING_NOTIFY, true, 0, 0},
    {"info", "info", RL_FINDING_EXAMINE, true, 0, 0},
    {"time", "time", RL_FINDING_EXAMINE, true, true, 0},
    {"object", "object", RL_FINDING_NOTHING, true, 0, 0},
    {"scan", "scan", RL_FINDING_KEYS, 0, 0, 0},
    {"scan", "strlen", RL_FINDING_KEYS, 0, 0, 0},
    {"delifeq", "delifeq", RL_FINDING_SPARE, 0, 0, 0},
    {"delex", "delex", RL_FINDING_SPARE, 0, 0, 0},
    {"setname", "client|setname", RL_FINDING_SPARE, 0, 0, 0},
    {"setinfo", "client|setinfo", RL_FINDING_SPARE, 0, 0, 0},
};
#define RL_FINDING_COMMANDS (sizeof rl_finding_commands / sizeof rl_finding_commands[0])

/* The severity and the effect of a refusal, by the purpose. */
static const struct {
  redlock_severity severity;
  const char *effect;
} rl_finding_effects[] = {
    [RL_FINDING_LOCK] = {REDLOCK_SEVERITY_ERROR, ", which a lock needs"},
    [RL_FINDING_INSPECT] = {REDLOCK_SEVERITY_WARNING, ", which inspect, watch and leader need"},
    [RL_FINDING_NOTIFY] = {REDLOCK_SEVERITY_WARNING,
                           ", so it does not notify waiters, which poll instead"},
    [RL_FINDING_KEYS] = {REDLOCK_SEVERITY_WARNING, ", so its keys were not scanned"},
    [RL_FINDING_EXAMINE] = {REDLOCK_SEVERITY_NOTE, ", so the doctor knows little of it"},
    [RL_FINDING_SPARE] = {REDLOCK_SEVERITY_NOTE,
                          ", which locks do without, but its ACL LOG notes each try"},
};

typedef struct rl_finding_refused {
  char commands[96]; /* "set, get" */
  char rules[96];    /* " +set +get" */
} rl_finding_refused;

static void rl_finding_note(rl_finding_refused *refused, const char *command) {
  size_t used = strlen(refused->commands);
  (void)snprintf(refused->commands + used, sizeof refused->commands - used, "%s%s",
                 used > 0 ? ", " : "", command);
  used = strlen(refused->rules);
  (void)snprintf(refused->rules + used, sizeof refused->rules - used, " +%s", command);
}

/* The user may not touch the channels of notifications. The doctor has not tried SUBSCRIBE then. */
static void rl_finding_note_channels(rl_finding_refused *refused) {
  (void)snprintf(refused->commands, sizeof refused->commands,
                 "publish and subscribe on " RL_COMMAND_CHANNEL "*");
  (void)snprintf(refused->rules, sizeof refused->rules,
                 " &" RL_COMMAND_CHANNEL "* +publish +subscribe");
}

static const char *rl_finding_user(const rl_doctor_node *node) {
  return node->login_supplied ? "USER" : node->username != NULL ? node->username : "default";
}

static void rl_finding_add_refused(rl_finding_search *search, const rl_doctor_node *node,
                                   redlock_severity severity, const rl_finding_refused *refused,
                                   const char *why, bool unknown) {
  if (refused->commands[0] == '\0') {
    return;
  }
  if (unknown) {
    rl_finding_add(search, rl_finding_name_refuses, severity,
                   "%.100s does not know %s%s: remove rename-command for it from its configuration",
                   node->name, refused->commands, why);
  } else {
    rl_finding_add(search, rl_finding_name_rights, severity,
                   "%.100s does not let its user run %s%s: ACL SETUSER %.80s%s", node->name,
                   refused->commands, why, rl_finding_user(node), refused->rules);
  }
}

/* Returns the purpose of the command for this client. */
static rl_finding_purpose rl_finding_purpose_of(const rl_doctor *doctor,
                                                const rl_finding_command *command) {
  if ((command->guard && doctor->guard) || (command->fence && doctor->fence) ||
      (command->permits && doctor->permits)) {
    return RL_FINDING_LOCK;
  }
  return command->purpose == RL_FINDING_NOTIFY && !doctor->notify ? RL_FINDING_NOTHING
                                                                  : command->purpose;
}

/*
 * Commands that the user may not run, or that the node does not know, |unknown|, by their purpose.
 */
static void rl_finding_check_refused(rl_finding_search *search, const rl_doctor_node *node,
                                     bool unknown) {
  const rl_doctor *doctor = search->doctor;
  rl_finding_refused refused[RL_FINDING_NOTHING + 1] = {0};
  if (!unknown && rl_finding_lacks_rights(node)) {
    rl_finding_note(&refused[RL_FINDING_LOCK], "eval");
  }
  if (unknown ? node->unknown_evalsha && !node->sentinel : node->no_evalsha) {
    rl_finding_note(&refused[RL_FINDING_LOCK], "evalsha");
  }
  if (!unknown && doctor->notify && rl_doctor_node_is(node, "publish", "key")) {
    rl_finding_note_channels(&refused[RL_FINDING_NOTIFY]);
  }
  for (unsigned i = 0; i < RL_FINDING_COMMANDS; i++) {
    const rl_finding_command *command = &rl_finding_commands[i];
    if (rl_doctor_node_is(node, command->word, unknown ? "unknown" : "command")) {
      rl_finding_note(&refused[rl_finding_purpose_of(doctor, command)], command->name);
    }
  }
  for (unsigned i = 0; i < RL_FINDING_NOTHING; i++) {
    rl_finding_add_refused(search, node, rl_finding_effects[i].severity, &refused[i],
                           rl_finding_effects[i].effect, unknown);
  }
}

/* The reason of the client's subscriber, unless the doctor has found a right that lacks. */
static void rl_finding_check_notifications(rl_finding_search *search, const rl_doctor_node *node) {
  bool lacks = rl_finding_lacks_rights(node) || rl_doctor_node_is(node, "publish", "key");
  for (unsigned i = 0; i < RL_FINDING_COMMANDS; i++) {
    size_t length;
    lacks = lacks || (rl_finding_commands[i].purpose == RL_FINDING_NOTIFY &&
                      rl_doctor_node_find(node, rl_finding_commands[i].word, &length) != NULL);
  }
  if (node->answered && node->mute[0] != '\0' && !lacks) {
    rl_finding_add(search, rl_finding_name_notifications, REDLOCK_SEVERITY_WARNING,
                   "%.100s does not notify waiters, which poll instead: %.190s; let its user, and "
                   "a proxy before it, pass SUBSCRIBE and PUBLISH",
                   node->name, node->mute);
  }
}

static void rl_finding_check_keys(rl_finding_search *search, const rl_doctor_node *node) {
  const rl_doctor *doctor = search->doctor;
  char key[65], pattern[65];
  bool refused = false;
  for (unsigned i = 0; i < RL_FINDING_COMMANDS; i++) {
    refused = refused || (rl_finding_commands[i].purpose == RL_FINDING_LOCK &&
                          rl_doctor_node_is(node, rl_finding_commands[i].word, "key"));
  }
  if (!refused) {
    return;
  }
  rl_printable_copy(key, sizeof key, doctor->key, doctor->key_length, '!');
  rl_printable_copy(pattern, sizeof pattern, doctor->prefix, doctor->prefix_length, '!');
  if (rl_doctor_node_is(node, "own", "1") && !doctor->fence) {
    rl_finding_add(
        search, rl_finding_name_rights, REDLOCK_SEVERITY_NOTE,
        "%.100s lets its user touch '%s', but no key like it, so the commands of a lock were not "
        "tried: ACL SETUSER %.80s ~%s:redlock-doctor:*",
        node->name, key, rl_finding_user(node), key);
    return;
  }
  rl_finding_add(search, rl_finding_name_rights, REDLOCK_SEVERITY_ERROR,
                 "%.100s does not let its user touch keys like '%s': ACL SETUSER %.80s ~%s%s",
                 node->name, key, rl_finding_user(node), pattern[0] != '\0' ? pattern : "PATTERN",
                 pattern[0] != '\0'
                     ? "*"
                     : ", set the prefix of the application, or name a resource that "
                       "it may lock");
}

/* -------------------------------------------------------------------------------------- risks */

static void rl_finding_check_persistence(rl_finding_search *search, const rl_doctor_node *node) {
  bool guard = search->doctor->guard;
  const char *failing = rl_doctor_node_is(node, "aof_write", "err")  ? "append-only file"
                        : rl_doctor_node_is(node, "rdb_save", "err") ? "snapshot"
                                                                     : NULL;
  if (failing != NULL) {
    rl_finding_add(
        search, rl_finding_name_persistence_failing, REDLOCK_SEVERITY_WARNING,
        "%.100s could not write its last %s, and may refuse locks: check its log and its disk",
        node->name, failing);
  }
  if (rl_doctor_node_is(node, "aof", "0")) {
    rl_finding_add(search, rl_finding_name_persistence,
                   guard ? REDLOCK_SEVERITY_NOTE : REDLOCK_SEVERITY_WARNING,
                   "%.100s forgets its latest locks when it restarts (appendonly no)%s", node->name,
                   guard ? ": the guard keeps it from voting until they have expired"
                         : ": turn the guard on, or wait for the longest ttl before you start it "
                           "again");
  }
}

static void rl_finding_check_slow(rl_finding_search *search, const rl_doctor_node *node) {
  const rl_doctor *doctor = search->doctor;
  if (node->round_trip_us != REDLOCK_NEVER && node->round_trip_us > doctor->node_timeout_us / 2) {
    rl_finding_add(
        search, rl_finding_name_slow, REDLOCK_SEVERITY_WARNING,
        "%.100s took %.1f ms to answer, and node_timeout is %.1f ms: raise node_timeout, or move "
        "the node closer",
        node->name, rl_finding_ms(node->round_trip_us), rl_finding_ms(doctor->node_timeout_us));
  }
}

static void rl_finding_check_certificate(rl_finding_search *search, const rl_doctor_node *node) {
  if (node->certificate_us < RL_FINDING_CERTIFICATE_US) {
    unsigned long long days = node->certificate_us / RL_FINDING_DAY_US;
    rl_finding_add(search, rl_finding_name_certificate, REDLOCK_SEVERITY_WARNING,
                   "the TLS certificate of %.100s ends in %s%llu day%s: renew it", node->name,
                   days == 0 ? "less than " : "", days == 0 ? 1 : days, days <= 1 ? "" : "s");
  }
}

static void rl_finding_check_endless(rl_finding_search *search, const rl_doctor_node *node) {
  char key[RL_DOCTOR_WORD_MAX + 1];
  uint64_t count;
  if (!rl_doctor_node_number(node, "keys", &count)) {
    return;
  }
  if (count > 0) {
    rl_finding_add(
        search, rl_finding_name_endless_keys, REDLOCK_SEVERITY_WARNING,
        "%.100s holds %s%llu key%s without an expiry that look%s like a lock, such as "
        "'%s': if no client owns it, delete it with force_release() or redlock force-release",
        node->name, rl_doctor_node_is(node, "more", "1") ? "at least " : "",
        (unsigned long long)count, count == 1 ? "" : "s", count == 1 ? "s" : "",
        rl_doctor_node_value(node, "key", key));
  } else if (rl_doctor_node_is(node, "more", "1")) {
    rl_finding_add(
        search, rl_finding_name_endless_keys, REDLOCK_SEVERITY_NOTE,
        "%.100s has more keys than were scanned; none of those looks like a lock without an expiry",
        node->name);
  }
}

static void rl_finding_check_version(rl_finding_search *search, const rl_doctor_node *node) {
  const char *product;
  uint64_t major = rl_doctor_node_major(node, &product);
  if (major > 0 && major < RL_FINDING_OLD_MAJOR) {
    rl_finding_add(search, rl_finding_name_old_version, REDLOCK_SEVERITY_WARNING,
                   "%.100s runs %s %llu, which is no longer maintained: upgrade it", node->name,
                   product, (unsigned long long)major);
  }
}

/* ---------------------------------------------------------------------------------- all nodes */

static void rl_finding_check_clock(rl_finding_search *search, const rl_doctor_node *node) {
  const rl_doctor_node *median = rl_doctor_median(search->doctor);
  if (median == NULL || !node->has_clock) {
    return;
  }
  int64_t ahead_us = rl_doctor_node_ahead(node, median);
  uint64_t apart_us = ahead_us < 0 ? 0 - (uint64_t)ahead_us : (uint64_t)ahead_us;
  redlock_duration error_us = rl_time_add(node->clock_error_us, median->clock_error_us);
  if (apart_us > rl_time_add(RL_FINDING_CLOCKS_US, error_us)) {
    rl_finding_add(
        search, rl_finding_name_clock,
        search->doctor->guard ? REDLOCK_SEVERITY_ERROR : REDLOCK_SEVERITY_WARNING,
        "the clock of %.100s is %.1f s %s that of %.100s: synchronise both, for example with "
        "chrony",
        node->name, (double)apart_us / (double)REDLOCK_SECONDS,
        ahead_us < 0 ? "behind" : "ahead of", median->name);
  }
}

static void rl_finding_check_versions(rl_finding_search *search) {
  const rl_doctor *doctor = search->doctor;
  const rl_doctor_node *first = NULL;
  const char *one = "", *other = "";
  uint64_t major = 0;
  for (unsigned i = 0; i < doctor->count; i++) {
    uint64_t own = rl_doctor_node_major(&doctor->nodes[i], &other);
    if (own == 0) {
      continue;
    }
    if (first == NULL) {
      first = &doctor->nodes[i];
      major = own;
      one = other;
    } else if (own != major || other != one) {
      rl_finding_add(search, rl_finding_name_mixed_versions, REDLOCK_SEVERITY_NOTE,
                     "%.100s runs %s %llu, and %.100s %s %llu: use one version on all nodes",
                     first->name, one, (unsigned long long)major, doctor->nodes[i].name, other,
                     (unsigned long long)own);
      return;
    }
  }
}

static void rl_finding_check_count(rl_finding_search *search) {
  unsigned count = search->doctor->count;
  if (count < 3) {
    rl_finding_add(search, rl_finding_name_node_count, REDLOCK_SEVERITY_NOTE,
                   "with %u node%s no lock can be acquired while %s is down: use three or five",
                   count, count == 1 ? "" : "s", count == 1 ? "it" : "one");
  } else if (count % 2 == 0) {
    rl_finding_add(search, rl_finding_name_node_count, REDLOCK_SEVERITY_NOTE,
                   "%u nodes tolerate no more failures than %u: use an odd number", count,
                   count - 1);
  }
}

static void rl_finding_check_options(rl_finding_search *search) {
  const rl_doctor *doctor = search->doctor;
  if (doctor->ttl_us / 4 < doctor->node_timeout_us) {
    rl_finding_add(
        search, rl_finding_name_options, REDLOCK_SEVERITY_WARNING,
        "a ttl of %.0f ms leaves little of a lease after a node_timeout of %.0f ms: make the ttl "
        "at least four times as long, or shorten node_timeout",
        rl_finding_ms(doctor->ttl_us), rl_finding_ms(doctor->node_timeout_us));
  }
}

static void rl_finding_check_node(rl_finding_search *search, const rl_doctor_node *node) {
  rl_finding_check_down(search, node);
  rl_finding_check_scripts(search, node);
  rl_finding_check_quarantined(search, node);
  rl_finding_check_same_server(search, node);
  rl_finding_check_role(search, node);
  rl_finding_check_replicas(search, node);
  rl_finding_check_min_replicas(search, node);
  rl_finding_check_cluster(search, node);
  rl_finding_check_eviction(search, node);
  rl_finding_check_refused(search, node, false);
  rl_finding_check_refused(search, node, true);
  rl_finding_check_keys(search, node);
  rl_finding_check_notifications(search, node);
  rl_finding_check_refuses(search, node);
  rl_finding_check_clock(search, node);
  rl_finding_check_certificate(search, node);
  rl_finding_check_persistence(search, node);
  rl_finding_check_slow(search, node);
  rl_finding_check_version(search, node);
  rl_finding_check_endless(search, node);
}

bool rl_finding_at(const rl_doctor *doctor, unsigned index, rl_finding *finding) {
#define RL_FINDING_SEVERITY(severity, name) severity,
  static const redlock_severity severities[] = {RL_SEVERITIES(RL_FINDING_SEVERITY)};
  rl_finding_search search = {.doctor = doctor, .skip = index, .finding = finding};
  for (unsigned i = 0; i < sizeof severities / sizeof severities[0] && !search.found; i++) {
    search.severity = severities[i];
    for (search.node = 0; search.node < doctor->count && !search.found; search.node++) {
      rl_finding_check_node(&search, &doctor->nodes[search.node]);
    }
    search.node = RL_FINDING_NO_NODE;
    rl_finding_check_options(&search);
    rl_finding_check_versions(&search);
    rl_finding_check_count(&search);
  }
  return search.found;
}
