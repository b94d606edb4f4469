/*
 * redlock(1): a command that runs under a lock, as with flock(1), but over several nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * It is built on redlock.h alone. docs/cli.md is its manual.
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

/* What it exits with, if not with the status of the command. 64 to 75 are those of sysexits.h. */
enum {
  CLI_TAKEN = 1, /* unless -E says otherwise */
  CLI_USAGE = 64,
  CLI_UNAVAILABLE = 69,
  CLI_SYSTEM = 71,
  CLI_LOST = 75,
  CLI_NOT_EXECUTABLE = 126,
  CLI_NOT_FOUND = 127
};

typedef struct cli_verb cli_verb;

typedef struct cli_settings {
  const char *nodes[REDLOCK_NODES_MAX];
  size_t node_count;
  char *environment; /* REDLOCK_NODES, which |nodes| point into; or NULL */
  const char *prefix;
  redlock_options options;
  redlock_duration max_hold_us; /* of run; 0 = none */
  int taken_status;
  const cli_verb *verb;
  char **operands; /* the verb's name, and what belongs to it; ended by NULL */
} cli_settings;

/* Reads the command line. Returns -1, or the status to exit with: a sentence has been written. */
int cli_settings_read(cli_settings *settings, int argc, char **argv);
void cli_settings_free(cli_settings *settings);

/* Writes a line to the standard error, with the program's name before it. Returns |status|. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The status for an acquire that ended with |error|; says why. */
int cli_fail_to_acquire(const cli_settings *settings, redlock_lock *lock, int error);

/*
 * The verbs: X(name, its fewest and most operands, what they are, what it does). A new one is a line here
 * and a file cli_NAME.c with the function cli_NAME(), which returns the status to exit with.
 */
#define CLI_VERBS(X)                                                                               \
  X(run, 2, CLI_OPERANDS_ANY, " RESOURCE [--] COMMAND [ARGUMENT]...",                              \
    "takes the lock, runs the command, keeps the lock while it runs, releases it")                 \
  X(nodes, 0, 0, "", "takes a lock of its own name, and shows what each node answered")
#define CLI_OPERANDS_ANY ((size_t)-1)

struct cli_verb {
  const char *name;
  size_t fewest, most;
  const char *operands;
  int (*call)(const cli_settings *settings, redlock_client *client);
};

#define CLI_VERB_FUNCTION(name, fewest, most, operands, does)                                      \
  int cli_##name(const cli_settings *settings, redlock_client *client);
CLI_VERBS(CLI_VERB_FUNCTION)

#endif
