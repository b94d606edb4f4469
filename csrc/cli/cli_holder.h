/*
 * redlock(1): shows the current holder of a lock while an acquire waits for it (-v).
 *
 * SPDX-License-Identifier: MIT
 *
 * Another lock of the same name inspects the nodes now and then. A line on the standard error names
 * each new holder.
 */
#ifndef CLI_HOLDER_H
#define CLI_HOLDER_H

#include "cli.h"

typedef struct cli_holder {
  redlock_lock *wanted;
  redlock_lock *inspected; /* NULL without -v, and if it could not be made */
  redlock_time begun_us, next_us;
  bool pending;
  size_t token_length;
  char token[REDLOCK_TOKEN_MAX]; /* of the holder that was shown last */
} cli_holder;

/* |wanted| waits from now on. */
void cli_holder_open(cli_holder *holder, const cli_settings *settings, redlock_lock *wanted);

/* Does what is due, after each turn of the loop. Returns the time when it must be called again. */
redlock_time cli_holder_turn(cli_holder *holder);

/* Writes how long the acquire took if it was granted, and frees the other lock. */
void cli_holder_close(cli_holder *holder);

#endif
