/*
 * redlock(1): what is wrong with the nodes, and what to do about it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"
#include "cli_loop.h"

#include <stdio.h>
#include <string.h>

/* Prints what was found, and notes the gravest of it. Returns whether it could be written. */
static bool cli_doctor_print(redlock_lock *lock, size_t nodes, int *gravest) {
  redlock_finding_info info;
  size_t count = 0;
  *gravest = 0;
  for (; redlock_lock_finding(lock, count, &info) == REDLOCK_OK; count++) {
    (void)printf("%s\t%s\t%s\n", redlock_severity_name(info.severity), info.name, info.message);
    *gravest = (int)info.severity > *gravest ? (int)info.severity : *gravest;
  }
  if (count == 0) {
    (void)printf("nothing is wrong with the %zu nodes\n", nodes);
  }
  return fflush(stdout) == 0 && ferror(stdout) == 0;
}

static int cli_doctor_ask(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int gravest;
  int error = redlock_lock_doctor_start(lock, settings->keys ? REDLOCK_DOCTOR_KEYS : 0);
  if (error != REDLOCK_OK) {
    return cli_fail_to_acquire(settings, lock, error);
  }
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    int number = cli_loop_turn(loop, REDLOCK_NEVER);
    if (number != 0 && number != SIGCHLD) {
      return 128 + number;
    }
  }
  if (!cli_doctor_print(lock, redlock_client_node_count(loop->client), &gravest)) {
    return cli_fail(CLI_SYSTEM, "what was found could not be written");
  }
  error = redlock_lock_result(lock);
  if (error != REDLOCK_OK) {
    return cli_fail_to_acquire(settings, lock, error);
  }
  return gravest == REDLOCK_SEVERITY_ERROR ? CLI_FOUND : 0;
}

int cli_doctor(const cli_settings *settings, redlock_client *client) {
  const char *resource = settings->operands[1] != NULL ? settings->operands[1] : "redlock-doctor";
  cli_loop loop;
  redlock_lock *lock;
  int status = CLI_SYSTEM;
  if (redlock_lock_new(&lock, client, resource, strlen(resource), NULL) != REDLOCK_OK) {
    return cli_fail(CLI_USAGE, "%s", redlock_client_message(client));
  }
  if (cli_loop_open(&loop, client)) {
    status = cli_doctor_ask(settings, &loop, lock);
  } else {
    (void)cli_fail(CLI_SYSTEM, "no pipe, or no handler for signals");
  }
  redlock_lock_free(lock);
  return status;
}
