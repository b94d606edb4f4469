/*
 * redlock bootstrap: lets new nodes with a guard vote.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <stdio.h>

#include "cli_votes.h"

static int cli_bootstrap_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int status = cli_await(settings, loop, lock, redlock_lock_bootstrap_start(lock));
  if (status >= 0) {
    return status;
  }
  cli_put_votes(settings, lock, &(cli_vote_words){.granted = "ready", .taken = "taken"});
  return cli_print_result(settings, lock);
}

int cli_bootstrap(const cli_settings *settings, redlock_client *client) {
  if (settings->client.guard != REDLOCK_YES) {
    return cli_fail(CLI_USAGE, "bootstrap is only for nodes with a guard; add --guard");
  }
  /* No node sees the name of the resource. */
  return cli_with_lock(settings, client, "redlock-bootstrap", cli_bootstrap_step);
}
