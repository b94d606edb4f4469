/*
 * redlock(1): tells new nodes that they may vote.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"
#include "cli_loop.h"

#include <stdio.h>
#include <string.h>

/* Returns whether it could be written. */
static bool cli_bootstrap_print(redlock_client *client, redlock_lock *lock) {
  for (size_t i = 0; i < redlock_client_node_count(client); i++) {
    redlock_vote_info vote;
    if (redlock_lock_vote(lock, i, &vote) == REDLOCK_OK) {
      (void)printf("%s\t%s%s%s\n", vote.name,
                   vote.vote == REDLOCK_VOTE_GRANTED ? "ready" : redlock_vote_name(vote.vote),
                   vote.error != NULL ? "\t" : "", vote.error != NULL ? vote.error : "");
    }
  }
  return fflush(stdout) == 0 && ferror(stdout) == 0;
}

static int cli_bootstrap_ask(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int error = redlock_lock_bootstrap_start(lock);
  if (error != REDLOCK_OK) {
    return cli_fail_to_acquire(settings, lock, error);
  }
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    int number = cli_loop_turn(loop, REDLOCK_NEVER);
    if (number != 0 && number != SIGCHLD) {
      return 128 + number;
    }
  }
  if (!cli_bootstrap_print(loop->client, lock)) {
    return cli_fail(CLI_SYSTEM, "what the nodes answered could not be written");
  }
  error = redlock_lock_result(lock);
  return error == REDLOCK_OK ? 0 : cli_fail_to_acquire(settings, lock, error);
}

int cli_bootstrap(const cli_settings *settings, redlock_client *client) {
  static const char name[] = "redlock-bootstrap"; /* It is sent nowhere. */
  cli_loop loop;
  redlock_lock *lock;
  int status = CLI_SYSTEM;
  if (!settings->guard) {
    return cli_fail(CLI_USAGE, "bootstrap is for nodes with a guard: --guard");
  }
  if (redlock_lock_new(&lock, client, name, strlen(name), NULL) != REDLOCK_OK) {
    return cli_fail(CLI_USAGE, "%s", redlock_client_message(client));
  }
  if (cli_loop_open(&loop, client)) {
    status = cli_bootstrap_ask(settings, &loop, lock);
  } else {
    (void)cli_fail(CLI_SYSTEM, "no pipe, or no handler for signals");
  }
  redlock_lock_free(lock);
  return status;
}
