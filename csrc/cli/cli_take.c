/*
 * redlock(1): acquires a lock, for the verbs that need one.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli_inspect.h"
#include "cli_output.h"

/* --------------------------------------------------------------------------------------- holder */

/* An acquire that is granted sooner has not waited. */
#define CLI_HOLDER_FIRST_US (200 * REDLOCK_MILLISECONDS)
#define CLI_HOLDER_INTERVAL_US REDLOCK_SECONDS
/* Four columns for each byte of the token, with its label; " (", ")" and NUL. */
#define CLI_HOLDER_TEXT_SIZE (4 * REDLOCK_TOKEN_MAX + 4)

/* Another lock of the same name, which inspects the nodes now and then (-v). */
typedef struct cli_holder {
  const cli_settings *settings;
  redlock_lock *wanted;
  redlock_lock *inspected; /* NULL without -v, and if it could not be made */
  redlock_time begun_us, next_us;
  bool pending;
  size_t token_length;
  char token[REDLOCK_TOKEN_MAX]; /* of the holder that was shown last */
} cli_holder;

/* |wanted| waits from now on. */
static void cli_holder_open(cli_holder *holder, const cli_settings *settings,
                            redlock_lock *wanted) {
  size_t length;
  const void *resource = redlock_lock_resource(wanted, &length);
  *holder = (cli_holder){.settings = settings, .wanted = wanted, .begun_us = redlock_now()};
  holder->next_us = holder->begun_us + CLI_HOLDER_FIRST_US;
  if (!settings->verbose || redlock_lock_new(&holder->inspected, redlock_lock_client(wanted),
                                             resource, length, NULL) != REDLOCK_OK) {
    holder->inspected = NULL;
  }
}

/* Shows the holder unless the last line has. */
static void cli_holder_show(cli_holder *holder) {
  redlock_holder_info info;
  char ttl[24];
  char text[CLI_HOLDER_TEXT_SIZE] = "";
  if (redlock_lock_holder(holder->inspected, &info) != REDLOCK_OK ||
      info.token_length > sizeof holder->token ||
      (info.token_length == holder->token_length &&
       memcmp(info.token, holder->token, info.token_length) == 0)) {
    return;
  }
  holder->token_length = info.token_length;
  memcpy(holder->token, info.token, info.token_length);
  FILE *memory = fmemopen(text, sizeof text, "w");
  if (memory != NULL) {
    (void)cli_put_holder(memory, &info);
    (void)fclose(memory);
  }
  (void)cli_fail(0, "'%s' is held by %s on %zu nodes, for %s unless it is extended",
                 holder->settings->name, text, info.nodes,
                 info.ttl_us == REDLOCK_NEVER ? "ever" : cli_format_time(ttl, info.ttl_us));
}

/* Does what is due, after each turn of the loop. Returns the time when it must be called again. */
static redlock_time cli_holder_turn(cli_holder *holder) {
  if (holder->inspected == NULL) {
    return REDLOCK_NEVER;
  }
  if (holder->pending && redlock_lock_result(holder->inspected) != REDLOCK_PENDING) {
    holder->pending = false;
    cli_holder_show(holder);
  }
  redlock_time now_us = redlock_now();
  if (!holder->pending && now_us >= holder->next_us) {
    holder->next_us = now_us + CLI_HOLDER_INTERVAL_US;
    holder->pending = redlock_lock_inspect_start(holder->inspected) == REDLOCK_OK;
  }
  return holder->pending ? REDLOCK_NEVER : holder->next_us;
}

/* Writes how long the acquire took if it was granted, and frees the other lock. */
static void cli_holder_close(cli_holder *holder) {
  char time[24];
  if (holder->inspected != NULL && redlock_lock_remaining(holder->wanted) > 0) {
    (void)cli_fail(0, "'%s' was granted after %s", holder->settings->name,
                   cli_format_time(time, redlock_now() - holder->begun_us));
  }
  redlock_lock_free(holder->inspected);
}

/* -------------------------------------------------------------------------------------- acquire */

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
                            redlock_lock *lock) {
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
  if (settings->json) {
    cli_json_failure(lock, REDLOCK_E_UNAVAILABLE, "too few nodes accept the password");
  }
  (void)cli_report(settings, 0, "'%s': %zu of %zu nodes reject the password; correct it",
                   settings->name, rejected, count);
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
    int number =
        turn != NULL ? turn(context, loop, until_us) : cli_loop_turn(loop, until_us, NULL, 0);
    if (number != 0) {
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

int cli_take(const cli_settings *settings, cli_loop *loop, redlock_lock *lock, cli_turn *turn,
             void *context) {
  cli_holder holder;
  int error = redlock_lock_acquire_start(lock, NULL);
  if (error != REDLOCK_OK) {
    return cli_fail_lock(settings, lock, error);
  }
  cli_holder_open(&holder, settings, lock);
  int status = cli_take_wait(settings, &holder, loop, lock, turn, context);
  cli_holder_close(&holder);
  return status;
}
