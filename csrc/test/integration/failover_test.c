/*
 * One server with fail-over: a master, a replica, and one address that follows the master, or a
 * Sentinel that knows it.
 *
 * SPDX-License-Identifier: MIT
 *
 * A holder has the lock on the master. The replica lacks it, and is promoted. A client that tries
 * all the time, and a new client, must not get the lock while the holder's lease lasts. Without a
 * guard they do. The servers change their roles in each round, so that every second round is the
 * way back. FAILOVER_ROUNDS is the number of rounds of each way [2], FAILOVER_WAY the only way, and
 * FAILOVER_TEST a pattern of the tests to run. The jobs long/failover run 250 rounds of each way
 * (`make failover-1000`).
 */
#include "relay.h"
#include "sentinel.h"
#include "support.h"

#define KEY "r"
#define PATIENCE_US (180 * REDLOCK_SECONDS) /* A Sentinel on a stalled machine waits for 30 s. */
#define CLEAN_EVERY 4 /* Of so many rounds the second has a replica that does not lag. */

typedef struct pair {
  farm servers;
  relay links[2]; /* for the replication: a replica connects to its master by the master's link */
  relay way;      /* the address of the clients */
  sentinel watch;
  unsigned master;
} pair;
static pair two;

static unsigned replica(void) {
  return 1 - two.master;
}

static int start(void **state) {
  static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};
  farm_start(&two.servers, 2, at_once);
  for (unsigned i = 0; i < 2; i++) {
    relay_start(&two.links[i], two.servers.nodes[i].port, 0);
  }
  relay_start(&two.way, two.servers.nodes[0].port, 0);
  return 0;
}

static int end(void **state) {
  relay_end(&two.way);
  for (unsigned i = 0; i < 2; i++) {
    relay_end(&two.links[i]);
  }
  farm_end(&two.servers);
  return 0;
}

static int reset(void **state) {
  for (unsigned i = 0; i < 2; i++) {
    if (two.servers.nodes[i].pid == 0) {
      farm_restart(&two.servers, i);
    }
    (void)farm_command(&two.servers, i, "REPLICAOF", "NO", "ONE", NULL);
    (void)farm_command(&two.servers, i, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
  }
  farm_reset(&two.servers);
  two.master = 0;
  relay_turn_to(&two.way, two.servers.nodes[0].port, RELAY_CLOSE);
  return 0;
}

/* As eventually(), with PATIENCE_US. */
#define at_last(condition)                                                                         \
  do {                                                                                             \
    redlock_time at_last_us = redlock_now() + PATIENCE_US;                                         \
    while (!(condition)) {                                                                         \
      if (redlock_now() > at_last_us) {                                                            \
        fail_msg("in vain waited for: %s", #condition);                                            \
      }                                                                                            \
      (void)poll(NULL, 0, 5);                                                                      \
    }                                                                                              \
  } while (0)

static unsigned rounds_wanted(void) {
  const char *text = getenv("FAILOVER_ROUNDS"); /* NOLINT(concurrency-mt-unsafe) */
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 2;
}

/* --------------------------------------------------------------------------------- the servers */

static int port_of_link(unsigned node) {
  return (int)strtol(strchr(two.links[node].address, ':') + 1, NULL, 10);
}

static unsigned long long reported(unsigned node, const char *name) {
  char wanted[64];
  const char *info = farm_command(&two.servers, node, "INFO", "replication", NULL);
  (void)snprintf(wanted, sizeof wanted, "\n%s:", name);
  const char *found = info != NULL ? strstr(info, wanted) : NULL;
  return found != NULL ? strtoull(found + strlen(wanted), NULL, 10) : 0;
}

static bool reports(unsigned node, const char *line) {
  const char *info = farm_command(&two.servers, node, "INFO", "replication", NULL);
  return info != NULL && strstr(info, line) != NULL;
}

static bool in_step(void) {
  return reports(replica(), "master_link_status:up") &&
         reported(replica(), "slave_repl_offset") == reported(two.master, "master_repl_offset");
}

/* Makes the other server a replica of the master, and waits until it has all that the master has.
 */
static void follow(int port) {
  char text[16];
  if (two.servers.nodes[replica()].pid == 0) {
    farm_restart(&two.servers, replica());
  }
  (void)snprintf(text, sizeof text, "%d", port);
  const char *said = farm_command(&two.servers, replica(), "REPLICAOF", "127.0.0.1", text, NULL);
  assert_int_equal(strncmp(said, "OK", 2), 0); /* or "OK Already connected" */
  eventually(in_step());
}

static void promote(void) {
  assert_string_equal(farm_command(&two.servers, replica(), "REPLICAOF", "NO", "ONE", NULL), "OK");
}

/* The address of the clients moves to the new master. */
static void move_address(void) {
  two.master = replica();
  relay_turn_to(&two.way, two.servers.nodes[two.master].port, RELAY_CLOSE);
}

/* The replica gets no further write, and believes that its link is up. */
static void fall_behind(void) {
  relay_turn_to(&two.links[two.master], two.servers.nodes[two.master].port, RELAY_SILENCE);
}

/*
 * The same beside a Sentinel, which knows the servers by their own ports: the replica sleeps while
 * its link ends.
 */
static void sleep_meanwhile(void) {
  farm_stop(&two.servers, replica());
  assert_string_equal(
      farm_command(&two.servers, two.master, "CLIENT", "KILL", "TYPE", "replica", NULL), "1");
}

/* ------------------------------------------------------------------------------------- the ways */

static void follow_link(void) {
  follow(port_of_link(two.master));
}

/* The master is killed, and an operator promotes the replica. */
static void crash(bool lags) {
  (void)lags;
  farm_kill(&two.servers, two.master);
  promote();
}

/* An operator promotes the replica. The master follows it afterwards, and is not used meanwhile. */
static void order(bool lags) {
  (void)lags;
  promote();
}

/* The master hands over, and does not wait for a replica that lags. */
static void hand_over(bool lags) {
  char port[16];
  (void)snprintf(port, sizeof port, "%d", two.servers.nodes[replica()].port);
  const char *said = lags ? farm_command(&two.servers, two.master, "FAILOVER", "TO", "127.0.0.1",
                                         port, "FORCE", "TIMEOUT", "1", NULL)
                          : farm_command(&two.servers, two.master, "FAILOVER", NULL);
  assert_string_equal(said, "OK");
  eventually(reports(replica(), "role:master"));
}

static char by_sentinel[64]; /* "sentinel://127.0.0.1:26379/mymaster" */

/* A Sentinel fails over by itself, too, if the machine stands still for half a second. */
static bool follows_directly(void) {
  char port[16];
  int master = sentinel_master(&two.watch);
  two.master = master == two.servers.nodes[1].port ? 1 : 0;
  if (in_step() && sentinel_replicas(&two.watch) == 1) {
    return true;
  }
  (void)snprintf(port, sizeof port, "%d", master);
  (void)farm_command(&two.servers, replica(), "REPLICAOF", "127.0.0.1", port, NULL);
  return false;
}

static void follow_directly(void) {
  for (unsigned i = 0; i < 2; i++) {
    if (two.servers.nodes[i].pid == 0) {
      farm_restart(&two.servers, i);
    }
  }
  if (two.watch.pid == 0) {
    sentinel_start(&two.watch, two.servers.scratch.path, two.servers.nodes[two.master].port, NULL);
    (void)snprintf(by_sentinel, sizeof by_sentinel, "sentinel://%s/" SENTINEL_MASTER,
                   two.watch.address);
  }
  at_last(follows_directly());
}

/* The master is killed, and the Sentinel promotes the replica. */
static void elect(bool lags) {
  farm_kill(&two.servers, two.master);
  if (lags) {
    farm_continue(&two.servers, replica());
  }
  at_last(sentinel_master(&two.watch) == two.servers.nodes[replica()].port);
}

static const struct way {
  const char *name;
  void (*follow)(void);
  void (*lag)(void);
  void (*fail_over)(bool lags);
  redlock_duration ttl_us;
  const char *address; /* of the clients */
} ways[] = {
    {"crash", follow_link, fall_behind, crash, MS(3600), two.way.address},
    {"order", follow_link, fall_behind, order, MS(3600), two.way.address},
    {"FAILOVER", follow_link, fall_behind, hand_over, MS(3600), two.way.address},
    {"Sentinel", follow_directly, sleep_meanwhile, elect, MS(6000), by_sentinel}, /* takes 2 s */
};
#define WAYS (sizeof ways / sizeof ways[0])

/* ------------------------------------------------------------------------------------- a round */

typedef struct outcome {
  unsigned rounds, lagging, doubles;          /* two holders at once */
  unsigned clean, kept;                       /* a lease that was extended beyond the fail-over */
  redlock_duration least_us, most_us, sum_us; /* from the fail-over to the first grant */
} outcome;

static redlock_client *client_by(const char *address, bool guard, redlock_duration ttl_us,
                                 redlock_duration max_ttl_us) {
  redlock_client *client;
  redlock_options options = once();
  options.ttl_us = ttl_us;
  options.node_timeout_us = MS(2000);
  redlock_settings settings = {.options = &options};
  if (guard) {
    settings.guard = REDLOCK_YES;
    settings.guard_max_ttl_us = max_ttl_us;
    settings.guard_cluster = "one";
  }
  assert_int_equal(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  assert_int_equal(redlock_client_add(client, address, NULL, 0), REDLOCK_OK);
  return client;
}

static bool is_granted(redlock_lock *lock) {
  return redlock_lock_acquire(lock, NULL, NULL) == REDLOCK_OK;
}

/* Acquires until it succeeds. */
static void acquire_at_last(redlock_lock *lock) {
  at_last(is_granted(lock));
}

/* Extends a lease that the replica has, until two thirds of its ttl are over. */
static bool extends(redlock_lock *holder, redlock_time since_us, redlock_duration ttl_us) {
  return redlock_now() - since_us < 2 * ttl_us / 3 &&
         redlock_lock_extend(holder, 0, NULL) == REDLOCK_OK;
}

static void note(outcome *all, redlock_duration took_us) {
  all->least_us = all->sum_us == 0 || took_us < all->least_us ? took_us : all->least_us;
  all->most_us = took_us > all->most_us ? took_us : all->most_us;
  all->sum_us += took_us;
}

/* Two clients try from the fail-over to their first grant of the lock. */
static void contend(const struct way *way, bool lags, bool guard, redlock_lock *holder,
                    redlock_lock *rival, outcome *all) {
  redlock_time since_us = redlock_now();
  bool kept = false;
  way->fail_over(lags);
  move_address();
  redlock_client *newcomers = client_by(way->address, guard, way->ttl_us, way->ttl_us);
  redlock_lock *newcomer = new_lock(newcomers, KEY), *other = new_lock(newcomers, "other");
  bool found = false, granted = false;
  redlock_time until_us = redlock_now() + PATIENCE_US;
  while (!granted || !found) {
    kept = (!lags && extends(holder, since_us, way->ttl_us)) || kept;
    if (!found && is_granted(other)) {
      found = true;
      note(all, redlock_now() - since_us);
    }
    redlock_lock *got = is_granted(rival) ? rival : is_granted(newcomer) ? newcomer : NULL;
    all->doubles += got != NULL && redlock_lock_remaining(holder) > 0;
    granted = granted || got != NULL;
    (void)redlock_lock_release(rival);
    (void)redlock_lock_release(newcomer);
    assert_true(redlock_now() < until_us);
    (void)poll(NULL, 0, 2);
  }
  all->kept += kept;
  redlock_lock_free(other);
  redlock_lock_free(newcomer);
  redlock_client_free(newcomers);
}

static void round_of(const struct way *way, bool lags, bool guard, redlock_lock *holder,
                     redlock_lock *rival, outcome *all) {
  way->follow();
  acquire_at_last(rival);
  assert_ok(rival, redlock_lock_release(rival));
  way->follow(); /* The replica has no key. */
  if (lags) {
    way->lag();
  }
  acquire_at_last(holder);
  while (!lags && redlock_lock_remaining(holder) > 0 && farm_count(&two.servers, KEY, NULL) < 2) {
  }
  contend(way, lags, guard, holder, rival, all);
  (void)redlock_lock_release(holder);
  all->rounds++;
  all->lagging += lags;
  all->clean += !lags;
}

static outcome rounds_of(const struct way *way, bool guard, unsigned rounds) {
  outcome all = {0};
  way->follow();
  redlock_client *one = client_by(way->address, guard, way->ttl_us, way->ttl_us);
  redlock_client *another = client_by(way->address, guard, way->ttl_us, way->ttl_us);
  redlock_lock *holder = new_lock(one, KEY), *rival = new_lock(another, KEY);
  if (guard) {
    at_last(redlock_client_bootstrap(one) == REDLOCK_OK);
  }
  for (unsigned i = 0; i < rounds; i++) {
    round_of(way, !guard || i % CLEAN_EVERY != 1, guard, holder, rival, &all);
  }
  print_message("# %s, %s: %u rounds, %u with a replica that lagged, %u times two holders; first "
                "grant after %.2f s (%.2f to %.2f); %u of %u leases extended beyond it\n",
                way->name, guard ? "with the guard" : "no guard", all.rounds, all.lagging,
                all.doubles, (double)all.sum_us / all.rounds / 1e6, (double)all.least_us / 1e6,
                (double)all.most_us / 1e6, all.kept, all.clean);
  redlock_lock_free(holder);
  redlock_lock_free(rival);
  redlock_client_free(one);
  redlock_client_free(another);
  sentinel_end(&two.watch);
  return all;
}

static bool is_wanted(const struct way *way) {
  const char *only = getenv("FAILOVER_WAY"); /* NOLINT(concurrency-mt-unsafe) */
  return only == NULL || strcmp(only, way->name) == 0;
}

/* --------------------------------------------------------------------------------------- tests */

TEST(promoted_replica_grants_nothing_while_a_lease_lasts) {
  for (size_t i = 0; i < WAYS; i++) {
    if (is_wanted(&ways[i])) {
      outcome all = rounds_of(&ways[i], true, rounds_wanted());
      assert_int_equal(all.doubles, 0);
      assert_true(all.least_us >= 6 * REDLOCK_SECONDS); /* The shortest quarantine. */
      (void)reset(state);
    }
  }
}

/* Negative control. */
TEST(promoted_replica_without_a_guard_grants) {
  for (size_t i = 0; i < WAYS; i++) {
    if (is_wanted(&ways[i])) {
      struct way longer = ways[i];
      longer.ttl_us = 20 * REDLOCK_SECONDS;
      assert_true(rounds_of(&longer, false, 2).doubles > 0);
      (void)reset(state);
    }
  }
}

/*
 * The replica has the key, but not its extension: there the key ends half a ttl before the lease.
 * Returns true if there were two holders.
 */
static bool lost_extension_makes_two(bool guard) {
  struct way crashed = ways[0];
  outcome all = {0};
  crashed.ttl_us = guard ? MS(3600) : MS(6000);
  redlock_client *one = client_by(two.way.address, guard, crashed.ttl_us, crashed.ttl_us);
  redlock_client *another = client_by(two.way.address, guard, crashed.ttl_us, crashed.ttl_us);
  redlock_lock *holder = new_lock(one, KEY), *rival = new_lock(another, KEY);
  follow_link();
  if (guard) {
    at_last(redlock_client_bootstrap(one) == REDLOCK_OK);
  }
  do { /* A stalled machine may let the lease end. */
    (void)redlock_lock_release(holder);
    promote(); /* Its link may be silent. */
    follow_link();
    acquire_at_last(holder);
    at_last(in_step());
    at_last(redlock_lock_remaining(holder) < crashed.ttl_us / 2);
    fall_behind();
  } while (redlock_lock_extend(holder, 0, NULL) != REDLOCK_OK);
  contend(&crashed, true, guard, holder, rival, &all);
  redlock_lock_free(rival);
  redlock_lock_free(holder);
  redlock_client_free(another);
  redlock_client_free(one);
  return all.doubles > 0;
}

TEST(lost_extension_makes_no_second_holder) {
  assert_false(lost_extension_makes_two(true));
  (void)reset(state);
  at_last(lost_extension_makes_two(false) || reset(state) != 0); /* the negative control */
}

/*
 * A lease that the replica has goes on: its holder can extend it at once, while the new master
 * grants nothing.
 */
TEST(handed_over_lease_is_extended_during_the_quarantine) {
  redlock_client *client = client_by(two.way.address, true, MS(30000), MS(30000));
  redlock_lock *holder = new_lock(client, KEY), *other = new_lock(client, "other");
  assert_int_equal(redlock_client_bootstrap(client), REDLOCK_OK);
  follow_link();
  acquire_at_last(holder);
  hand_over(false);
  move_address();
  eventually(redlock_lock_extend(holder, 0, NULL) == REDLOCK_OK);
  assert_int_equal(redlock_lock_acquire(other, NULL, NULL), REDLOCK_E_UNAVAILABLE);
  assert_int_equal(vote_of(other, 0), REDLOCK_VOTE_QUARANTINED);
  assert_contains(redlock_lock_message(other), "the server was restarted, replaced or promoted");
  assert_ok(holder, redlock_lock_release(holder));
  redlock_lock_free(other);
  free_with_client(holder);
}

static const char *ask_sentinel(const char *const *words) {
  static char reply[SERVER_REPLY_MAX];
  return server_ask(two.watch.port, 30000, reply, words);
}

/* Returns true if the Sentinel has promoted the replica; orders it otherwise. */
static bool has_failed_over(void) {
  static const char *const order_it[] = {"SENTINEL", "FAILOVER", SENTINEL_MASTER, NULL};
  if (sentinel_master(&two.watch) == two.servers.nodes[replica()].port) {
    return true;
  }
  (void)ask_sentinel(order_it);
  return false;
}

/* The old master becomes a replica, and answers READONLY: the client asks the Sentinel again. */
TEST(client_leaves_a_demoted_master) {
  char port[16];
  follow_directly();
  redlock_client *client = client_by(by_sentinel, false, MS(30000), 0);
  redlock_lock *lock = new_lock(client, KEY);
  redlock_node_info info;
  acquire_at_last(lock);
  assert_int_equal(redlock_client_node_info(client, 0, &info), REDLOCK_OK);
  assert_string_equal(info.name, by_sentinel);
  at_last(has_failed_over());
  two.master = replica();
  (void)snprintf(port, sizeof port, "%d", two.servers.nodes[two.master].port);
  (void)farm_command(&two.servers, replica(), "REPLICAOF", "127.0.0.1", port, NULL);
  (void)redlock_lock_release(lock);
  at_last(is_granted(lock) &&
          strcmp(farm_command(&two.servers, two.master, "EXISTS", KEY, NULL), "1") == 0);
  free_with_client(lock);
  sentinel_end(&two.watch);
}

TEST(login_of_a_sentinel_is_no_secret_of_messages) {
  static const char *const protect[] = {"ACL",       "SETUSER",      "default",
                                        "resetpass", ">hidden-word", NULL};
  char address[128];
  follow_directly();
  assert_string_equal(ask_sentinel(protect), "OK");
  (void)snprintf(address, sizeof address, "sentinel://:hidden-word@%s/" SENTINEL_MASTER,
                 two.watch.address);
  redlock_lock *lock = new_lock(client_by(address, false, MS(30000), 0), KEY);
  acquire_at_last(lock);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
  (void)snprintf(address, sizeof address, "sentinel://:wrong-word@%s/" SENTINEL_MASTER,
                 two.watch.address);
  lock = new_lock(client_by(address, false, MS(30000), 0), KEY);
  at_last(!is_granted(lock) &&
          strstr(redlock_lock_message(lock), ": it answers WRONGPASS") != NULL);
  assert_null(strstr(redlock_lock_message(lock), "wrong-word"));
  free_with_client(lock);
  sentinel_end(&two.watch);
}

/* ------------------------------------------------------------------------- two masters at once */

/*
 * The network is divided: the old master keeps some clients, and the rest goes to the promoted
 * replica. The clients of the old master acquire and extend for as long as it serves them.
 */
typedef struct division {
  redlock_client *stays, *moved;
  redlock_lock *old, *new;
} division;

static void divide(division *self, redlock_duration ttl_us, redlock_duration max_ttl_us) {
  self->stays = client_by(two.servers.nodes[two.master].address, true, ttl_us, max_ttl_us);
  self->moved = client_by(two.way.address, true, ttl_us, max_ttl_us);
  self->old = new_lock(self->stays, KEY);
  self->new = new_lock(self->moved, KEY);
  eventually(redlock_client_bootstrap(self->moved) == REDLOCK_OK);
  follow_link();
  acquire_at_last(self->new);
  assert_ok(self->new, redlock_lock_release(self->new));
  acquire_at_last(self->old);
  fall_behind();
  promote();
  move_address();
}

static void unite(division *self) {
  redlock_lock_free(self->old);
  redlock_lock_free(self->new);
  redlock_client_free(self->stays);
  redlock_client_free(self->moved);
}

/* Extends the lease at the old master, or acquires again. Returns true if it succeeds. */
static bool goes_on(division *self) {
  return redlock_lock_extend(self->old, 0, NULL) == REDLOCK_OK || is_granted(self->old);
}

/* The limit of the guard, and the negative control of the next test. */
TEST(divided_masters_both_grant) {
  division two_halves;
  divide(&two_halves, MS(3600), MS(3600));
  eventually(goes_on(&two_halves) && is_granted(two_halves.new));
  eventually(goes_on(&two_halves) &&
             (redlock_lock_remaining(two_halves.new) > 0 || is_granted(two_halves.new)) &&
             redlock_lock_remaining(two_halves.old) > 0);
  unite(&two_halves);
}

/*
 * The old master refuses writes three seconds after the last word of its replica at the latest:
 * min-replicas-max-lag, a second that Redis rounds off, and a second between its counts. max_ttl
 * includes them.
 */
TEST(divided_master_without_replicas_stops_before_the_other_grants) {
  division two_halves;
  for (unsigned i = 0; i < 2; i++) {
    assert_string_equal(
        farm_command(&two.servers, i, "CONFIG", "SET", "min-replicas-max-lag", "1", NULL), "OK");
  }
  follow_link();
  assert_string_equal(
      farm_command(&two.servers, two.master, "CONFIG", "SET", "min-replicas-to-write", "1", NULL),
      "OK");
  divide(&two_halves, MS(1000), MS(4000));
  redlock_time since_us = redlock_now(), last_us = since_us;
  redlock_time until_us = since_us + EVENTUALLY_US;
  while (!is_granted(two_halves.new)) {
    last_us = goes_on(&two_halves) ? redlock_now() : last_us;
    assert_true(redlock_now() < until_us);
  }
  assert_int_equal(redlock_lock_remaining(two_halves.old), 0);
  print_message("# the old master served its clients for %.2f s, the new one after %.2f s\n",
                (double)(last_us - since_us) / 1e6, (double)(redlock_now() - since_us) / 1e6);
  assert_false(goes_on(&two_halves));
  unite(&two_halves);
}

int main(void) {
  cmocka_set_test_filter(getenv("FAILOVER_TEST")); /* NOLINT(concurrency-mt-unsafe): make test */
  return tests_run(&(tests_fixture){.start = start, .before = reset, .end = end});
}
