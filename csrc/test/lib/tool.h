/*
 * Runs programs and collects their output; finds the tool redlock(1).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct tool_run {
  pid_t pid;
  int output; /* read end of a pipe: the standard output and the standard error; or a terminal */
  int state;  /* of waitpid(), after tool_wait() */
  size_t length;
  char text[8192]; /* what was read so far; ended by NUL */
} tool_run;

/* Returns the path of the tool in the build directory of the running test program. */
const char *tool_path(void);

/* Removes the variables REDLOCK_... of the caller, but REDLOCK_TEST_..., which names the server. */
void tool_clean_environment(void);

/* Starts argv[0] in a child, which first calls |prepare| unless it is NULL. */
tool_run tool_start(void (*prepare)(void), const char *const *argv);

/*
 * The same in a session with a terminal of its own, which is the standard input, output and error.
 */
tool_run tool_start_on_terminal(void (*prepare)(void), const char *const *argv);

/* Types |text| on the terminal: "\x03" is Ctrl-C. */
void tool_type(const tool_run *self, const char *text);

/* Reads output, for |timeout_ms| at most. Returns false at its end. */
bool tool_read(tool_run *self, int timeout_ms);

/* Reads output until |part| is in it, or the output has ended. */
void tool_until_output(tool_run *self, const char *part);

/* Waits for the end of the program and of its output. Returns the exit status as a shell has it. */
int tool_wait(tool_run *self);

/* Returns the signal that has ended the program, or 0 if it ended by itself. */
int tool_signal(const tool_run *self);

/* Fails with the output unless |status| is |expected|. */
void tool_check_status(const tool_run *self, int status, int expected);

#endif
