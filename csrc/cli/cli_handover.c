/*
 * redlock acquire, extend and release: a held lock as text, between two runs of the tool.
 *
 * SPDX-License-Identifier: MIT
 *
 * Other users can see arguments, and a reader of the text can take the lock. So "-" stands for the
 * standard input.
 *
 * The acquire of an attached lock replaces its token and sets the full ttl. So the old text is of
 * no use after it, and extend needs no other operation.
 */

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli_inspect.h"
#include "cli_output.h"

#define CLI_HANDOVER_PATIENCE_US (100 * REDLOCK_MILLISECONDS)

/* ---------------------------------------------------------------------------------------- write */

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
    (void)cli_loop_turn(loop, until_us, NULL, 0);
  }
}

/* Detaches the held |lock| and prints its text, also into |text|. Returns the exit status. */
static int cli_handover_print(const cli_settings *settings, cli_loop *loop, redlock_lock *lock,
                              char text[static REDLOCK_HANDOVER_MAX]) {
  cli_handover_settle(loop, lock);
  uint64_t fence = redlock_lock_fence(lock);
  redlock_duration left_us = redlock_lock_remaining(lock);
  int error = redlock_lock_detach(lock, text, REDLOCK_HANDOVER_MAX, NULL);
  if (error != REDLOCK_OK) {
    return cli_fail_lock(settings, lock, error);
  }
  if (settings->json) {
    cli_json json = cli_json_begin_lock(lock);
    cli_json_text(&json, "text", text);
    cli_json_time(&json, "validity_ms", left_us);
    cli_json_count(&json, "fence", fence);
    cli_json_end_line(&json);
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

int cli_handover_open(redlock_lock **lock, redlock_client *client, const char *operand) {
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = cli_handover_read(operand, text);
  if (length == 0) {
    return cli_fail(CLI_USAGE, "no text of a lock; use what redlock acquire or extend printed");
  }
  return redlock_lock_attach(lock, client, text, length, NULL) == REDLOCK_OK
             ? -1
             : cli_fail(CLI_USAGE, "%s", redlock_client_message(client));
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
  status = status < 0 ? cli_result(settings, lock) : status;
  redlock_lock_free(lock);
  return status;
}

/* Takes the lease of the text over. Returns -1, or the exit status after a message. */
static int cli_handover_attach(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int status = cli_handover_connect(settings, loop, lock);
  if (status < 0) {
    status = cli_await(settings, loop, lock, redlock_lock_acquire_start(lock, NULL));
  }
  return status < 0 ? cli_result(settings, lock) : status;
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

/* ---------------------------------------------------------------------------------------- verbs */

/* A lock whose text cannot be printed is released, because no program could. */
int cli_acquire(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  char text[REDLOCK_HANDOVER_MAX] = "";
  int status = cli_take(settings, loop, lock, NULL, NULL);
  status = status < 0 ? cli_result(settings, lock) : status;
  if (status >= 0) {
    return status;
  }
  status = cli_handover_print(settings, loop, lock, text);
  if (status != 0 && text[0] != '\0') {
    cli_handover_release(loop->client, text);
  }
  return status;
}

/* If the new text cannot be printed, the lock stays: the work of its holder may go on. */
int cli_extend(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  char text[REDLOCK_HANDOVER_MAX];
  int status = cli_handover_attach(settings, loop, lock);
  return status < 0 ? cli_handover_print(settings, loop, lock, text) : status;
}

int cli_release(const cli_settings *settings, cli_loop *loop, redlock_lock *lock) {
  int status = cli_handover_attach(settings, loop, lock);
  if (status < 0) {
    status = cli_await(settings, loop, lock, redlock_lock_release_start(lock));
  }
  status = status < 0 ? cli_result(settings, lock) : status;
  if (status < 0 && settings->json) {
    cli_json json = cli_json_begin_lock(lock);
    cli_json_bool(&json, "released", true);
    cli_json_end_line(&json);
  }
  return status < 0 ? cli_flush() : status;
}
