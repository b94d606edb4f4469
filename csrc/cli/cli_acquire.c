/*
 * redlock acquire: takes a lock and prints it as text, for extend and release.
 *
 * SPDX-License-Identifier: MIT
 *
 * The standard output gets the text and nothing else. A lock whose text cannot be printed is
 * released, because no program could.
 */
#include "cli_handover.h"
#include "cli_json.h"
#include "cli_take.h"

static int cli_acquire_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  char text[REDLOCK_HANDOVER_MAX];
  redlock_options options = {.hold_at_least_us = settings->hold_for_us};
  int status = cli_take(settings, loop, lock, &options, NULL, NULL);
  if (settings->json) {
    cli_take_json(lock, status);
  }
  status = status < 0 ? cli_result(settings, lock) : status;
  if (status >= 0) {
    return status;
  }
  text[0] = '\0';
  status = cli_handover_print(settings, loop, lock, text);
  if (status != 0 && text[0] != '\0') {
    cli_handover_release(loop->client, text);
  }
  return status;
}

int cli_acquire(const cli_settings *settings, redlock_client *client) {
  return cli_with_lock(settings, client, settings->operands[1], cli_acquire_step);
}
