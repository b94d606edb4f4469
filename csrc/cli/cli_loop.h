/*
 * redlock(1): waits for nodes and signals at once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_LOOP_H
#define CLI_LOOP_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>

#include "redlock.h"

typedef struct cli_loop {
  redlock_client *client;
  int signals;           /* read end of the pipe that the signal handler writes to */
  sigset_t taken;        /* signals whose disposition the loop has changed */
  sigset_t before;       /* signals that were blocked before */
  bool ignored_children; /* SIGCHLD was ignored before */
} cli_loop;

/*
 * Handles and unblocks SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2, but leaves
 * those that are ignored (nohup) ignored. Ignores SIGPIPE, because the lock must be extended even
 * if the reader of our messages ends. A process can have one loop. Returns false with errno if the
 * system refuses.
 */
bool cli_loop_open(cli_loop *loop, redlock_client *client);

/*
 * Processes the client once, waiting until |until_us| at most. Events of the |count| descriptors
 * |more|, at most REDLOCK_NODES_MAX, also end the wait. Returns a signal, or 0, also for SIGCHLD.
 */
int cli_loop_turn(cli_loop *loop, redlock_time until_us, struct pollfd *more, size_t count);

#endif
