/*
 * The guard on real servers: a node forgets a grant, and a rival tries to acquire at once.
 *
 * SPDX-License-Identifier: MIT
 *
 * A holder has the lock on two of three nodes, so that one forgetful node is enough for a second
 * holder. One of seven disasters happens to that node. Without a guard the rival gets the lock,
 * with a guard it never does. GUARD_ROUNDS is the number of rounds [5]; the job long/guard runs
 * 1,000.
 */
#include <time.h>

#include "relay.h"
#include "support.h"
#include "wire/rl_command.h"

#define KEY "r"
#define RECORD "redlock:lineage"
#define FORGETFUL 1 /* the node; a fourth server may replace it */
#define SPARE 3
#define RIVAL_TRIES 8

static farm four;
static const char *cluster; /* of all clients; NULL: none */
static relay way;           /* to the forgetful node */

static int start(void **state) {
  static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};
  farm_start(&four, 4, at_once);
  relay_start(&way, four.nodes[FORGETFUL].port, 0);
  return 0;
}

static int end(void **state) {
  relay_end(&way);
  farm_end(&four);
  return 0;
}

/* Empties all servers; the proxy leads to the second one. */
static int reset(void **state) {
  farm_reset(&four);
  for (unsigned i = 0; i < 4; i++) {
    (void)farm_command(&four, i, "REPLICAOF", "NO", "ONE", NULL);
  }
  relay_turn_to(&way, four.nodes[FORGETFUL].port, RELAY_CLOSE);
  cluster = NULL;
  return 0;
}

static unsigned rounds_wanted(void) {
  const char *text = getenv("GUARD_ROUNDS"); /* NOLINT(concurrency-mt-unsafe) */
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 5;
}

static redlock_client *guarded(bool guard, redlock_duration max_ttl_us, redlock_duration ttl_us) {
  redlock_client *client;
  redlock_options options = once();
  options.ttl_us = ttl_us;
  redlock_settings settings = {.options = &options};
  if (guard) {
    settings.guard = REDLOCK_YES;
    settings.guard_max_ttl_us = max_ttl_us;
    settings.guard_cluster = cluster;
  }
  assert_int_equal(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    const char *address = i == FORGETFUL ? way.address : four.nodes[i].address;
    assert_int_equal(redlock_client_add(client, address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

/* --------------------------------------------------------------------------------- disasters */

typedef void disaster(void);

/* The node has no file. */
static void killed(void) {
  farm_kill(&four, FORGETFUL);
  farm_restart(&four, FORGETFUL);
}

static void flushed(void) {
  assert_string_equal(farm_command(&four, FORGETFUL, "FLUSHALL", NULL), "OK");
}

/* A replica, which had missed the last write, has the address of the node. */
static void promoted(void) {
  relay_turn_to(&way, four.nodes[SPARE].port, RELAY_CLOSE);
}

/* The same, but clients keep their connections. */
static void switched(void) {
  relay_turn_to(&way, four.nodes[SPARE].port, RELAY_KEEP);
}

/* Waits until |replica| has all that |master| has. */
static void follow(unsigned replica, unsigned master) {
  char port[16];
  (void)snprintf(port, sizeof port, "%d", four.nodes[master].port);
  assert_string_equal(farm_command(&four, replica, "REPLICAOF", "127.0.0.1", port, NULL), "OK");
  eventually(strstr(farm_command(&four, replica, "INFO", "replication", NULL),
                    "master_link_status:up") != NULL);
}

static void end_replication(unsigned replica) {
  assert_string_equal(farm_command(&four, replica, "REPLICAOF", "NO", "ONE", NULL), "OK");
}

/*
 * The node becomes a replica of the spare server, and a master again: the same process with the
 * same record.
 */
static void failed_back(void) {
  follow(FORGETFUL, SPARE);
  end_replication(FORGETFUL);
}

/* The running process loads an older copy, with the record and its seal, but without the key. */
static void loaded(void) {
  assert_string_equal(
      farm_command(&four, FORGETFUL, "EVAL",
                   "local keys,copies=redis.call('KEYS',KEYS[1]..'*'),{} for i=1,#keys do "
                   "copies[i]=redis.call('DUMP',keys[i]) end redis.call('FLUSHALL') "
                   "for i=1,#keys do redis.call('RESTORE',keys[i],0,copies[i]) end return 'OK'",
                   "1", RECORD, NULL),
      "OK");
}

/* Loads the snapshot that was saved before the acquire. */
static void reloaded(void) {
  assert_string_equal(farm_command(&four, FORGETFUL, "DEBUG", "RELOAD", "NOSAVE", NULL), "OK");
}

/* ------------------------------------------------------------------- before the acquire */

typedef void preparation(unsigned round);

static void save(unsigned round) {
  (void)round;
  /* A background save for a replica makes SAVE fail for a moment. */
  eventually(strcmp(farm_command(&four, FORGETFUL, "SAVE", NULL), "OK") == 0);
}

/*
 * The spare server has all that the node has, and gets no later write. A real replica takes a
 * second, so later rounds copy only the record.
 */
static void fall_behind(unsigned round) {
  char record[512];
  if (round >= 2) {
    assert_string_equal(farm_command(&four, SPARE, "FLUSHALL", NULL), "OK");
    const char *known = farm_command(&four, FORGETFUL, "GET", RECORD, NULL);
    (void)snprintf(record, sizeof record, "%s", known);
    assert_string_equal(farm_command(&four, SPARE, "SET", RECORD, record, NULL), "OK");
    return;
  }
  follow(SPARE, FORGETFUL);
  end_replication(SPARE);
}

/* ------------------------------------------------------------------------------------ rounds */

/* Runs one round. Returns true if there were two holders. */
static bool round_of(redlock_lock *holder, redlock_lock *rival, disaster *happens) {
  assert_string_equal(farm_command(&four, 2, "SET", KEY, "another", "PX", "60000", NULL), "OK");
  int error = redlock_lock_acquire(holder, NULL, NULL);
  assert_ok(holder, error);
  assert_string_equal(farm_command(&four, 2, "DEL", KEY, NULL), "1");
  happens();
  bool two = false;
  /* At once, and again when the node is up. */
  for (unsigned i = 0; i < RIVAL_TRIES && !two; i++) {
    two =
        redlock_lock_acquire(rival, NULL, NULL) == REDLOCK_OK && redlock_lock_remaining(holder) > 0;
    pump(redlock_lock_client(rival), 1);
  }
  (void)redlock_lock_release(rival);
  (void)redlock_lock_release(holder);
  return two;
}

/* Restores the second server, deletes the key, and ends the quarantine of the guard. */
static void tidy_up(redlock_client *client, bool guard) {
  if (way.order->port != four.nodes[FORGETFUL].port) {
    relay_turn_to(&way, four.nodes[FORGETFUL].port, RELAY_CLOSE);
  }
  for (unsigned i = 0; i < 3; i++) {
    (void)farm_command(&four, i, "DEL", KEY, NULL);
  }
  if (guard) {
    redlock_time until_us = redlock_now() + EVENTUALLY_US;
    int error = redlock_client_bootstrap(client);
    redlock_node_info info;
    while (error != REDLOCK_OK ||
           redlock_client_node_info(client, FORGETFUL, &info) != REDLOCK_OK ||
           info.state != REDLOCK_NODE_UP || info.quarantined_us != 0) {
      assert_true(redlock_now() < until_us);
      error = redlock_client_bootstrap(client);
    }
  }
}

static unsigned doubles(disaster *happens, preparation *prepare, bool guard) {
  redlock_client *one = guarded(guard, 0, 20 * REDLOCK_SECONDS);
  redlock_client *other = guarded(guard, 0, 20 * REDLOCK_SECONDS);
  redlock_lock *holder = new_lock(one, KEY);
  redlock_lock *rival = new_lock(other, KEY);
  unsigned rounds = guard ? rounds_wanted() : 3;
  rounds =
      happens == failed_back ? (rounds + 19) / 20 + 2 : rounds; /* Each round takes a second. */
  unsigned two = 0;
  for (unsigned i = 0; i < rounds; i++) {
    tidy_up(one, guard);
    tidy_up(other, guard);
    /* Both clients are connected to all nodes, and know their records. */
    for (unsigned k = 0; k < 2; k++) {
      redlock_lock *lock = new_lock(k == 0 ? one : other, "warm-up");
      while (redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_OK ||
             !all_up(k == 0 ? one : other)) {
        pump(k == 0 ? one : other, 2);
        (void)redlock_lock_release(lock);
      }
      (void)redlock_lock_release(lock);
      redlock_lock_free(lock);
    }
    if (prepare != NULL) {
      prepare(i);
    }
    two += round_of(holder, rival, happens);
  }
  print_message("# %u of %u rounds had two holders%s\n", two, rounds,
                guard ? " with the guard" : "");
  redlock_lock_free(holder);
  redlock_lock_free(rival);
  redlock_client_free(one);
  redlock_client_free(other);
  return two;
}

static const struct {
  const char *name;
  disaster *happens;
  preparation *prepare;
} disasters[] = {
    {"a crash", killed, NULL},
    {"FLUSHALL", flushed, NULL},
    {"the promotion of a replica", promoted, fall_behind},
    {"a proxy that switches to a replica", switched, fall_behind},
    {"a fail-over and back", failed_back, fall_behind},
    {"an older copy", loaded, NULL},
    {"an older snapshot", reloaded, save},
};
#define DISASTERS (sizeof disasters / sizeof disasters[0])

TEST(forgetful_node_grants_nothing) {
  for (size_t i = 0; i < DISASTERS; i++) {
    print_message("# %s:\n", disasters[i].name);
    assert_int_equal(doubles(disasters[i].happens, disasters[i].prepare, true), 0);
    (void)reset(state);
  }
}

/* Negative control: without a guard each of these makes two holders. */
TEST(forgetful_node_without_a_guard_grants) {
  for (size_t i = 0; i < DISASTERS; i++) {
    print_message("# %s:\n", disasters[i].name);
    assert_true(doubles(disasters[i].happens, disasters[i].prepare, false) > 0);
    (void)reset(state);
  }
}

/* Valkey 8.1 and 9.1 count the name of a key when they choose how to store its value. */
TEST(forgetful_node_with_the_longest_cluster_name_grants_nothing) {
  cluster = "0123456789012345678901234567890123456789012345678901234567890123";
  assert_int_equal(doubles(loaded, NULL, true), 0);
  assert_int_equal(doubles(reloaded, save, true), 0);
  assert_int_equal(doubles(failed_back, fall_behind, true), 0);
}

/*
 * The node becomes a replica that never reaches its master, so that it keeps its data and its
 * replication history. The spare server has the address until it votes, and grants. Then clients
 * ask the node while it is still a replica, and it is promoted.
 */
TEST(replica_without_a_master_grants_nothing) {
  redlock_client *client = guarded(true, 2 * REDLOCK_SECONDS, 2 * REDLOCK_SECONDS);
  redlock_client *rivals = guarded(true, 2 * REDLOCK_SECONDS, 2 * REDLOCK_SECONDS);
  redlock_lock *holder = new_lock(client, KEY), *rival = new_lock(rivals, KEY);
  redlock_lock *other = new_lock(rivals, "other");
  assert_int_equal(redlock_client_bootstrap(rivals), REDLOCK_OK);
  assert_string_equal(farm_command(&four, FORGETFUL, "SET", "other", "another", NULL), "OK");
  follow(SPARE, FORGETFUL);
  end_replication(SPARE);
  assert_string_equal(farm_command(&four, FORGETFUL, "REPLICAOF", "127.0.0.1", "1", NULL), "OK");
  relay_turn_to(&way, four.nodes[SPARE].port, RELAY_CLOSE);
  assert_string_equal(farm_command(&four, 0, "SET", KEY, "another", "PX", "60000", NULL), "OK");
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  while (redlock_lock_acquire(holder, NULL, NULL) != REDLOCK_OK) { /* The quarantine is 6 s. */
    assert_true(redlock_now() < until_us);
    (void)poll(NULL, 0, 20);
  }
  assert_string_equal(farm_command(&four, 0, "DEL", KEY, NULL), "1");
  relay_turn_to(&way, four.nodes[FORGETFUL].port, RELAY_CLOSE);
  for (unsigned i = 0; i < 5; i++) { /* A reply of a replica is neither a vote nor a proof. */
    (void)redlock_lock_acquire(other, NULL, NULL);
    assert_int_not_equal(vote_of(other, FORGETFUL), REDLOCK_VOTE_TAKEN);
    (void)redlock_lock_release(other);
  }
  end_replication(FORGETFUL);
  do {
    int error = redlock_lock_acquire(rival, NULL, NULL);
    assert_true(error != REDLOCK_OK || redlock_lock_remaining(holder) == 0);
    (void)redlock_lock_release(rival);
  } while (redlock_lock_remaining(holder) > 0);
  redlock_lock_free(other);
  redlock_lock_free(rival);
  redlock_lock_free(holder);
  redlock_client_free(rivals);
  redlock_client_free(client);
}

static const char *encoding_of_seal(unsigned node) {
  return farm_command(&four, node, "EVAL",
                      "local k=redis.call('KEYS',KEYS[1]..' *') return #k==1 and "
                      "redis.call('OBJECT','ENCODING',k[1]) or 'none'",
                      "1", RECORD, NULL);
}

/* A replica gets the record, but no seal that would prove its own memory. */
TEST(seal_is_not_replicated) {
  redlock_client *client = guarded(true, 0, 10 * REDLOCK_SECONDS);
  follow(SPARE, FORGETFUL);
  assert_int_equal(redlock_client_bootstrap(client), REDLOCK_OK);
  assert_string_equal(encoding_of_seal(FORGETFUL), "raw");
  eventually(strcmp(encoding_of_seal(SPARE), "none") != 0);
  assert_string_equal(encoding_of_seal(SPARE), "embstr");
  end_replication(SPARE);
  redlock_client_free(client);
}

/*
 * Runs the guard's script with a value that this server stores as "raw" at once. Newer servers do
 * so with short values under long names. A copy of such a seal would look like the seal.
 */
TEST(seal_that_copies_preserve_is_not_created) {
  const char *text = rl_script_guard_text(), *value = strstr(text, "'ok'");
  char script[8192], longer[200];
  assert_non_null(value);
  (void)memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  (void)snprintf(script, sizeof script, "%.*s'%s'%s", (int)(value - text), text, longer, value + 4);
  assert_string_equal(
      farm_command(&four, 0, "EVAL", script, "1", RECORD, "make", "nodes=3", "0", "", "0", NULL),
      "-NOSEAL a short string is raw after SET and raw after APPEND");
  assert_string_equal(farm_command(&four, 0, "DBSIZE", NULL), "0");
  const char *reply =
      farm_command(&four, 0, "EVAL", text, "1", RECORD, "make", "nodes=3", "0", "", "0", NULL);
  assert_int_not_equal(reply[0], '-');
  assert_string_equal(farm_command(&four, 0, "DBSIZE", NULL), "2"); /* the record and its seal */
}

/*
 * ---------------------------------------------------------------------------------- the end of the
 * quarantine
 */

static redlock_time wall_clock(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  return (redlock_time)now.tv_sec * REDLOCK_SECONDS + (redlock_time)now.tv_nsec / 1000;
}

/* Returns the creation time of the forgetful node's record. Its clock is ours. */
static redlock_time record_time(void) {
  const char *record = farm_command(&four, FORGETFUL, "GET", RECORD, NULL);
  const char *at = record != NULL ? strchr(record, ' ') : NULL;
  return at != NULL ? strtoull(at, NULL, 10) : 0;
}

TEST(node_votes_after_its_quarantine) {
  redlock_client *client =
      guarded(true, REDLOCK_SECONDS, REDLOCK_SECONDS); /* The quarantine is 6 s. */
  redlock_lock *lock = new_lock(client, KEY);
  assert_int_equal(redlock_client_bootstrap(client), REDLOCK_OK);
  farm_kill(&four, 0); /* Both other nodes must vote. */
  killed();
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  while (redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_OK) {
    assert_true(redlock_now() < until_us);
    (void)poll(NULL, 0, 1);
  }
  redlock_time voted_us = wall_clock();
  redlock_time made_us = record_time();
  assert_true(made_us > 0);
  assert_true(voted_us >= made_us + 6 * REDLOCK_SECONDS);
  print_message("# it voted %.1f ms after its quarantine\n",
                (double)(voted_us - made_us - 6 * REDLOCK_SECONDS) / 1000);
  free_with_client(lock);
}

/* ------------------------------------------------------------------------------------ refusals */

/* Acquires once more: node 0 may answer the guard after the other nodes have granted. */
static bool missing_rights_are_reported(redlock_lock *lock) {
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  bool reported = vote_of(lock, 0) == REDLOCK_VOTE_ERROR &&
                  vote_says(lock, 0,
                            "; the guard needs +eval +evalsha +info +time +get +set +del +append "
                            "+object +select ~redlock:lineage*");
  assert_ok(lock, redlock_lock_release(lock));
  return reported;
}

TEST(missing_rights_are_named) {
  redlock_client *client = guarded(true, 0, 10 * REDLOCK_SECONDS);
  redlock_lock *lock = new_lock(client, KEY);
  assert_int_equal(redlock_client_bootstrap(client), REDLOCK_OK);
  assert_string_equal(farm_command(&four, 0, "ACL", "SETUSER", "default", "-info", NULL), "OK");
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL)); /* The client knows the record. */
  assert_ok(lock, redlock_lock_release(lock));
  redlock_client_free(redlock_client_ref(client));
  redlock_client *later = guarded(true, 0, 10 * REDLOCK_SECONDS);
  redlock_lock *other = new_lock(later, KEY);
  pump_until(client, farm_count(&four, KEY, NULL) == 0);
  eventually(missing_rights_are_reported(other));
  assert_string_equal(farm_command(&four, 0, "ACL", "SETUSER", "default", "+@all", NULL), "OK");
  redlock_lock_free(other);
  redlock_lock_free(lock);
  redlock_client_free(later);
  redlock_client_free(client);
}

TEST(clients_with_other_settings_get_no_vote) {
  redlock_client *client = guarded(true, 0, 10 * REDLOCK_SECONDS);
  redlock_client *other = guarded(true, 20 * REDLOCK_SECONDS, 10 * REDLOCK_SECONDS);
  redlock_lock *lock = new_lock(other, KEY);
  assert_int_equal(redlock_client_bootstrap(client), REDLOCK_OK);
  eventually(redlock_lock_acquire(lock, NULL, NULL) == REDLOCK_E_UNAVAILABLE &&
             strstr(redlock_lock_message(lock),
                    "it is guarded for other clients: max_ttl=30000 (ours max_ttl=20000)") != NULL);
  redlock_lock_free(lock);
  redlock_client_free(other);
  redlock_client_free(client);
}

/* Clients of two databases do not exclude each other. */
TEST(clients_of_another_database_get_no_vote) {
  char address[80];
  redlock_client *client = guarded(true, 0, 10 * REDLOCK_SECONDS), *other;
  redlock_settings settings = {.guard = REDLOCK_YES};
  redlock_options options = once();
  options.ttl_us = 10 * REDLOCK_SECONDS;
  settings.options = &options;
  assert_int_equal(redlock_client_bootstrap(client), REDLOCK_OK);
  assert_int_equal(redlock_client_new(&other, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    (void)snprintf(address, sizeof address, "redis://%s/3", four.nodes[i].address);
    assert_int_equal(redlock_client_add(other, address, NULL, 0), REDLOCK_OK);
  }
  redlock_lock *lock = new_lock(other, KEY), *first = new_lock(client, KEY);
  redlock_time until_us = redlock_now() + EVENTUALLY_US;
  do {
    assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_UNAVAILABLE);
    if (redlock_now() > until_us) {
      fail_msg("%s", redlock_lock_message(lock));
    }
    (void)poll(NULL, 0, 2);
  } while (strstr(redlock_lock_message(lock), " database=0 (ours ") == NULL);
  assert_ok(first, redlock_lock_acquire(first, NULL, NULL));
  assert_ok(first, redlock_lock_release(first));
  redlock_lock_free(first);
  redlock_lock_free(lock);
  redlock_client_free(other);
  redlock_client_free(client);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .before = reset, .end = end});
}
