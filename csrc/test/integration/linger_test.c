/*
 * The end of a client: releases that it still has to send.
 *
 * SPDX-License-Identifier: MIT
 */
#include "support.h"

#define MANY 333

static size_t keys_left(void) {
  size_t left = 0;
  for (unsigned i = 0; i < three.count; i++) {
    const char *count = farm_command(&three, i, "DBSIZE", NULL);
    assert_non_null(count);
    left += (size_t)strtoul(count, NULL, 10);
  }
  return left;
}

/* Acquires |count| locks whose names have |length| bytes. */
static void hold(redlock_client *client, redlock_lock **locks, unsigned count, size_t length) {
  char name[REDLOCK_KEY_MAX + 1];
  memset(name, 'x', sizeof name);
  for (unsigned i = 0; i < count; i++) {
    name[length] = '\0';
    int written = snprintf(name, sizeof name, "%07u", i);
    name[written] = 'x';
    assert_int_equal(redlock_lock_new(&locks[i], client, name, length, NULL), REDLOCK_OK);
    assert_ok(locks[i], redlock_lock_acquire(locks[i], NULL, NULL));
  }
}

/* Returns true if all keys disappear long before their ttl. */
static bool keys_disappear(void) {
  redlock_time give_up_us = redlock_now() + 2 * REDLOCK_SECONDS;
  while (keys_left() > 0) {
    if (redlock_now() > give_up_us) {
      return false;
    }
    (void)poll(NULL, 0, 2);
  }
  return true;
}

static bool freeing_leaves_no_key(unsigned count, size_t length) {
  static redlock_lock *locks[MANY];
  redlock_client *client = client_of(&three, 3, NULL);
  warm_up(client);
  hold(client, locks, count, length);
  for (unsigned i = 0; i < count; i++) {
    redlock_lock_free(locks[i]);
  }
  redlock_client_free(client);
  return keys_disappear();
}

/*
 * redlock_client_free() waits for 100 ms at most. A slow machine may need longer: then try again.
 */
static void check_free(unsigned count, size_t length) {
  bool gone = false;
  for (unsigned tries = 0; tries < 20 && !gone; tries++) {
    farm_reset(&three);
    gone = freeing_leaves_no_key(count, length);
  }
  assert_true(gone);
}

TEST(hundreds_of_freed_locks_leave_no_key) {
  check_free(MANY, 10);
  check_free(MANY, 1000); /* More than a socket takes at once. */
}

TEST(close_after_closed_connections_leaves_no_key) {
  redlock_client *client = client_of(&three, 3, NULL);
  warm_up(client);
  redlock_lock *lock = held_lock(client, "idle");
  for (unsigned i = 0; i < 3; i++) {
    assert_non_null(
        farm_command(&three, i, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
  }
  assert_int_equal(redlock_client_close(client, EVENTUALLY_US), REDLOCK_OK);
  assert_int_equal(farm_count(&three, "idle", NULL), 0);
  free_with_client(lock);
}

TEST(close_reports_a_node_that_keeps_its_key) {
  redlock_client *client = client_of(&three, 3, NULL);
  warm_up(client);
  redlock_lock *lock = held_lock(client, "stopped");
  pump_until(client, farm_count(&three, "stopped", NULL) == 3);
  farm_stop(&three, 2);
  redlock_time begun_us = stopwatch();
  assert_int_equal(redlock_client_close(client, MS(200)), REDLOCK_E_UNAVAILABLE);
  assert_took(begun_us, 0, MS(1000));
  free_with_client(lock);
  farm_continue(&three, 2);
  eventually(farm_count(&three, "stopped", NULL) == 0);
}

TEST(loading_node_gets_the_release_later) {
  static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
  static farm one;
  farm_start(&one, 1, durable);
  redlock_client *client = client_of(&one, 1, NULL);
  redlock_lock *lock;
  assert_int_equal(redlock_lock_new(&lock, client, "loading", 7, NULL), REDLOCK_OK);
  assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
  farm_kill(&one, 0);
  redlock_lock_free(lock);
  farm_restart_slowly(&one, 0, "400000");
  redlock_time deadline_us = redlock_now() + EVENTUALLY_US;
  const char *reply = NULL;
  do {
    pump(client, 20);
    reply = farm_command(&one, 0, "EXISTS", "loading", NULL);
  } while ((reply == NULL || strcmp(reply, "0") != 0) && redlock_now() < deadline_us);
  assert_non_null(reply);
  assert_string_equal(reply, "0");
  redlock_client_free(client);
  farm_end(&one);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = three_start, .before = three_reset, .end = three_end});
}
