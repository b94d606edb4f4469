/*
 * redlock(1): the processes that have a mark in their environment.
 *
 * SPDX-License-Identifier: MIT
 *
 * When the tool has died, the orphans of its command have other parents. Their environment still
 * shows to which run they belong.
 */
#ifndef CLI_MARK_H
#define CLI_MARK_H

#include <stddef.h>
#include <sys/types.h>

#define CLI_MARK "REDLOCK_RUN" /* the variable */
#define CLI_MARK_SIZE 64
#define CLI_CANARY "lock-canary" /* name of a canary, as in cli_command.h */

/* Writes a unique value of the variable. */
void cli_mark_make(char mark[static CLI_MARK_SIZE]);

/*
 * Sends |number| to all processes that began with the variable |mark|, except |spared|, this one
 * and canaries. The canary of a run inside this run ends the processes of that run, which have
 * another mark. 0 sends nothing. Returns how many live. It needs /proc, and the rights of their
 * user.
 */
size_t cli_mark_signal(const char *mark, pid_t spared, int number);

#endif
