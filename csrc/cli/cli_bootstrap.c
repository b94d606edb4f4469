/*
 * redlock bootstrap: lets new nodes with a guard vote.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

int cli_bootstrap(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  if (settings->client.guard != REDLOCK_YES) {
    return cli_fail(CLI_USAGE, "bootstrap is only for nodes with a guard; add --guard");
  }
  int status = cli_await(settings, loop, lock, redlock_lock_bootstrap_start(lock));
  if (status >= 0) {
    return status;
  }
  cli_put_votes(settings, lock, "ready", "taken", NULL, 0);
  return cli_print_result(settings, lock);
}
