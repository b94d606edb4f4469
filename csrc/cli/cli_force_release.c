/*
 * redlock force-release: deletes the lock of a holder that is known to be dead.
 *
 * SPDX-License-Identifier: MIT
 *
 * TOKEN is that of redlock inspect, with or without the label. So no lock of a later holder is
 * deleted by mistake.
 */
#include <string.h>

#include "cli.h"
#include "cli_inspect.h"
#include "cli_output.h"

/* The token; the label of its holder is its end. */
typedef struct cli_force_target {
  size_t length, label_length;
  char token[REDLOCK_TOKEN_MAX];
} cli_force_target;

/*
 * Searches the inspection for the token, or for one that begins with it and has a label behind it.
 * Copies that.
 */
static void cli_force_find(cli_force_target *target, redlock_lock *lock) {
  redlock_key_info key;
  for (size_t i = 0; redlock_lock_key(lock, i, &key) == REDLOCK_OK; i++) {
    if (key.token == NULL || key.token_length > sizeof target->token) {
      continue;
    }
    size_t bare = cli_token_length(key.token_length, key.label, key.label_length);
    bool same = target->length == key.token_length || target->length == bare;
    if (same && memcmp(key.token, target->token, target->length) == 0) {
      target->length = key.token_length;
      target->label_length = key.label_length;
      memcpy(target->token, key.token, key.token_length);
      return;
    }
  }
}

int cli_force_release(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_force_target target = {0};
  char *token = settings->operands[2];
  if (!cli_read_text(token, &target.length) || target.length == 0 ||
      target.length > sizeof target.token) {
    return cli_fail(CLI_USAGE, "invalid token; copy it from redlock inspect");
  }
  memcpy(target.token, token, target.length);
  int status = cli_inspect_await(settings, loop, lock);
  if (status < 0) {
    cli_force_find(&target, lock);
    status = cli_await(settings, loop, lock,
                       redlock_lock_force_release_start(lock, target.token, target.length));
  }
  if (status >= 0) {
    return status;
  }
  const char *label = target.token + target.length - target.label_length;
  cli_put_votes(settings, lock, "deleted", "not_held", target.label_length > 0 ? label : NULL,
                target.label_length);
  return cli_print_result(settings, lock);
}
