/*
 * redlock doctor: reports what is wrong with the nodes, and what to do.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <stdio.h>

static int cli_doctor_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  redlock_finding_info info;
  size_t count = 0;
  bool found_error = false;
  int error = redlock_lock_doctor_start(lock, settings->keys ? REDLOCK_DOCTOR_KEYS : 0);
  int status = cli_await(settings, loop, lock, error);
  if (status >= 0) {
    return status;
  }
  for (; redlock_lock_finding(lock, count, &info) == REDLOCK_OK; count++) {
    (void)printf("%s\t%s\t%s\n", redlock_severity_name(info.severity), info.name, info.message);
    found_error = found_error || info.severity == REDLOCK_SEVERITY_ERROR;
  }
  if (count == 0) {
    (void)printf("nothing is wrong with the %zu nodes\n", redlock_client_node_count(loop->client));
  }
  status = cli_print_result(settings, lock);
  return status == 0 && found_error ? CLI_FOUND : status;
}

int cli_doctor(const cli_settings *settings, redlock_client *client) {
  const char *resource = settings->operands[1];
  return cli_with_lock(settings, client, resource != NULL ? resource : "redlock-doctor",
                       cli_doctor_step);
}
