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
#include "cli_votes.h"

/* The token, and the label of its holder. */
typedef struct cli_force_target {
  size_t length;
  char token[REDLOCK_TOKEN_MAX + 1];
  size_t label_length;
  char label[REDLOCK_LABEL_MAX];
} cli_force_target;

/*
 * Searches the inspection for the token, or for one that begins with it and has a label behind it.
 * Copies token and label.
 */
static void cli_force_find(cli_force_target *target, redlock_lock *lock) {
  redlock_key_info key;
  for (size_t i = 0; redlock_lock_key(lock, i, &key) == REDLOCK_OK; i++) {
    if (key.token == NULL || key.token_length > REDLOCK_TOKEN_MAX) {
      continue;
    }
    size_t bare = cli_token_length(key.token_length, key.label, key.label_length);
    bool same = target->length == key.token_length || target->length == bare;
    if (same && memcmp(key.token, target->token, target->length) == 0) {
      target->length = key.token_length;
      memcpy(target->token, key.token, key.token_length);
      target->label_length = key.label_length;
      memcpy(target->label, key.label != NULL ? key.label : "", key.label_length);
      return;
    }
  }
}

/* Returns -1, or the exit status after a message. */
static int cli_force_read(cli_force_target *target, const cli_settings *settings) {
  char *token = settings->operands[2];
  if (!cli_read_text(token, &target->length) || target->length == 0 ||
      target->length > REDLOCK_TOKEN_MAX) {
    return cli_fail(CLI_USAGE, "invalid token; copy it from redlock inspect");
  }
  memcpy(target->token, token, target->length);
  return -1;
}

int cli_force_release(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  cli_force_target target = {0};
  int status = cli_force_read(&target, settings);
  status = status < 0 ? cli_inspect_await(settings, loop, lock) : status;
  if (status < 0) {
    cli_force_find(&target, lock);
    status = cli_await(settings, loop, lock,
                       redlock_lock_force_release_start(lock, target.token, target.length));
  }
  if (status >= 0) {
    return status;
  }
  cli_put_votes(settings, lock,
                &(cli_vote_words){.granted = "deleted",
                                  .taken = "not_held",
                                  .label = target.label_length > 0 ? target.label : NULL,
                                  .label_length = target.label_length});
  return cli_print_result(settings, lock);
}
