/*
 * redlock(1): a held lock as text, between two runs of the tool.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_handover.h"

#include <stdio.h>
#include <string.h>

#include "cli_inspect.h"
#include "cli_json.h"
#include "cli_output.h"

#define CLI_HANDOVER_PATIENCE_US (100 * REDLOCK_MILLISECONDS)

/* ---------------------------------------------------------------------------------------- write */

static void cli_handover_json(redlock_lock *lock, uint64_t fence, redlock_duration left_us,
                              const char *text) {
  cli_json json = {0};
  size_t length;
  const void *resource = redlock_lock_resource(lock, &length);
  cli_json_begin(&json, NULL, '{');
  cli_json_bytes(&json, "resource", resource, length);
  cli_json_text(&json, "text", text);
  cli_json_time(&json, "validity_ms", left_us);
  if (fence > 0) {
    cli_json_number(&json, "fence", fence);
  }
  cli_json_end_line(&json);
}

/* Returns true if a node has neither answered nor failed. */
static bool cli_handover_pending(redlock_lock *lock) {
  redlock_vote_info vote;
  for (size_t i = 0; redlock_lock_vote(lock, i, &vote) == REDLOCK_OK; i++) {
    if (vote.vote == REDLOCK_VOTE_UNKNOWN && vote.error == NULL) {
      return true;
    }
  }
  return false;
}

/*
 * A majority has decided. The exit of the program would reset the connections to the other nodes,
 * which might then drop the command. So they get a moment to answer. Signals wait.
 */
static void cli_handover_settle(cli_loop *loop, redlock_lock *lock) {
  redlock_time until_us = redlock_now() + CLI_HANDOVER_PATIENCE_US;
  while (cli_handover_pending(lock) && redlock_now() < until_us) {
    (void)cli_loop_turn(loop, until_us);
  }
}

int cli_handover_print(const cli_settings *settings, cli_loop *loop, redlock_lock *lock,
                       char text[static REDLOCK_HANDOVER_MAX]) {
  cli_handover_settle(loop, lock);
  uint64_t fence = redlock_lock_fence(lock);
  redlock_duration left_us = redlock_lock_remaining(lock);
  int error = redlock_lock_detach(lock, text, REDLOCK_HANDOVER_MAX, NULL);
  if (error != REDLOCK_OK) {
    return cli_fail_lock(settings, lock, error);
  }
  if (settings->json) {
    cli_handover_json(lock, fence, left_us, text);
  } else {
    (void)puts(text);
  }
  return cli_flush();
}

/* ----------------------------------------------------------------------------------------- read */

/* Reads the text from the standard input if |operand| is "-". Returns its length, or 0. */
static size_t cli_handover_read(const char *operand, char text[static REDLOCK_HANDOVER_MAX]) {
  size_t length = strcmp(operand, "-") == 0
                      ? fread(text, 1, REDLOCK_HANDOVER_MAX, stdin)
                      : (size_t)snprintf(text, REDLOCK_HANDOVER_MAX, "%s", operand);
  if (length >= REDLOCK_HANDOVER_MAX) {
    return 0;
  }
  while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL) {
    length--;
  }
  return length;
}

/* Returns -1 if |lock| has a result of REDLOCK_OK, or the exit status after a message. */
static int cli_handover_result(const cli_settings *settings, redlock_lock *lock) {
  if (settings->json && redlock_lock_result(lock) != REDLOCK_OK) {
    cli_json_failure(lock, redlock_lock_result(lock), NULL);
  }
  return cli_result(settings, lock);
}

/*
 * An attached lock is acquired in one attempt, whose failure leaves the text without use. So a
 * harmless inspection connects first. Returns -1, or the exit status after a message; then the text
 * is as good as before.
 */
static int cli_handover_connect(const cli_settings *settings, cli_loop *loop,
                                const redlock_lock *attached) {
  size_t length;
  const void *resource = redlock_lock_resource(attached, &length);
  redlock_lock *lock;
  if (redlock_lock_new(&lock, loop->client, resource, length, NULL) != REDLOCK_OK) {
    return cli_fail(CLI_SYSTEM, "%s", redlock_client_message(loop->client));
  }
  int status = cli_inspect_await(settings, loop, lock);
  status = status < 0 ? cli_handover_result(settings, lock) : status;
  redlock_lock_free(lock);
  return status;
}

/* Takes the lease of the text over. Returns -1, or the exit status after a message. */
static int cli_handover_attach(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int status = cli_handover_connect(settings, loop, lock);
  if (status < 0) {
    status = cli_await(settings, loop, lock, redlock_lock_acquire_start(lock, NULL));
  }
  return status < 0 ? cli_handover_result(settings, lock) : status;
}

int cli_handover_with_lock(const cli_settings *settings, redlock_client *client, cli_step *step) {
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = cli_handover_read(settings->operands[1], text);
  cli_loop loop;
  redlock_lock *lock;
  if (length == 0) {
    return cli_fail(CLI_USAGE, "no text of a lock; use what redlock acquire or extend printed");
  }
  if (redlock_lock_attach(&lock, client, text, length, NULL) != REDLOCK_OK) {
    return cli_fail(CLI_USAGE, "%s", redlock_client_message(client));
  }
  int status = cli_loop_open(&loop, client)
                   ? cli_handover_attach(settings, &loop, lock)
                   : cli_fail(CLI_SYSTEM, "cannot create a pipe or a signal handler: %m");
  status = status < 0 ? step(settings, &loop, lock) : status;
  redlock_lock_free(lock);
  return status;
}

void cli_handover_release(redlock_client *client, const char *text) {
  redlock_lock *lock;
  redlock_options options = {.hold_at_least_us = REDLOCK_DURATION_NONE};
  if (redlock_lock_attach(&lock, client, text, strlen(text), &options) == REDLOCK_OK) {
    if (redlock_lock_acquire(lock, NULL, NULL) == REDLOCK_OK) {
      (void)redlock_lock_release(lock);
    }
    redlock_lock_free(lock);
  }
}
