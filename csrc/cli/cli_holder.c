/*
 * redlock(1): shows the current holder of a lock while an acquire waits for it (-v).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli_holder.h"

#include <stdio.h>
#include <string.h>

#include "cli_inspect.h"
#include "cli_output.h"

/* An acquire that is granted sooner has not waited. */
#define CLI_HOLDER_FIRST_US (200 * REDLOCK_MILLISECONDS)
#define CLI_HOLDER_INTERVAL_US REDLOCK_SECONDS
/* Four columns for each byte of the token, with its label; " (", ")" and NUL. */
#define CLI_HOLDER_TEXT_SIZE (4 * REDLOCK_TOKEN_MAX + 4)

void cli_holder_open(cli_holder *holder, const cli_settings *settings, redlock_lock *wanted) {
  size_t length;
  const void *resource = redlock_lock_resource(wanted, &length);
  memset(holder, 0, sizeof *holder);
  holder->wanted = wanted;
  holder->begun_us = redlock_now();
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
  char name[CLI_NAME_SIZE];
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
                 cli_lock_name(name, holder->wanted), text, info.nodes,
                 info.ttl_us == REDLOCK_NEVER ? "ever" : cli_format_time(ttl, info.ttl_us));
}

redlock_time cli_holder_turn(cli_holder *holder) {
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

void cli_holder_close(cli_holder *holder) {
  char time[24];
  char name[CLI_NAME_SIZE];
  if (holder->inspected != NULL && redlock_lock_remaining(holder->wanted) > 0) {
    (void)cli_fail(0, "'%s' was granted after %s", cli_lock_name(name, holder->wanted),
                   cli_format_time(time, redlock_now() - holder->begun_us));
  }
  redlock_lock_free(holder->inspected);
  holder->inspected = NULL;
}
