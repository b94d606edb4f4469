/*
 * redlock(1): runs a command while a lock is held, for the verbs run and lead.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <stdint.h>

#include "cli.h"
#include "cli_child.h"
#include "cli_keep.h"

/* The rules are in cli_run.c. */
typedef struct cli_run_state {
  const cli_settings *settings;
  cli_loop *loop;
  redlock_lock *lock;
  cli_child command;
  cli_keep keep;           /* RUN-4: the reason of a warning */
  redlock_time check_us;   /* time of the next extend of RUN-3; REDLOCK_NEVER */
  uint64_t signals;        /* bits of those to be passed on at |pass_us| */
  uint64_t came;           /* bits of all that have come */
  uint64_t came_late;      /* bits of those that have come after |stopping| */
  redlock_time pass_us;    /* REDLOCK_NEVER if nothing has come */
  bool stopping;           /* RUN-4: SIGTERM was sent */
  redlock_time kill_us;    /* RUN-4: time of the next SIGKILL */
  redlock_time give_up_us; /* end of the patience with killed processes; 0 before SIGKILL */
  bool reported;           /* processes that cannot be killed */
} cli_run_state;

/*
 * Starts the command under the held lock. Returns -1, or the exit status after a message, without
 * the lock: CLI_UNAVAILABLE if the lease ended before.
 */
int cli_run_start(cli_run_state *run, const cli_settings *settings, cli_loop *loop,
                  redlock_lock *lock);

/*
 * Waits for the end of the command, and releases the lock. If the lease ends before, ends the
 * command and its descendants. Returns the exit status.
 */
int cli_run_wait(cli_run_state *run);

#endif
