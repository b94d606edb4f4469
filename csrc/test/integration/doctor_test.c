/*
 * The doctor on real servers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sentinel.h"
#include "support.h"

#define PASSWORD "hidden-word"

static char found[8192]; /* "severity name message\n" of each finding of the last examination */

/* Examines the nodes of |client|, and frees it. Skips what all servers of tests lack. */
static int examine_as(redlock_client *client, const char *resource, unsigned flags) {
  redlock_lock *lock = new_lock(client, resource);
  redlock_finding_info info;
  size_t length = 0;
  int result = redlock_lock_doctor(lock, flags);
  found[0] = '\0';
  for (size_t i = 0; redlock_lock_finding(lock, i, &info) == REDLOCK_OK; i++) {
    if (strcmp(info.name, "persistence") != 0 && strcmp(info.name, "node_count") != 0 &&
        strcmp(info.name, "slow") != 0) {
      length += (size_t)snprintf(found + length, sizeof found - length, "%s %s %s\n",
                                 redlock_severity_name(info.severity), info.name, info.message);
      assert_true(length < sizeof found);
    }
  }
  free_with_client(lock);
  return result;
}

static redlock_client *client_of_settings(redlock_settings settings) {
  redlock_options usual = once();
  redlock_client *client;
  settings.options = &usual;
  assert_int_equal(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(redlock_client_add(client, three.nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

static redlock_client *client_with(const char *prefix) {
  return client_of_settings((redlock_settings){.prefix = prefix, .prefix_length = strlen(prefix)});
}

static int examine(void) {
  return examine_as(client_with(""), "redlock-doctor", 0);
}

/* |format| contains the address of |node|. */
static void assert_found(const char *format, unsigned node) {
  char line[1024];
  (void)snprintf(line, sizeof line, format, three.nodes[node].address);
  assert_contains(found, line);
}

static void set(unsigned node, const char *setting, const char *value) {
  assert_string_equal(farm_command(&three, node, "CONFIG", "SET", setting, value, NULL), "OK");
}

/* Returns the number of writes on node 0. */
static unsigned long changes(void) {
  const char *at =
      strstr(farm_command(&three, 0, "INFO", "persistence", NULL), "rdb_changes_since_last_save:");
  assert_non_null(at);
  return strtoul(strchr(at, ':') + 1, NULL, 10);
}

TEST(healthy_nodes_have_no_finding_and_no_change) {
  redlock_finding_info info;
  redlock_client *client = client_with("");
  redlock_lock *lock = new_lock(client, "redlock-doctor");
  for (unsigned i = 0; i < 3; i++) {
    set(i, "appendonly", "yes");
  }
  (void)farm_command(&three, 0, "SET", "one", "1", NULL);
  unsigned long before = changes();
  assert_ok(lock, redlock_lock_doctor(lock, REDLOCK_DOCTOR_KEYS));
  for (size_t i = 0; redlock_lock_finding(lock, i, &info) == REDLOCK_OK; i++) {
    if (strcmp(info.name, "slow") != 0) { /* a busy machine */
      fail_msg("%s", info.message);
    }
  }
  assert_int_equal(changes(), before);
  assert_string_equal(farm_command(&three, 0, "DBSIZE", NULL), "1");
  for (unsigned i = 0; i < 3; i++) {
    set(i, "appendonly", "no");
  }
  free_with_client(lock);
}

/* Returns true if the node is a replica that has all data. */
static bool follows(unsigned node) {
  return strstr(farm_command(&three, node, "INFO", "replication", NULL), "master_link_status:up") !=
         NULL;
}

TEST(replicas_and_their_master_are_found) {
  char port[16];
  (void)snprintf(port, sizeof port, "%d", three.nodes[0].port);
  set(0, "repl-diskless-sync-delay", "0");
  set(2, "replica-read-only", "no");
  for (unsigned i = 1; i < 3; i++) {
    assert_string_equal(farm_command(&three, i, "REPLICAOF", "127.0.0.1", port, NULL), "OK");
  }
  eventually(follows(1) && follows(2)); /* A node that loads data would refuse. */
  assert_int_equal(examine(), REDLOCK_OK);
  for (unsigned i = 1; i < 3; i++) {
    assert_string_equal(farm_command(&three, i, "REPLICAOF", "NO", "ONE", NULL), "OK");
  }
  set(2, "replica-read-only", "yes");
  assert_found("error replica %s is a read-only replica", 1);
  assert_found("error writable_replica %s is a replica that can be written to", 2);
  assert_found("note replicas %s has 2 replicas", 0);
  assert_null(strstr(found, "refuses"));
}

/* Examines one server as the only node of a client with leases of 10 s. */
static void examine_one(const char *address, bool guard) {
  redlock_options options = once();
  redlock_client *client;
  options.ttl_us = 10 * REDLOCK_SECONDS;
  redlock_settings settings = {.options = &options, .guard = guard ? REDLOCK_YES : REDLOCK_NO};
  assert_int_equal(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_add(client, address, NULL, 0), REDLOCK_OK);
  (void)examine_as(client, "redlock-doctor", 0);
}

TEST(single_server_with_failover_is_found) {
  sentinel watch;
  char line[256], port[16];
  (void)snprintf(port, sizeof port, "%d", three.nodes[0].port);
  set(0, "repl-diskless-sync-delay", "0");
  assert_string_equal(farm_command(&three, 1, "REPLICAOF", "127.0.0.1", port, NULL), "OK");
  eventually(follows(1));
  examine_one(three.nodes[0].address, false);
  assert_found("warning replicas %s has 1 replica, and is the only node: client A acquires", 0);
  examine_one(three.nodes[0].address, true);
  assert_found("note replicas %s has 1 replica: after a fail-over the guard grants no lock for 35.0"
               " s",
               0);
  assert_found("warning min_replicas %s grants locks when it is cut off", 0);
  set(0, "min-replicas-to-write", "1");
  examine_one(three.nodes[0].address, true);
  assert_found("note replicas %s has 1 replica and min-replicas-to-write: when either server", 0);
  assert_null(strstr(found, "min_replicas"));
  examine_one(three.nodes[1].address, true);
  (void)snprintf(line, sizeof line, "error replica %%s is a read-only replica of 127.0.0.1:%s",
                 port);
  assert_found(line, 1);
  assert_string_equal(farm_command(&three, 1, "REPLICAOF", "NO", "ONE", NULL), "OK");
  examine_one(three.nodes[0].address, true);
  assert_found("error refuses %s refuses what a lock needs: NOREPLICAS", 0);
  assert_contains(found, "Start a replica, or lower min-replicas-to-write");
  set(0, "min-replicas-to-write", "0");
  sentinel_start(&watch, three.scratch.path, three.nodes[0].port, NULL);
  examine_one(watch.address, true);
  sentinel_end(&watch);
  assert_contains(found,
                  "is a Sentinel, which keeps no keys: name its master by a list of Sentinels");
}

TEST(eviction_and_full_memory_are_found) {
  set(0, "maxmemory-policy", "allkeys-lru");
  set(0, "maxmemory", "100mb");
  set(1, "maxmemory", "1");
  set(2, "maxmemory", "100mb");
  assert_int_equal(examine(), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    set(i, "maxmemory", "0");
    set(i, "maxmemory-policy", "noeviction");
  }
  assert_found("error eviction %s evicts keys, including locks, when its 104857600 bytes are "
               "full (allkeys-lru)",
               0);
  assert_found("error refuses %s refuses what a lock needs: OOM command not allowed", 1);
  assert_null(strstr(found, three.nodes[2].address));
}

static redlock_client *client_as_app(const char *password) {
  return client_of_settings((redlock_settings){.username = "app", .password = password});
}

static void let_in(const char *keys, const char *but) {
  farm_command_all(&three, "ACL", "SETUSER", "app", "reset", "on", ">" PASSWORD, keys, "&*",
                   "+@all", but, NULL);
}

TEST(each_missing_right_is_named) {
  static const char *const needed[] = {"set",  "get",     "del",    "pttl",
                                       "eval", "pexpire", "exists", "evalsha"};
  char but[32], line[256];
  for (unsigned i = 0; i < sizeof needed / sizeof needed[0]; i++) {
    (void)snprintf(but, sizeof but, "-%s", needed[i]);
    let_in("~*", but);
    (void)examine_as(client_as_app(PASSWORD), "r", 0);
    for (unsigned k = 0; k < 3; k++) {
      (void)snprintf(line, sizeof line,
                     "error rights %s does not let its user run %s, which a lock needs: ACL "
                     "SETUSER app +%s\n",
                     three.nodes[k].address, needed[i], needed[i]);
      assert_contains(found, line);
    }
    assert_null(strstr(found, PASSWORD));
  }
  let_in("~*", "+@all");
  (void)examine_as(client_as_app(PASSWORD), "r", REDLOCK_DOCTOR_KEYS);
  assert_string_equal(found, "");
}

/* Rights without which locks work, and the beginning of the finding. */
TEST(rights_that_no_lock_needs_are_no_error) {
  static const char *const cases[][2] = {
      {"-type", "warning rights %s does not let its user run type, which inspect, watch and"},
      {"-strlen", "warning rights %s does not let its user run strlen, which inspect, watch and"},
      {"-info", "note rights %s does not let its user run info, so the doctor knows little"},
      {"-time", "note rights %s does not let its user run time, so the doctor knows little"},
      {"-scan", "warning rights %s does not let its user run scan, strlen, so its keys"},
      {"-strlen", "warning rights %s does not let its user run scan, strlen, so its keys"},
      {"-subscribe",
       "warning rights %s does not let its user run subscribe, so it does not notify"},
      {"-append", "warning rights %s does not let its user run append, so it does not notify"},
      {"resetchannels", "warning rights %s does not let its user run publish and subscribe on "},
      {"-client", "note rights %s does not let its user run client|setname, "},
  };
  for (unsigned i = 0; i < 100; i++) {
    char key[16];
    (void)snprintf(key, sizeof key, "key %u", i);
    (void)farm_command(&three, 1, "SET", key, "a value of more than sixteen", NULL);
  }
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    let_in("~*", cases[i][0]);
    assert_int_equal(examine_as(client_as_app(PASSWORD), "r", REDLOCK_DOCTOR_KEYS), REDLOCK_OK);
    assert_found(cases[i][1], 1);
    assert_null(strstr(found, "error"));
  }
}

/* Copies the rights in the first line of |path| that begins with |start|. */
static void read_rights(char rights[static 1024], const char *path, const char *start) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  do {
    assert_non_null(fgets(rights, 1024, file));
  } while (strncmp(rights, start, strlen(start)) != 0);
  (void)fclose(file);
  memmove(rights, rights + strlen(start), strlen(rights + strlen(start)) + 1);
  rights[strcspn(rights, "\n")] = '\0';
}

/* The user "locks" of the manual, without the right |but|. */
static void let_in_as_documented(const char *rights, const char *but) {
  char copy[1024], *rest = NULL;
  (void)snprintf(copy, sizeof copy, "%s", rights);
  farm_command_all(&three, "ACL", "SETUSER", "locks", "reset", NULL);
  for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    if (but == NULL || strcmp(word, but) != 0) {
      farm_command_all(&three, "ACL", "SETUSER", "locks", word, NULL);
    }
  }
}

static void examine_as_documented(void) {
  (void)examine_as(
      client_of_settings((redlock_settings){
          .username = "locks", .password = "secret", .prefix = "lock:", .prefix_length = 5}),
      "r", 0);
}

/* The manual has an ACL. The doctor finds it sufficient, and misses each of its rights. */
TEST(doctor_checks_each_documented_right) {
  char rights[1024], copy[1024], *rest = NULL;
  read_rights(rights, "docs/operating.md", "    ACL SETUSER locks ");
  let_in_as_documented(rights, NULL);
  examine_as_documented();
  assert_null(strstr(found, "error "));
  assert_null(strstr(found, "warning "));
  (void)snprintf(copy, sizeof copy, "%s", rights);
  for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    char rule[64];
    if ((word[0] != '+' && word[0] != '&') || strcmp(word, "+select") == 0) {
      continue; /* The database is 0. */
    }
    let_in_as_documented(rights, word);
    examine_as_documented();
    (void)snprintf(rule, sizeof rule, " %s", word);
    for (unsigned k = 0; k < 3; k++) {
      assert_contains(found, three.nodes[k].address);
    }
    assert_contains(strstr(found, "ACL SETUSER locks"), rule);
  }
}

TEST(forbidden_keys_are_found_by_the_resource) {
  let_in("~orders:*", "+@all");
  assert_int_equal(examine_as(client_as_app(PASSWORD), "orders:42", 0), REDLOCK_OK);
  assert_string_equal(found, "");
  assert_int_equal(examine_as(client_as_app(PASSWORD), "order", 0), REDLOCK_OK);
  assert_found("error rights %s does not let its user touch keys like 'order': ACL SETUSER app ",
               2);
  let_in("~orders:42", "+@all"); /* A right to one key alone is no error. */
  assert_int_equal(examine_as(client_as_app(PASSWORD), "orders:42", 0), REDLOCK_OK);
  assert_found("note rights %s lets its user touch 'orders:42', but no key like it", 1);
  assert_null(strstr(found, "error"));
}

TEST(finding_does_not_contain_the_wrong_password) {
  let_in("~*", "+@all");
  assert_int_equal(examine_as(client_as_app(PASSWORD " and more"), "r", 0), REDLOCK_E_UNAVAILABLE);
  assert_found("error down %s refuses: WRONGPASS", 0);
  assert_null(strstr(found, PASSWORD));
}

/*
 * By another of its addresses, and by a Unix socket with another database, which only the run_id
 * reveals.
 */
TEST(same_server_is_found_by_any_address) {
  farm one;
  char path[512], address[600], line[1024];
  scratch_directory scratch;
  assert_true(scratch_open(&scratch, "doctor"));
  (void)snprintf(path, sizeof path, "%s/socket", scratch.path);
  (void)snprintf(address, sizeof address, "unix://%s?db=3", path);
  const char *const arguments[] = {"--unixsocket", path, NULL};
  farm_start(&one, 1, arguments);
  char by_name[64];
  (void)snprintf(by_name, sizeof by_name, "localhost:%d", one.nodes[0].port);
  const char *const addresses[] = {one.nodes[0].address, address, by_name};
  (void)examine_as(client_at(addresses, 3, NULL), "r", 0);
  (void)snprintf(line, sizeof line, "error same_server unix:%s is the same server as %s (run_id ",
                 path, one.nodes[0].address);
  assert_contains(found, line);
  assert_contains(found, "), with another database: ");
  (void)snprintf(line, sizeof line, "error same_server %s has no vote: it is the same server as %s",
                 by_name, one.nodes[0].address);
  assert_contains(found, line);
  farm_end(&one);
  scratch_close(&scratch);
}

TEST(cluster_node_is_found) {
  farm one;
  static const char *const arguments[] = {"--cluster-enabled", "yes", NULL};
  farm_start(&one, 1, arguments);
  (void)examine_as(client_of(&one, 1, NULL), "r", 0);
  assert_int_equal(strncmp(found, "error cluster ", 14), 0);
  assert_null(strstr(found, "rights"));
  assert_null(strstr(found, "refuses"));
  farm_end(&one);
}

/* The prefix has special characters of patterns. */
TEST(locks_without_expiry_are_found_under_the_prefix) {
  static const char token[] = "0123456789abcdef0123456789abcdef01234567";
  static const char *const unrelated[] = {"ax[b]:lost", "a*b:lost", "a:lost"};
  (void)farm_command(&three, 1, "SET", "a*[b]:lost", token, NULL);
  (void)farm_command(&three, 1, "SET", "a*[b]:held", token, "PX", "60000", NULL);
  (void)farm_command(&three, 1, "SET", "a*[b]:short", "0123456789abcde", NULL);
  (void)farm_command(&three, 1, "SET", "a*[b]:count", "01234567890123456789", NULL);
  (void)farm_command(&three, 1, "SET", "a*[b]:text", "a text of a few words", NULL);
  (void)farm_command(&three, 1, "RPUSH", "a*[b]:list", token, NULL);
  for (unsigned i = 0; i < sizeof unrelated / sizeof unrelated[0]; i++) {
    (void)farm_command(&three, 0, "SET", unrelated[i], token, NULL);
  }
  assert_int_equal(examine_as(client_with("a*[b]:"), "r", 0), REDLOCK_OK);
  assert_string_equal(found, "");
  assert_int_equal(examine_as(client_with("a*[b]:"), "r", REDLOCK_DOCTOR_KEYS), REDLOCK_OK);
  assert_found("warning endless_keys %s holds 1 key without an expiry that looks like a lock", 1);
  assert_null(strstr(found, three.nodes[0].address));
}

TEST(limit_of_searched_keys_is_reported) {
  assert_string_equal(
      farm_command(&three, 0, "EVAL",
                   "for i=1,15000 do redis.call('SET','k'..i,'0123456789abcdef') end return 'OK'",
                   "0", NULL),
      "OK");
  assert_int_equal(examine_as(client_with(""), "r", REDLOCK_DOCTOR_KEYS), REDLOCK_OK);
  assert_found("warning endless_keys %s holds at least ", 0);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = three_start, .before = three_reset, .end = three_end});
}
