/*
 * redlock(1): the child process that runs the command.
 *
 * SPDX-License-Identifier: MIT
 *
 * "This process" is redlock. The canary is a child of it that only waits for signals.
 *
 * CMD-1. The command gets the signal mask and dispositions that this process got from its parent.
 *        No signal is lost between fork and exec.
 * CMD-2. If this process dies, the kernel sends the command a signal, SIGTERM or SIGKILL. The
 *        canary sends the same signal to all processes with the mark of this run, and SIGKILL after
 *        a time (Linux).
 * CMD-3. Orphans of the command become children of this process (Linux), so that it can find and
 *        reap them.
 * CMD-4. A signal that ends the canary went to the whole process group or control group, so the
 *        command has got it, too. Any other signal was for this process alone. The canary has a
 *        name of its own: pkill(1) must not hit both.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli_loop.h"
#include "cli_options.h"
#include "cli_processes.h"

typedef struct cli_child {
  const cli_loop *loop;
  const cli_line *line;
  int death;                      /* signal of CMD-2; 0: none */
  redlock_duration kill_after_us; /* of CMD-2 */
  redlock_time deadline_us;       /* The command does not begin later. */
  char mark[CLI_MARK_SIZE];       /* of CMD-2; in the environment of the command */
  int lifeline;                   /* write end of a pipe that shows our death to the canary */
  pid_t pid;                      /* of the command; 0 when it has ended */
  int state;                      /* as of waitpid() when it has ended */
  unsigned long long began;
  pid_t canary;     /* 0 if there is none */
  bool canary_shot; /* a signal has ended it, and the command has got that as well */
  bool canary_gone; /* a signal has ended it, also SIGKILL, and no other was tried */
} cli_child;

/*
 * Starts the command of |line|, by /bin/sh if it is a script without "#!". |command| has loop,
 * line, the deadline and the fields of CMD-2. Returns 0 or an errno: ETIME after the deadline.
 */
int cli_child_start(cli_child *command);

/* Reaps what has ended. */
void cli_child_reap(cli_child *command);

/*
 * Sends |number| to the command and to its descendants; 0 sends nothing. Returns how many of them
 * live.
 */
size_t cli_child_signal(const cli_child *command, int number);

/* Returns true if the command has got the signals as well that came since the last call. */
bool cli_child_shared_signal(cli_child *command);

/* Ends the canary. */
void cli_child_end(cli_child *command);

/* Prevents a core dump of this process. */
void cli_child_forbid_core(void);

#endif
