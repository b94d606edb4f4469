/*
 * redlock bootstrap: lets new nodes with a guard vote.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <stdio.h>

static int cli_bootstrap_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  redlock_vote_info vote;
  int status = cli_await(settings, loop, lock, redlock_lock_bootstrap_start(lock));
  if (status >= 0) {
    return status;
  }
  for (size_t i = 0; redlock_lock_vote(lock, i, &vote) == REDLOCK_OK; i++) {
    bool ready = vote.vote == REDLOCK_VOTE_GRANTED;
    (void)printf("%s\t%s%s%s\n", vote.name, ready ? "ready" : redlock_vote_name(vote.vote),
                 vote.error != NULL ? "\t" : "", vote.error != NULL ? vote.error : "");
  }
  return cli_print_result(settings, lock);
}

int cli_bootstrap(const cli_settings *settings, redlock_client *client) {
  if (settings->client.guard != REDLOCK_YES) {
    return cli_fail(CLI_USAGE, "bootstrap is only for nodes with a guard; add --guard");
  }
  /* No node sees the name of the resource. */
  return cli_with_lock(settings, client, "redlock-bootstrap", cli_bootstrap_step);
}
