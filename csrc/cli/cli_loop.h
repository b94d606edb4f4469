/*
 * redlock(1): waiting for nodes and signals at once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_LOOP_H
#define CLI_LOOP_H

#include <signal.h>
#include <stdbool.h>

#include "redlock.h"

typedef struct cli_loop {
  redlock_client *client;
  int signals;      /* the end of a pipe from which signals are read */
  sigset_t handled; /* those that arrive there */
} cli_loop;

/*
 * From here on SIGCHLD, SIGHUP, SIGINT, SIGQUIT and SIGTERM arrive in the loop, except for those that
 * were ignored (nohup). One loop in a process. Returns false when the system refuses.
 */
bool cli_loop_open(cli_loop *loop, redlock_client *client);

/* Does what the client has to do, until |until_us| at most. Returns a signal that has come, or 0. */
int cli_loop_turn(cli_loop *loop, redlock_time until_us);

#endif
