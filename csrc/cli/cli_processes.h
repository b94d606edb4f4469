/*
 * redlock(1): the processes of a run, found in /proc.
 *
 * SPDX-License-Identifier: MIT
 *
 * While the tool lives, they are its descendants. When it has died, the orphans of its command have
 * other parents. Their environment still shows to which run they belong: it has the mark.
 */
#ifndef CLI_PROCESSES_H
#define CLI_PROCESSES_H

#include <stddef.h>
#include <sys/types.h>

#define CLI_MARK "REDLOCK_RUN" /* the variable */
#define CLI_MARK_SIZE 64
#define CLI_CANARY "lock-canary" /* name of a canary, as in cli_child.h */

/*
 * Sends |number| to the process |root| and to all descendants of this process that began no earlier
 * than |root|, except |spared|. Children of that kind are orphans of |root|, if this process is a
 * subreaper. |number| 0 sends nothing. Returns how many of them live.
 *
 * It needs /proc of this PID namespace. Without it, PID 1 signals all processes but itself, and
 * another process only |root|.
 */
size_t cli_processes_signal(pid_t root, unsigned long long began, pid_t spared, int number);

/*
 * Sends |number| to all processes that began with the value |mark| of the variable, except
 * |spared|, this one and canaries. The canary of a run inside this run ends the processes of that
 * run, which have another mark. 0 sends nothing. Returns how many live. It needs /proc, and the
 * rights of their user.
 */
size_t cli_processes_signal_marked(const char *mark, pid_t spared, int number);

/* Returns the start time of a process in clock ticks, or 0 if it is unknown. */
unsigned long long cli_processes_began(pid_t pid);

/* Writes a unique value of the variable. */
void cli_processes_make_mark(char mark[static CLI_MARK_SIZE]);

#endif
