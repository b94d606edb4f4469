/*
 * Native commands on real servers, and servers that run no scripts.
 *
 * SPDX-License-Identifier: MIT
 *
 * Every server passes all tests: what a server knows is asked from it. So the tests run with each
 * server of build-aux/other_servers.sh.
 */
#include "support.h"

#define PASSWORD "an app's secret"
#define POLL_INTERVAL_US (20 * REDLOCK_SECONDS)
#define MISSED_US (12 * REDLOCK_SECONDS)
#define TRIES 5

static bool knows(const char *command) {
  char words[64];
  (void)snprintf(words, sizeof words, "-ERR unknown command");
  const char *reply = strcmp(command, "delifeq") == 0
                          ? farm_command(&three, 0, "DELIFEQ", "no:key", "x", NULL)
                          : farm_command(&three, 0, "DELEX", "no:key", "IFEQ", "x", NULL);
  return reply != NULL && strncmp(reply, words, strlen(words)) != 0;
}

/* The native command that the servers know, or NULL. */
static const char *native(void) {
  return knows("delifeq") ? "delifeq" : knows("delex") ? "delex" : NULL;
}

static bool knows_ifeq(void) {
  const char *reply =
      farm_command(&three, 0, "SET", "no:key", "x", "IFEQ", "x", "PX", "1000", NULL);
  return reply != NULL && reply[0] != '-';
}

static void take_and_release(redlock_client *client, redlock_lock *lock) {
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  pump_until(client, all_up(client));
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(client, all_up(client));
  pump_until(client, farm_count(&three, "r", NULL) == 0);
}

/* Returns true if each node has executed a try, and a release by the command. */
static bool all_release_natively(const char *command) {
  bool all = true;
  for (unsigned i = 0; i < 3; i++) {
    all = all && (command == NULL || farm_calls(&three, i, command) >= 2);
  }
  return all;
}

static void warm_up_natively(redlock_client *client, redlock_lock *lock) {
  const char *command = native(); /* native() itself is one call of node 0. */
  farm_command_all(&three, "CONFIG", "RESETSTAT", NULL);
  eventually((take_and_release(client, lock), all_release_natively(command)));
}

TEST(release_uses_the_native_command_of_the_server) {
  const char *command = native();
  redlock_client *client = client_of(&three, 3, NULL);
  redlock_lock *lock = new_lock(client, "r");
  warm_up_natively(client, lock);
  for (unsigned i = 0; i < 3 && command != NULL; i++) {
    unsigned before = farm_calls(&three, i, command), scripts = farm_calls(&three, i, "evalsha");
    take_and_release(client, lock);
    eventually(farm_calls(&three, i, command) == before + 1);
    assert_int_equal(farm_calls(&three, i, "evalsha"), scripts);
  }
  free_with_client(lock);
}

/* Returns true if the waiter was notified. */
static bool native_release_notifies(void) {
  redlock_options patient = once();
  patient.retry_count = 0;
  patient.wait_us = 600 * REDLOCK_SECONDS;
  patient.retry_delay_us = 300 * REDLOCK_SECONDS;
  patient.retry_jitter_us = REDLOCK_DURATION_NONE;
  patient.poll_interval_us = POLL_INTERVAL_US;
  redlock_client *client = client_of(&three, 3, NULL);
  redlock_client *other = client_of(&three, 3, &patient);
  redlock_lock *lock = new_lock(client, "r"), *waiting = new_lock(other, "r");
  warm_up_natively(client, lock);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  assert_int_equal(redlock_lock_acquire_start(waiting, NULL), REDLOCK_OK);
  pump_until(other, farm_count(&three, "r:redlock-wait", NULL) == 3);
  redlock_time begun_us = redlock_now();
  assert_ok(lock, redlock_lock_release(lock));
  pump_until(other, (pump(client, 1), redlock_lock_result(waiting) != REDLOCK_PENDING));
  assert_ok(waiting, redlock_lock_result(waiting));
  bool notified = redlock_now() - begun_us < MISSED_US;
  free_with_client(waiting);
  free_with_client(lock);
  return notified;
}

TEST(native_release_notifies_waiter) {
  for (unsigned i = 0; !native_release_notifies(); i++) {
    assert_true(i < TRIES);
    (void)three_reset(NULL);
  }
}

/* ------------------------------------------------------------------------------ without scripts */

static redlock_client *client_as_app(void) {
  redlock_settings settings = {.username = "app", .password = PASSWORD};
  redlock_client *client;
  redlock_options options = once();
  settings.options = &options;
  farm_command_all(&three, "ACL", "SETUSER", "app", "reset", "on", ">" PASSWORD, "~*", "&*",
                   "+@all", "-eval", "-evalsha", "-@scripting", NULL);
  assert_int_equal(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(redlock_client_add(client, three.nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

/* Grants in any case; extends and releases if the server can, and otherwise names the reason. */
static void single_lock_works_without_scripts(redlock_client *client) {
  redlock_lock *lock = held_lock(client, "r");
  pump_until(client, all_up(client));
  if (knows_ifeq()) {
    assert_ok(lock, redlock_lock_extend(lock, 0, NULL));
  } else {
    assert_int_equal(redlock_lock_extend(lock, 0, NULL), REDLOCK_E_UNAVAILABLE);
    assert_non_null(
        strstr(redlock_lock_message(lock), "it runs no scripts, and knows no SET IFEQ"));
  }
  if (native() != NULL) {
    assert_ok(lock, redlock_lock_release(lock));
    pump_until(client, farm_count(&three, "r", NULL) == 0);
  } else {
    assert_int_equal(redlock_lock_release(lock), REDLOCK_E_UNAVAILABLE);
    assert_non_null(strstr(redlock_lock_message(lock), "neither DELIFEQ nor DELEX"));
  }
  redlock_node_info info;
  assert_int_equal(redlock_client_node_info(client, 0, &info), REDLOCK_OK);
  assert_int_equal(info.state, REDLOCK_NODE_UP);
  assert_non_null(strstr(info.error, "it runs no scripts"));
  free_with_client(lock);
}

TEST(user_without_eval_takes_single_locks) {
  single_lock_works_without_scripts(client_as_app());
}

TEST(vote_of_user_without_eval_names_what_needs_scripts) {
  redlock_client *client = client_as_app();
  redlock_options fenced = once();
  fenced.fence = REDLOCK_YES;
  redlock_lock *lock = new_lock(client, "r");
  assert_int_equal(redlock_lock_acquire(lock, &fenced, NULL), REDLOCK_E_UNAVAILABLE);
  assert_non_null(
      strstr(redlock_lock_message(lock), "it runs no scripts, which a lock with several"));
  free_with_client(lock);
}

TEST(right_that_is_taken_away_leaves_no_key) {
  redlock_client *client = client_as_app();
  const char *command = native();
  redlock_lock *lock = new_lock(client, "r");
  farm_command_all(&three, "ACL", "SETUSER", "app", "+@all", NULL);
  warm_up_natively(client, lock);
  for (unsigned i = 0; i < 3 && command != NULL; i++) {
    char right[16];
    (void)snprintf(right, sizeof right, "-%s", command);
    assert_string_equal(farm_command(&three, i, "ACL", "SETUSER", "app", right, NULL), "OK");
  }
  take_and_release(client, lock);
  take_and_release(client, lock);
  free_with_client(lock);
}

/* The last test: the module of a node cannot be loaded again. */
TEST(server_without_interpreter_takes_single_locks) {
  unsigned unloaded = 0;
  for (unsigned i = 0; i < 3; i++) {
    const char *reply = farm_command(&three, i, "MODULE", "UNLOAD", "lua", NULL);
    unloaded += reply != NULL && strcmp(reply, "OK") == 0;
  }
  if (unloaded == 0) {
    return; /* Only Valkey 9.1 has the module. */
  }
  assert_int_equal(unloaded, 3);
  redlock_client *client = client_of(&three, 3, NULL);
  redlock_lock *lock = new_lock(client, "r");
  assert_int_equal(redlock_lock_doctor(lock, 0), REDLOCK_E_UNAVAILABLE);
  redlock_finding_info finding;
  assert_int_equal(redlock_lock_finding(lock, 0, &finding), REDLOCK_OK);
  assert_string_equal(finding.name, "scripts");
  redlock_lock_free(lock);
  single_lock_works_without_scripts(client);
}

static int start(void **state) {
  static const char *const modules[] = {"--enable-module-command", "yes", NULL};
  farm_start(&three, 3, modules);
  return 0;
}

int main(void) {
  return tests_run(&(tests_fixture){.start = start, .before = three_reset, .end = three_end});
}
