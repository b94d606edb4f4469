/*
 * redlock force-release: deletes the lock of a holder that is known to be dead.
 *
 * SPDX-License-Identifier: MIT
 *
 * TOKEN is that of redlock inspect. So no lock of a later holder is deleted by mistake.
 */
#include "cli.h"

#include "cli_inspect.h"
#include "cli_output.h"
#include "cli_votes.h"

static int cli_force_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  char *token = settings->operands[2];
  size_t length = 0;
  if (!cli_read_text(token, &length) || length == 0) {
    return cli_fail(CLI_USAGE, "invalid token; copy it from redlock inspect");
  }
  /* The inspection connects to the nodes. Its result has no influence. */
  int status = cli_inspect_await(settings, loop, lock);
  if (status < 0) {
    status = cli_await(settings, loop, lock, redlock_lock_force_release_start(lock, token, length));
  }
  if (status >= 0) {
    return status;
  }
  cli_put_votes(settings, lock, "deleted", "not_held");
  return cli_print_result(settings, lock);
}

int cli_force_release(const cli_settings *settings, redlock_client *client) {
  return cli_with_lock(settings, client, settings->operands[1], cli_force_step);
}
