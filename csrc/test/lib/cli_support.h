/*
 * Runs redlock(1) with the three nodes of support.h.
 *
 * SPDX-License-Identifier: MIT
 *
 * Arguments are words with spaces between them. These words stand for the path of a script:
 *   HELD, FAILING   end when the test calls cli_let_go(), with the status 0 and 3
 *   ENDLESS         prints "started", and sleeps
 *   SCRIPT          has no "#!", prints its argument, and ends with the status 7
 */
#ifndef CLI_SUPPORT_H
#define CLI_SUPPORT_H

#include "support.h"
#include "tool.h"

extern tool_run cli_last; /* the run that has ended last */

/* Set-up of a group of tests: starts the nodes and writes the scripts. three_end() ends it. */
int cli_start(void **state);

/*
 * Starts the tool with the three nodes and |arguments|. Unless the arguments change it, nodes have
 * more time than a loaded machine needs. The child first calls |prepare| unless it is NULL.
 */
tool_run cli_begin(const char *arguments);
tool_run cli_begin_after(void (*prepare)(void), const char *arguments);

/* Waits for the end, and checks the exit status. */
void cli_finish(tool_run *run, int expected);

/* Both. */
void cli_check(const char *arguments, int expected);
void cli_check_after(void (*prepare)(void), const char *arguments, int expected);

/*
 * Runs a shell instead, in which $0 is the tool and $1 to $3 are the addresses of the nodes. Checks
 * the exit status.
 */
void cli_check_shell(const char *script, int expected);

/* Adds a word for a script of /bin/sh. "GATE" in |text| stands for the pipe of cli_let_go(). */
void cli_define(const char *word, const char *text);

/* Returns the path of the script for |word|, or |word|. */
const char *cli_path(const char *word);

/* Ends a command that reads the pipe, such as HELD or FAILING. */
void cli_let_go(void);

#endif
