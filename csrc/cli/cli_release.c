/*
 * redlock release: releases the lock of a text.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_handover.h"
#include "cli_json.h"
#include "cli_output.h"

static int cli_release_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  size_t length;
  const void *resource = redlock_lock_resource(lock, &length);
  int status = cli_await(settings, loop, lock, redlock_lock_release_start(lock));
  status = status < 0 ? cli_result(settings, lock) : status;
  if (status < 0 && settings->json) {
    cli_json json = {0};
    cli_json_begin(&json, NULL, '{');
    cli_json_bytes(&json, "resource", resource, length);
    cli_json_bool(&json, "released", true);
    cli_json_end_line(&json);
  }
  return status < 0 ? cli_flush() : status;
}

int cli_release(const cli_settings *settings, redlock_client *client) {
  return cli_handover_with_lock(settings, client, cli_release_step);
}
