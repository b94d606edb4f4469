/*
 * Tests of a program that takes a lock, with one real node: a free lock, a taken one, a lost one,
 * and a node that does not answer.
 *
 *     redis-server --port 7001 --save '' --daemonize yes
 *     one_node_test 127.0.0.1:7001
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------- the program under test */

/* Runs |work| under the lock. Returns REDLOCK_OK, or why the work is void. */
static int report_run(redlock_client *client, void (*work)(void)) {
  redlock_lock *lock = NULL;
  redlock_options once = {.wait_us = REDLOCK_DURATION_NONE};
  int error = redlock_lock_new(&lock, client, "report", strlen("report"), &once);
  if (error == REDLOCK_OK) {
    error = redlock_lock_acquire(lock, NULL, NULL);
  }
  if (error == REDLOCK_OK) {
    work();
    error = redlock_lock_release(lock);
  }
  redlock_lock_free(lock);
  return error;
}

/* ------------------------------------------------------------------------------------ its tests */

static redlock_client *rival; /* another client of the same node */
static int failures;

static void check(const char *name, int expected, int got) {
  printf("%s - %s: %s\n", expected == got ? "ok" : "not ok", name, redlock_error_name(got));
  failures += expected != got;
}

static void do_nothing(void) {}

/* Deletes the key, as a node does that forgets its locks. */
static void lose_the_lock(void) {
  redlock_lock *lock = NULL;
  if (redlock_lock_new(&lock, rival, "report", strlen("report"), NULL) == REDLOCK_OK) {
    (void)redlock_lock_force_release(lock, NULL, REDLOCK_TOKEN_ANY);
  }
  redlock_lock_free(lock);
}

static redlock_client *new_client(const char *node) {
  char message[256] = "";
  redlock_options patient = {.node_timeout_us = 10 * REDLOCK_SECONDS,
                             .ttl_us = 60 * REDLOCK_SECONDS};
  redlock_settings settings = {.options = &patient};
  redlock_client *client = NULL;
  int error = redlock_client_new(&client, &settings, message, sizeof message);
  if (error == REDLOCK_OK) {
    error = redlock_client_add(client, node, message, sizeof message);
  }
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s: %s\n", node, message);
  }
  return client;
}

int main(int argc, char **argv) {
  const char *node = argc > 1 ? argv[1] : "127.0.0.1:7001";
  redlock_client *client = new_client(node);
  redlock_client *unreachable = new_client("127.0.0.1:1"); /* No server listens there. */
  redlock_lock *held = NULL;
  rival = new_client(node);

  check("free", REDLOCK_OK, report_run(client, do_nothing));
  if (redlock_lock_new(&held, rival, "report", strlen("report"), NULL) == REDLOCK_OK) {
    check("the rival takes it", REDLOCK_OK, redlock_lock_acquire(held, NULL, NULL));
    check("taken", REDLOCK_E_TAKEN, report_run(client, do_nothing));
    check("the rival releases it", REDLOCK_OK, redlock_lock_release(held));
  }
  redlock_lock_free(held);
  check("lost", REDLOCK_E_LOST, report_run(client, lose_the_lock));
  check("unreachable", REDLOCK_E_UNAVAILABLE, report_run(unreachable, do_nothing));

  redlock_client_free(client);
  redlock_client_free(unreachable);
  redlock_client_free(rival);
  return failures > 0;
}
