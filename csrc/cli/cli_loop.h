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
  int signals;     /* the end of a pipe from which signals are read */
  sigset_t taken;  /* those that arrive there, or are ignored, and were not before */
  sigset_t before; /* those that were blocked before */
} cli_loop;

/*
 * From here on SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 arrive in the loop, also if they were
 * blocked, except for those that were ignored (nohup). SIGPIPE is ignored: whoever reads our messages may have gone,
 * and the lock is kept all the same. One loop in a process. Returns false when the system refuses.
 */
bool cli_loop_open(cli_loop *loop, redlock_client *client);

/* Does what the client has to do, until |until_us| at most. Returns a signal that has come, or 0. */
int cli_loop_turn(cli_loop *loop, redlock_time until_us);

#endif
