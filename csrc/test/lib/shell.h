/*
 * Shell scripts that use redlock(1) as a user does, with the three servers of support.h.
 *
 * SPDX-License-Identifier: MIT
 *
 * A script finds these variables:
 *
 *   $R               the tool, with options for a loaded machine; without quotes
 *   $TOOL            the path of the tool
 *   $REDLOCK_NODES   the three nodes
 *   $NODE1 ... 3     the address of each
 *   $DIR             a directory for files; it is emptied before each test
 *   $SELF            the path of the test program
 */
#ifndef SHELL_H
#define SHELL_H

#include "support.h"
#include "tool.h"

/* For groups of tests. |shell_reset| brings the servers back and empties $DIR. */
int shell_start(void **state);
int shell_start_durable(void **state); /* The servers lose nothing when they are killed. */
int shell_reset(void **state);
int shell_end(void **state);

/* $DIR */
const char *shell_directory(void);

/* Starts |script| in /bin/sh; in bash, with a terminal. */
tool_run shell_begin(const char *script);
tool_run shell_begin_after(void (*prepare)(void), const char *script);
tool_run shell_begin_on_terminal(const char *script);

/* Waits for its end, and fails unless it has this status. |shell_last| is this run. */
void shell_finish(tool_run *run, int status);
extern tool_run shell_last;

/* Runs |script|, and fails unless it ends with this status. */
void shell_check(const char *script, int status);

/* Returns true if |name|, a file in $DIR, exists. */
bool shell_has(const char *name);

/* Creates |name|, a file in $DIR: a script waits for it by "until [ -e $DIR/NAME ]; do ...". */
void shell_touch(const char *name);

/* Waits until all nodes have the key |resource|. */
void shell_until_held(const char *resource);

/* Locks |resource| for another client. */
void shell_take(const char *resource);

/* A loop that ends as soon as $DIR/NAME exists; or $DIR does not, because the test has ended. */
#define SHELL_UNTIL(name) "until [ -e $DIR/" name " ] || [ ! -d $DIR ]; do sleep 0.02; done"

#endif
