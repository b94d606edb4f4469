/*
 * redlock(1): acquires a lock, for the verbs that need one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_take.h"

#include <string.h>

#include "cli_holder.h"
#include "cli_json.h"
#include "cli_output.h"

/* Returns true if |error|, of a node, is about the password. */
static bool cli_is_rejection(const char *error) {
  static const char *const starts[] = {
      "WRONGPASS ",           "NOAUTH ",   "ERR invalid password",
      "ERR Client sent AUTH", "ERR AUTH ", "an error that quotes the password"};
  for (size_t i = 0; error != NULL && i < sizeof starts / sizeof starts[0]; i++) {
    if (strncmp(error, starts[i], strlen(starts[i])) == 0) {
      return true;
    }
  }
  return false;
}

/* Returns true, after messages, if too few nodes accept the password. */
static bool cli_is_rejected(const cli_settings *settings, redlock_client *client,
                            const redlock_lock *lock) {
  redlock_node_info node;
  size_t count = redlock_client_node_count(client);
  size_t needed = cli_quorum(settings, count);
  size_t rejected = 0;
  for (size_t i = 0; redlock_client_node_info(client, i, &node) == REDLOCK_OK; i++) {
    rejected += cli_is_rejection(node.error);
  }
  if (count - rejected >= needed) {
    return false;
  }
  char name[CLI_NAME_SIZE];
  (void)cli_report(settings, 0, "'%s': %zu of %zu nodes reject the password; correct it",
                   cli_lock_name(name, lock), rejected, count);
  for (size_t i = 0; redlock_client_node_info(client, i, &node) == REDLOCK_OK; i++) {
    if (cli_is_rejection(node.error)) {
      (void)cli_report(settings, 0, "%s: %s", node.name, node.error);
    }
  }
  return true;
}

/* Waits for the end of the acquire. Returns as cli_take(). */
static int cli_take_wait(const cli_settings *settings, cli_holder *holder, cli_loop *loop,
                         redlock_lock *lock, cli_turn *turn, void *context) {
  while (redlock_lock_result(lock) == REDLOCK_PENDING) {
    redlock_time until_us = cli_holder_turn(holder);
    int number = turn != NULL ? turn(context, loop, until_us) : cli_loop_turn(loop, until_us);
    if (number != 0 && number != SIGCHLD) {
      redlock_lock_cancel(lock);
      return number == CLI_TURN_END ? 0 : CLI_SIGNAL + number;
    }
    if (cli_is_rejected(settings, loop->client, lock)) {
      redlock_lock_cancel(lock);
      return CLI_UNAVAILABLE;
    }
  }
  return -1;
}

int cli_take(const cli_settings *settings, cli_loop *loop, redlock_lock *lock,
             const redlock_options *options, cli_turn *turn, void *context) {
  cli_holder holder;
  int error = redlock_lock_acquire_start(lock, options);
  if (error != REDLOCK_OK) {
    return cli_fail_lock(settings, lock, error);
  }
  cli_holder_open(&holder, settings, lock);
  int status = cli_take_wait(settings, &holder, loop, lock, turn, context);
  cli_holder_close(&holder);
  return status;
}

void cli_take_json(redlock_lock *lock, int status) {
  int error = redlock_lock_result(lock);
  if (status < 0 && error != REDLOCK_OK) {
    cli_json_failure(lock, error, NULL);
  } else if (status == 0) {
    cli_json_failure(lock, REDLOCK_E_CANCELLED, "the input ended before the lock was granted");
  } else if (status == CLI_UNAVAILABLE) {
    cli_json_failure(lock, REDLOCK_E_UNAVAILABLE, "too few nodes accept the password");
  }
}
