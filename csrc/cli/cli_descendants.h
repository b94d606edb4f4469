/*
 * redlock(1): the processes that descend from this one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLI_DESCENDANTS_H
#define CLI_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Sends |number| to the process |root| and to all descendants of this process that began no earlier
 * than |root|, except |spared|. Children of that kind are orphans of |root|, if this process is a
 * subreaper. |number| 0 sends nothing. Returns how many of them live.
 *
 * It needs /proc of this PID namespace. Without it, PID 1 signals all processes but itself, and
 * another process only |root|.
 */
size_t cli_descendants_signal(pid_t root, unsigned long long began, pid_t spared, int number);

/* Sends |number| to one process. Returns 1 if it lives, otherwise 0. */
size_t cli_descendants_signal_one(pid_t pid, int number);

/* Returns true if /proc shows the PID namespace of this process. */
bool cli_descendants_proc(void);

/* Returns the start time of a process in clock ticks, or 0 if it is unknown. */
unsigned long long cli_descendants_began(pid_t pid);

#endif
