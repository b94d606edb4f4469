/*
 * Findings, by the answers of nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "operator/rl_finding.h"
#include "rl_test.h"

#define NODES_MAX 5
#define WELL                                                                                       \
  " role=master replicas=0 maxmemory=0 policy=noeviction aof=1 aof_write=ok rdb_save=ok cluster=0"

/* Nodes with which all is well. */
static rl_doctor *world(unsigned count) {
  static const char *const names[NODES_MAX] = {"one:1", "two:2", "three:3", "four:4", "five:5"};
  rl_doctor *doctor = calloc(1, sizeof *doctor + count * sizeof doctor->nodes[0]);
  assert_non_null(doctor);
  doctor->count = count;
  doctor->done = true;
  doctor->notify = true;
  doctor->ttl_us = 10 * SECONDS;
  doctor->node_timeout_us = 100 * MS;
  doctor->key = "app:orders";
  doctor->key_length = 10;
  for (unsigned i = 0; i < count; i++) {
    rl_doctor_node *node = &doctor->nodes[i];
    node->name = names[i];
    node->answered = true;
    node->round_trip_us = MS;
    node->has_clock = true;
    node->clock_us = UINT64_MAX - 1700000000 * SECONDS;
    node->clock_error_us = MS;
    node->certificate_us = REDLOCK_NEVER;
    (void)snprintf(node->said, sizeof node->said, "now=1 version=7.2.4 run_id=id%u" WELL, i);
  }
  return doctor;
}

static void say(rl_doctor *doctor, unsigned node, const char *said) {
  (void)snprintf(doctor->nodes[node].said, sizeof doctor->nodes[node].said, "%s", said);
}

static void fail_to_answer(rl_doctor *doctor, unsigned node, const char *reason) {
  doctor->nodes[node].answered = false;
  doctor->nodes[node].has_clock = false;
  doctor->nodes[node].round_trip_us = REDLOCK_NEVER;
  say(doctor, node, reason);
}

static unsigned count_of(const rl_doctor *doctor) {
  rl_finding finding;
  unsigned count = 0;
  while (rl_finding_at(doctor, count, &finding)) {
    count++;
  }
  return count;
}

/* Nothing is found. Frees |doctor|. */
static void assert_well(rl_doctor *doctor) {
  rl_finding finding;
  if (rl_finding_at(doctor, 0, &finding)) {
    fail_msg("%s: %s", finding.name, finding.message);
  }
  free(doctor);
}

/* There is one finding, with this message; or none if it is NULL. Frees |doctor|. */
static void assert_finds(rl_doctor *doctor, redlock_severity severity, const char *name,
                         unsigned node, const char *message) {
  rl_finding finding = {0};
  if (message == NULL) {
    assert_well(doctor);
    return;
  }
  assert_true(rl_finding_at(doctor, 0, &finding));
  assert_string_equal(finding.name, name);
  assert_string_equal(finding.message, message);
  assert_int_equal(finding.severity, severity);
  assert_int_equal(finding.node, node);
  assert_int_equal(count_of(doctor), 1);
  free(doctor);
}

TEST(doctor_finds_nothing_on_healthy_nodes) {
  assert_well(world(3));
  assert_well(world(5));
}

/* The answer of node 1 of three, and the finding; NULL: none. */
typedef struct said_case {
  const char *said;
  redlock_severity severity;
  const char *name;
  const char *message;
} said_case;

static const said_case said_cases[] = {
    {"role=slave read_only=1", REDLOCK_SEVERITY_ERROR, "replica",
     "two:2 is a read-only replica: replace it by an independent master, or make it one "
     "(REPLICAOF NO ONE)"},
    {"role=slave read_only=1 said=READONLY You can't write against a read only replica.",
     REDLOCK_SEVERITY_ERROR, "replica",
     "two:2 is a read-only replica: replace it by an independent master, or make it one "
     "(REPLICAOF NO ONE)"},
    {"role=slave read_only=1 master=10.0.0.9 port=6380", REDLOCK_SEVERITY_ERROR, "replica",
     "two:2 is a read-only replica of 10.0.0.9:6380: replace it by an independent master, or make "
     "it one (REPLICAOF NO ONE)"},
    {"role=slave read_only=0", REDLOCK_SEVERITY_ERROR, "writable_replica",
     "two:2 is a replica that can be written to: its locks vanish when it synchronises with its "
     "master; make it an independent master (REPLICAOF NO ONE)"},
    {"role=master replicas=1", REDLOCK_SEVERITY_NOTE, "replicas",
     "two:2 has 1 replica: a promoted replica may lack the latest locks; do not promote "
     "any, or turn the guard on"},
    {"role=master replicas=0", 0, NULL, NULL},
    {"role=master replicas=0 good=0", 0, NULL, NULL},
    {"cluster=1 said=Script attempted to access a non local key", REDLOCK_SEVERITY_ERROR, "cluster",
     "two:2 is in cluster mode: it has only some of the keys, and they move; use a server with "
     "cluster-enabled no"},
    {"cluster=0", 0, NULL, NULL},
    {"maxmemory=1048576 policy=allkeys-lru", REDLOCK_SEVERITY_ERROR, "eviction",
     "two:2 evicts keys, including locks, when its 1048576 bytes are full (allkeys-lru): "
     "CONFIG SET maxmemory-policy noeviction"},
    {"maxmemory=1048576 policy=volatile-ttl", REDLOCK_SEVERITY_ERROR, "eviction",
     "two:2 evicts keys, including locks, when its 1048576 bytes are full (volatile-ttl): "
     "CONFIG SET maxmemory-policy noeviction"},
    {"maxmemory=1048576 policy=noeviction", 0, NULL, NULL},
    {"maxmemory=0 policy=allkeys-lru", 0, NULL, NULL},
    {"maxmemory=1048576", 0, NULL, NULL},
    {"said=OOM command not allowed", REDLOCK_SEVERITY_ERROR, "refuses",
     "two:2 refuses what a lock needs: OOM command not allowed"},
    {"said=NOREPLICAS Not enough good replicas to write.", REDLOCK_SEVERITY_ERROR, "refuses",
     "two:2 refuses what a lock needs: NOREPLICAS Not enough good replicas to write. Start a "
     "replica, or lower min-replicas-to-write"},
    {"aof=0", REDLOCK_SEVERITY_WARNING, "persistence",
     "two:2 forgets its latest locks when it restarts (appendonly no): turn the guard on, or wait "
     "for the longest ttl before you start it again"},
    {"aof=1 aof_write=err rdb_save=err", REDLOCK_SEVERITY_WARNING, "persistence_failing",
     "two:2 could not write its last append-only file, and may refuse locks: check its log and "
     "its disk"},
    {"aof=1 aof_write=ok rdb_save=err", REDLOCK_SEVERITY_WARNING, "persistence_failing",
     "two:2 could not write its last snapshot, and may refuse locks: check its log and its disk"},
    {"set=command pexpire=command", REDLOCK_SEVERITY_ERROR, "rights",
     "two:2 does not let its user run set, pexpire, which a lock needs: ACL SETUSER default +set "
     "+pexpire"},
    {"get=command del=command pttl=command exists=command", REDLOCK_SEVERITY_ERROR, "rights",
     "two:2 does not let its user run get, del, pttl, exists, which a lock needs: ACL SETUSER "
     "default +get +del +pttl +exists"},
    {"info=command time=command", REDLOCK_SEVERITY_NOTE, "rights",
     "two:2 does not let its user run info, time, so the doctor knows little of it: ACL "
     "SETUSER default +info +time"},
    {"type=command strlen=command", REDLOCK_SEVERITY_WARNING, "rights",
     "two:2 does not let its user run type, strlen, which inspect, watch and leader need: ACL "
     "SETUSER default +type +strlen"},
    {"strlen=unknown", REDLOCK_SEVERITY_WARNING, "refuses",
     "two:2 does not know strlen, which inspect, watch and leader need: remove rename-command for "
     "it from its configuration"},
    {"scan=command", REDLOCK_SEVERITY_WARNING, "rights",
     "two:2 does not let its user run scan, strlen, so its keys were not scanned: ACL "
     "SETUSER default +scan +strlen"},
    {"subscribe=command publish=command", REDLOCK_SEVERITY_WARNING, "rights",
     "two:2 does not let its user run subscribe, publish, so it does not notify waiters, which "
     "poll instead: ACL SETUSER default +subscribe +publish"},
    {"mget=command append=command ping=command", REDLOCK_SEVERITY_WARNING, "rights",
     "two:2 does not let its user run ping, mget, append, so it does not notify waiters, which "
     "poll instead: ACL SETUSER default +ping +mget +append"},
    {"publish=key", REDLOCK_SEVERITY_WARNING, "rights",
     "two:2 does not let its user run publish and subscribe on redlock:call:*, so it does not "
     "notify waiters, which poll instead: ACL SETUSER default &redlock:call:* +publish "
     "+subscribe"},
    {"publish=unknown", REDLOCK_SEVERITY_WARNING, "refuses",
     "two:2 does not know publish, so it does not notify waiters, which poll instead: remove "
     "rename-command for it from its configuration"},
    {"delifeq=command delex=command setname=command setinfo=command", REDLOCK_SEVERITY_NOTE,
     "rights",
     "two:2 does not let its user run delifeq, delex, client|setname, client|setinfo, which locks "
     "do without, but its ACL LOG notes each try: ACL SETUSER default +delifeq +delex "
     "+client|setname +client|setinfo"},
    {"object=command", 0, NULL, NULL},
    {"set=key get=key", REDLOCK_SEVERITY_ERROR, "rights",
     "two:2 does not let its user touch keys like 'app:orders': ACL SETUSER default ~PATTERN, "
     "set the prefix of the application, or name a resource that it may lock"},
    {"set=key own=1", REDLOCK_SEVERITY_NOTE, "rights",
     "two:2 lets its user touch 'app:orders', but no key like it, so the commands of a lock were "
     "not tried: ACL SETUSER default ~app:orders:redlock-doctor:*"},
    {"own=1", 0, NULL, NULL},
    {"get=unknown pexpire=unknown", REDLOCK_SEVERITY_ERROR, "refuses",
     "two:2 does not know get, pexpire, which a lock needs: remove rename-command for it from its "
     "configuration"},
    {"info=unknown", REDLOCK_SEVERITY_NOTE, "refuses",
     "two:2 does not know info, so the doctor knows little of it: remove rename-command for it "
     "from its configuration"},
    {"scan=unknown", REDLOCK_SEVERITY_WARNING, "refuses",
     "two:2 does not know scan, strlen, so its keys were not scanned: remove rename-command for "
     "it from its configuration"},
    {"keys=1 key=app:lost", REDLOCK_SEVERITY_WARNING, "endless_keys",
     "two:2 holds 1 key without an expiry that looks like a lock, such as 'app:lost': if no "
     "client owns it, delete it with force_release() or redlock force-release"},
    {"keys=12 more=1 key=app:lost", REDLOCK_SEVERITY_WARNING, "endless_keys",
     "two:2 holds at least 12 keys without an expiry that look like a lock, such as 'app:lost': "
     "if no client owns it, delete it with force_release() or redlock force-release"},
    {"keys=0 more=1", REDLOCK_SEVERITY_NOTE, "endless_keys",
     "two:2 has more keys than were scanned; none of those looks like a lock without an expiry"},
    {"keys=0", 0, NULL, NULL},
    {"", 0, NULL, NULL},
};

TEST(answers_of_node_become_findings) {
  for (unsigned i = 0; i < COUNT_OF(said_cases); i++) {
    const said_case *one = &said_cases[i];
    rl_doctor *doctor = world(3);
    say(doctor, 1, one->said);
    assert_finds(doctor, one->severity, one->name, 1, one->message);
  }
}

TEST(guard_needs_rights_of_doctor) {
  rl_doctor *doctor = world(3);
  doctor->guard = true;
  say(doctor, 1, "info=command time=command");
  assert_finds(doctor, REDLOCK_SEVERITY_ERROR, "rights", 1,
               "two:2 does not let its user run info, time, which a lock needs: ACL SETUSER "
               "default +info +time");
}

TEST(options_of_client_decide_which_rights_a_lock_needs) {
  static const struct {
    bool guard, permits, quiet;
    const char *said, *message;
  } rows[] = {
      {true, false, false, "append=command object=command",
       "two:2 does not let its user run append, object, which a lock needs: ACL SETUSER default "
       "+append +object"},
      {false, true, false, "mget=command",
       "two:2 does not let its user run mget, which a lock needs: ACL SETUSER default +mget"},
      {false, false, true, "mget=command append=command subscribe=command publish=key", NULL},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    rl_doctor *doctor = world(3);
    doctor->guard = rows[i].guard;
    doctor->permits = rows[i].permits;
    doctor->notify = !rows[i].quiet;
    say(doctor, 1, rows[i].said);
    assert_finds(doctor, REDLOCK_SEVERITY_ERROR, "rights", 1, rows[i].message);
  }
}

/* A proxy, which the scripts of the doctor do not show. */
TEST(error_of_subscriber_is_reported_once) {
  static const char error[] = "ERR unknown command 'SUBSCRIBE'";
  rl_doctor *doctor = world(3);
  (void)snprintf(doctor->nodes[1].mute, sizeof doctor->nodes[1].mute, "%s", error);
  assert_finds(doctor, REDLOCK_SEVERITY_WARNING, "notifications", 1,
               "two:2 does not notify waiters, which poll instead: ERR unknown command "
               "'SUBSCRIBE'; let its user, and a proxy before it, pass SUBSCRIBE and PUBLISH");
  doctor = world(3);
  (void)snprintf(doctor->nodes[1].mute, sizeof doctor->nodes[1].mute, "%s", error);
  say(doctor, 1, "subscribe=command");
  assert_finds(doctor, REDLOCK_SEVERITY_WARNING, "rights", 1,
               "two:2 does not let its user run subscribe, so it does not notify waiters, which "
               "poll instead: ACL SETUSER default +subscribe");
}

/* Three nodes of a client with a guard. The second is in quarantine. */
static rl_doctor *guarded_world(const char *quarantine) {
  rl_doctor *doctor = world(3);
  doctor->guard = true;
  (void)snprintf(doctor->nodes[1].quarantine, 64, "%s", quarantine);
  return doctor;
}

TEST(quarantine_is_reported) {
  static const struct {
    const char *quarantine;
    bool refused;
    redlock_severity severity;
    const char *name, *message;
  } rows[] = {
      {"for 5.0 s more: it was restarted", false, REDLOCK_SEVERITY_WARNING, "quarantined",
       "two:2 does not vote yet: for 5.0 s more: it was restarted; wait"},
      {"for 5.0 s more: it has no record: it is new", false, REDLOCK_SEVERITY_WARNING,
       "quarantined",
       "two:2 does not vote yet: for 5.0 s more: it has no record: it is new; wait, or run "
       "bootstrap() if the cluster is new and has no locks"},
      {"its clock is 17.0 s ahead of those", false, REDLOCK_SEVERITY_WARNING, "quarantined",
       "two:2 does not vote yet: its clock is 17.0 s ahead of those; synchronise its clock, for "
       "example with chrony"},
      {"its record says nodes=5, ours nodes=3", true, REDLOCK_SEVERITY_ERROR, "quarantined",
       "the guard refuses two:2: its record says nodes=5, ours nodes=3"},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    rl_doctor *doctor = guarded_world(rows[i].quarantine);
    doctor->nodes[1].refused = rows[i].refused;
    assert_finds(doctor, rows[i].severity, rows[i].name, 1, rows[i].message);
  }
}

TEST(quarantine_of_a_twin_or_a_silent_node_is_not_reported) {
  rl_doctor *doctor = guarded_world("it is the same server as one:1");
  doctor->nodes[1].refused = true;
  say(doctor, 1, "run_id=id0" WELL);
  assert_finds(doctor, REDLOCK_SEVERITY_ERROR, "same_server", 1,
               "two:2 is the same server as one:1 (run_id id0): its failure costs two votes; use a "
               "separate server for each node");
  doctor = guarded_world("for 5.0 s more: it was restarted");
  fail_to_answer(doctor, 1, "no reply");
  assert_finds(doctor, REDLOCK_SEVERITY_ERROR, "down", 1,
               "two:2 did not answer: no reply; check that the server is running and reachable");
  doctor = world(3);
  fail_to_answer(doctor, 1, "the reply is not RESP; is this the port of a Redis or Valkey server?");
  assert_finds(doctor, REDLOCK_SEVERITY_ERROR, "down", 1,
               "two:2 answers in another protocol: the reply is not RESP; is this the port of a "
               "Redis or Valkey server?");
}

TEST(silent_node_or_refusing_server_is_down) {
  static const char *const rows[][2] = {
      {"Connection refused",
       "three:3 did not answer: Connection refused; check that the server is running and "
       "reachable"},
      {"WRONGPASS invalid username-password pair",
       "three:3 refuses: WRONGPASS invalid username-password pair; check its username and "
       "password"},
      {"LOADING Redis is loading the dataset in memory",
       "three:3 refuses: LOADING Redis is loading the dataset in memory; wait until it has loaded "
       "its data"},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    rl_doctor *doctor = world(3);
    fail_to_answer(doctor, 2, rows[i][0]);
    assert_finds(doctor, REDLOCK_SEVERITY_ERROR, "down", 2, rows[i][1]);
  }
}

TEST(forbidden_key_is_reported_with_pattern_of_prefix) {
  rl_doctor *doctor = world(3);
  doctor->prefix = "app:";
  doctor->prefix_length = 4;
  doctor->nodes[1].username = "worker";
  say(doctor, 1, "exists=key");
  assert_finds(doctor, REDLOCK_SEVERITY_ERROR, "rights", 1,
               "two:2 does not let its user touch keys like 'app:orders': ACL SETUSER worker "
               "~app:*");
}

TEST(first_64_bytes_of_a_long_forbidden_key_are_shown) {
  static const char key[] = "0123456789012345678901234567890123456789012345678901234567890123-rest";
  rl_doctor *doctor = world(3);
  doctor->key = key;
  doctor->key_length = sizeof key - 1;
  say(doctor, 1, "exists=key");
  assert_finds(doctor, REDLOCK_SEVERITY_ERROR, "rights", 1,
               "two:2 does not let its user touch keys like "
               "'0123456789012345678901234567890123456789012345678901234567890123': ACL SETUSER "
               "default ~PATTERN, set the prefix of the application, or name a resource that it "
               "may lock");
}

TEST(node_is_slow_beyond_half_of_node_timeout) {
  rl_doctor *doctor = world(3);
  doctor->nodes[0].round_trip_us = 50 * MS;
  assert_well(doctor);
  doctor = world(3);
  doctor->nodes[0].round_trip_us = 50 * MS + 1;
  assert_finds(
      doctor, REDLOCK_SEVERITY_WARNING, "slow", 0,
      "one:1 took 50.0 ms to answer, and node_timeout is 100.0 ms: raise node_timeout, or move "
      "the node closer");
}

TEST(certificate_must_last_thirty_days) {
  static const struct {
    redlock_duration left_us;
    const char *message; /* NULL: none */
  } rows[] = {
      {30 * 86400 * SECONDS, NULL},
      {30 * 86400 * SECONDS - 1, "the TLS certificate of one:1 ends in 29 days: renew it"},
      {86400 * SECONDS, "the TLS certificate of one:1 ends in 1 day: renew it"},
      {0, "the TLS certificate of one:1 ends in less than 1 day: renew it"},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    rl_doctor *doctor = world(3);
    doctor->nodes[0].certificate_us = rows[i].left_us;
    assert_finds(doctor, REDLOCK_SEVERITY_WARNING, "certificate", 0, rows[i].message);
  }
}

/* --------------------------------------------------------------------------------------- clocks */

TEST(clock_differs_beyond_two_seconds_and_its_error) {
  for (unsigned guard = 0; guard < 2; guard++) {
    rl_doctor *doctor = world(3);
    doctor->guard = guard == 1;
    doctor->nodes[2].clock_us -= 2 * SECONDS + 2 * MS;
    assert_well(doctor);
    doctor = world(3);
    doctor->guard = guard == 1;
    doctor->nodes[2].clock_us -= 2 * SECONDS + 2 * MS + 1;
    assert_finds(
        doctor, guard == 1 ? REDLOCK_SEVERITY_ERROR : REDLOCK_SEVERITY_WARNING, "clock", 2,
        "the clock of three:3 is 2.0 s ahead of that of two:2: synchronise both, for example with "
        "chrony");
  }
}

TEST(clock_may_be_behind) {
  rl_doctor *doctor = world(5);
  doctor->nodes[0].clock_us += 3600 * SECONDS;
  assert_finds(
      doctor, REDLOCK_SEVERITY_WARNING, "clock", 0,
      "the clock of one:1 is 3600.0 s behind that of three:3: synchronise both, for example with "
      "chrony");
}

TEST(single_clock_is_right) {
  rl_doctor *doctor = world(3);
  doctor->nodes[0].has_clock = doctor->nodes[1].has_clock = false;
  doctor->nodes[2].clock_us = 5;
  assert_well(doctor);
}

/* --------------------------------------------------------------------------------- all together */

TEST(different_versions_are_noted_once) {
  static const struct {
    const char *versions[5]; /* NULL: that of Redis 7.2.4 */
    const char *message;     /* NULL: none */
  } rows[] = {
      {{NULL, "7.0.1"}, NULL},
      {{NULL, NULL, NULL, NULL, "unstable"}, NULL},
      {{NULL, "6.2.14", NULL, "8.0.0"},
       "one:1 runs Redis 7, and two:2 Redis 6: use one version on all nodes"},
      {{NULL, NULL, NULL, NULL, "7.2.4 valkey=8.1.0"},
       "one:1 runs Redis 7, and five:5 Valkey 8: use one version on all nodes"},
      {{"8.0.0", "7.2.4 valkey=8.1.0", "8.2.0", "8.2.0", "8.2.0"},
       "one:1 runs Redis 8, and two:2 Valkey 8: use one version on all nodes"},
  };
  for (unsigned i = 0; i < COUNT_OF(rows); i++) {
    rl_doctor *doctor = world(5);
    for (unsigned node = 0; node < 5; node++) {
      if (rows[i].versions[node] != NULL) {
        char said[64];
        (void)snprintf(said, sizeof said, "version=%s", rows[i].versions[node]);
        say(doctor, node, said);
      }
    }
    assert_finds(doctor, REDLOCK_SEVERITY_NOTE, "mixed_versions", RL_FINDING_NO_NODE,
                 rows[i].message);
  }
}

TEST(unmaintained_version_is_reported) {
  rl_finding finding;
  rl_doctor *doctor = world(3);
  for (unsigned i = 0; i < 3; i++) {
    say(doctor, i, "version=4.0.14");
  }
  assert_int_equal(count_of(doctor), 3);
  assert_true(rl_finding_at(doctor, 1, &finding));
  assert_string_equal(finding.name, "old_version");
  assert_int_equal(finding.severity, REDLOCK_SEVERITY_WARNING);
  assert_string_equal(finding.message,
                      "two:2 runs Redis 4, which is no longer maintained: upgrade it");
  for (unsigned i = 0; i < 3; i++) {
    say(doctor, i, "version=5.0.0");
  }
  assert_well(doctor);
}

TEST(few_or_even_nodes_are_noted) {
  assert_finds(world(1), REDLOCK_SEVERITY_NOTE, "node_count", RL_FINDING_NO_NODE,
               "with 1 node no lock can be acquired while it is down: use three or five");
  assert_finds(world(2), REDLOCK_SEVERITY_NOTE, "node_count", RL_FINDING_NO_NODE,
               "with 2 nodes no lock can be acquired while one is down: use three or five");
  assert_finds(world(4), REDLOCK_SEVERITY_NOTE, "node_count", RL_FINDING_NO_NODE,
               "4 nodes tolerate no more failures than 3: use an odd number");
}

/* ---------------------------------------------------------------- one server with fail-over */

/* The only node answers |said|. The note about a single node is expected besides. */
static void assert_one_finds(bool guard, redlock_duration spare_us, const char *said,
                             redlock_severity severity, const char *name, const char *message) {
  rl_doctor *doctor = world(1);
  rl_finding finding = {0};
  unsigned expected = message != NULL ? 2 : 1;
  doctor->guard = guard;
  doctor->spare_us = spare_us;
  doctor->quarantine_us = 35002 * MS;
  say(doctor, 0, said);
  assert_true(rl_finding_at(doctor, 0, &finding));
  if (message != NULL) {
    assert_string_equal(finding.message, message);
    assert_string_equal(finding.name, name);
    assert_int_equal(finding.severity, severity);
    assert_int_equal(finding.node, 0);
  } else {
    assert_string_equal(finding.name, "node_count");
  }
  assert_int_equal(count_of(doctor), expected);
  free(doctor);
}

TEST(only_node_with_replicas_needs_a_guard) {
  assert_one_finds(false, 0, "role=master replicas=2", REDLOCK_SEVERITY_WARNING, "replicas",
                   "one:1 has 2 replicas, and is the only node: client A acquires a lock, the "
                   "master crashes before it has sent the key, the replica is promoted, and client "
                   "B acquires the same lock; turn the guard on (docs/one-server.md)");
  assert_one_finds(true, 20 * SECONDS, "role=master replicas=2 good=2", REDLOCK_SEVERITY_NOTE,
                   "replicas",
                   "one:1 has 2 replicas: after a fail-over the guard grants no lock for 35.0 s, "
                   "until those that the promoted replica may lack have expired");
  assert_one_finds(false, 0, "role=master replicas=0", 0, NULL, NULL);
  assert_one_finds(true, 0, "role=master replicas=0", 0, NULL, NULL);
}

/* A promoted master without a replica refuses each write: the quarantine does not even begin. */
TEST(locks_stop_until_the_only_replica_is_back) {
  assert_one_finds(true, 20 * SECONDS, "role=master replicas=1 good=1", REDLOCK_SEVERITY_NOTE,
                   "replicas",
                   "one:1 has 1 replica and min-replicas-to-write: when either server crashes, no "
                   "lock is acquired, extended or released until it is back as a replica, and "
                   "after a fail-over none is acquired for 35.0 s more; use two replicas "
                   "(docs/one-server.md)");
}

TEST(only_node_must_stop_without_replicas) {
  rl_doctor *doctor = world(1);
  rl_finding finding = {0};
  doctor->guard = true;
  say(doctor, 0, "role=master replicas=1");
  assert_true(rl_finding_at(doctor, 0, &finding));
  assert_string_equal(finding.message,
                      "one:1 grants locks when it is cut off from its replicas, while a promoted "
                      "replica does, too: set min-replicas-to-write 1 on all servers "
                      "(docs/one-server.md)");
  assert_string_equal(finding.name, "min_replicas");
  assert_int_equal(finding.severity, REDLOCK_SEVERITY_WARNING);
  free(doctor);
  assert_one_finds(true, 2500 * MS, "role=master replicas=0 good=0", REDLOCK_SEVERITY_WARNING,
                   "min_replicas",
                   "one:1 stops min-replicas-max-lag + 2 s after it was cut off from its replicas, "
                   "and max_ttl exceeds ttl + lock_delay by 2.5 s: raise max_ttl to ttl + "
                   "lock_delay + min-replicas-max-lag + 2 s");
  assert_one_finds(true, 3 * SECONDS, "role=master replicas=0 good=0", 0, NULL, NULL);
  assert_one_finds(false, 0, "role=master replicas=0 good=0", 0, NULL, NULL);
}

TEST(only_node_that_is_a_replica_names_its_master) {
  assert_one_finds(true, 0, "role=slave read_only=1 master=fd00::9 port=6380",
                   REDLOCK_SEVERITY_ERROR, "replica",
                   "one:1 is a read-only replica of [fd00::9]:6380: name its master, by an address "
                   "that follows the master at a fail-over (docs/one-server.md)");
  assert_one_finds(true, 0, "role=slave read_only=1 port=6380", REDLOCK_SEVERITY_ERROR, "replica",
                   "one:1 is a read-only replica: name its master, by an address "
                   "that follows the master at a fail-over (docs/one-server.md)");
}

TEST(only_node_that_is_a_sentinel_is_named) {
  rl_doctor *doctor = world(1);
  rl_finding finding = {0};
  fail_to_answer(doctor, 0, "ERR unknown command 'EVAL'");
  doctor->nodes[0].sentinel = true;
  assert_true(rl_finding_at(doctor, 0, &finding));
  assert_string_equal(finding.message,
                      "one:1 is a Sentinel, which keeps no keys: name its master by a list of "
                      "Sentinels, sentinel://HOST,HOST/MASTER");
  free(doctor);
}

TEST(ttl_must_be_four_node_timeouts) {
  rl_doctor *doctor = world(3);
  doctor->ttl_us = 400 * MS;
  assert_well(doctor);
  doctor = world(3);
  doctor->ttl_us = 400 * MS - 1 * MS;
  assert_finds(
      doctor, REDLOCK_SEVERITY_WARNING, "options", RL_FINDING_NO_NODE,
      "a ttl of 399 ms leaves little of a lease after a node_timeout of 100 ms: make the ttl at "
      "least four times as long, or shorten node_timeout");
}

/* -------------------------------------------------------------------------------------- hostile */

TEST(answer_of_node_is_only_text) {
  static const char *const odd[] = {
      "=",
      " ",
      "   role",
      "role=",
      "keys=",
      "keys=99999999999999999999 key=x",
      "keys=-1",
      "maxmemory=1e9 policy=allkeys-lru",
      "replicas=%s%n",
      "version=.",
      "version=",
      "now=abc",
      "said=",
      "cluster=10",
      "cluster=",
      "aof=00",
      "role=slavery",
      "more=1",
      "run_id=",
  };
  for (unsigned i = 0; i < COUNT_OF(odd); i++) {
    rl_doctor *doctor = world(3);
    say(doctor, 1, odd[i]);
    if (strcmp(odd[i], "said=") == 0) {
      assert_int_equal(count_of(doctor), 1);
      free(doctor);
    } else {
      assert_well(doctor);
    }
  }
}

TEST(message_of_longest_names_is_cut) {
  char name[300], said[RL_REPLY_BYTES_MAX + 1];
  rl_doctor *doctor = world(3);
  rl_finding finding;
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  memset(said, 'x', sizeof said - 1);
  said[sizeof said - 1] = '\0';
  memcpy(said, "said=", 5);
  doctor->nodes[1].name = name;
  say(doctor, 1, said);
  assert_true(rl_finding_at(doctor, 0, &finding));
  assert_string_equal(finding.name, "refuses");
  assert_true(strlen(finding.message) < sizeof finding.message);
  memcpy(said, "key=x", 5);
  memcpy(said + strlen(said) - 8, " keys=12", 8);
  say(doctor, 1, said);
  assert_true(rl_finding_at(doctor, 0, &finding));
  assert_string_equal(finding.name, "endless_keys");
  free(doctor);
}

TEST(each_severity_has_name) {
  assert_string_equal(redlock_severity_name(REDLOCK_SEVERITY_NOTE), "note");
  assert_string_equal(redlock_severity_name(REDLOCK_SEVERITY_WARNING), "warning");
  assert_string_equal(redlock_severity_name(REDLOCK_SEVERITY_ERROR), "error");
  assert_string_equal(redlock_severity_name(0), "unknown");
}
