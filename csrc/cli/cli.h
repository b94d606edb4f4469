/*
 * redlock(1): runs a command under a lock, as flock(1) does, but on several nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * The tool uses redlock.h alone. docs/cli.md is its manual.
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "cli_loop.h"
#include "cli_options.h"
#include "redlock.h"

/* Exit statuses besides that of the command. 64 to 75 have the meanings of sysexits.h. */
enum {
  CLI_TAKEN = 1,    /* unless -E sets another */
  CLI_FOUND = 1,    /* doctor: found an error */
  CLI_NOT_HELD = 1, /* force-release: no node has the token */
  CLI_USAGE = 64,
  CLI_UNAVAILABLE = 69,
  CLI_SYSTEM = 71,
  CLI_LOST = 75,
  CLI_NOT_EXECUTABLE = 126,
  CLI_NOT_FOUND = 127,
  CLI_SIGNAL = 256 /* CLI_SIGNAL + n: the process ends itself by signal n */
};

#define CLI_TEXTS_MAX 65536

struct cli_settings {
  const char *nodes[REDLOCK_NODES_MAX]; /* addresses, in the command line or in |texts| */
  size_t node_count;
  size_t texts_length;
  char texts[CLI_TEXTS_MAX + 1]; /* addresses of files or of the environment */
  redlock_settings client;       /* its |options| are the next field */
  redlock_options options;
  redlock_duration kill_after_us; /* of run and lead */
  redlock_duration interval_us;   /* of watch */
  redlock_duration duration_us;   /* of bench */
  bool warn;                      /* of run: --on-lost=warn */
  int strict;                     /* of run and lead; a flag is REDLOCK_YES or 0 */
  int keys;                       /* of doctor: searches keys */
  int ctdb;                       /* of hold: follows CTDB's protocol */
  int quiet, verbose, json;
  int taken_status;
  cli_line line;
  char **operands;         /* of |line|: the verb's name and its operands; ended by NULL */
  char key_password[1025]; /* from a file; or empty */
  char label[REDLOCK_LABEL_MAX + 1]; /* the default of --label */
  char name[128]; /* the first operand as printable text: of most verbs, the name of the lock */
};

/* Reads the command line and the environment. Returns -1, or the exit status after a message. */
int cli_settings_read(cli_settings *settings, int argc, char **argv);

/* Returns how many of |nodes| must grant a lock. */
size_t cli_quorum(const cli_settings *settings, size_t nodes);

/*
 * Adds the addresses in |text|, which has commas or white space between them, and is changed.
 * Returns -1, or the exit status after a message.
 */
int cli_addresses_option(cli_settings *settings, char *text);

/* Adds the addresses of a file. Returns as above. */
int cli_addresses_file(cli_settings *settings, const char *path);

/* Adds those of REDLOCK_NODES if the command line names none. Returns as above. */
int cli_addresses_environment(cli_settings *settings);

/* Reads the password of the key of TLS from the first line of a file. Returns as above. */
int cli_tls_key_password(cli_settings *settings, const char *path);

/* Loads libredlock_tls. Returns NULL after a message. */
const redlock_transport *cli_tls_transport(void);

/* Writes a line with the program's name to the standard error. Returns |status|. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, except that -q silences it. */
int cli_report(const cli_settings *settings, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Waits for the end of an operation, whose start returned |error|. Returns -1 when the operation
 * has ended. Returns the exit status if the start failed, or if a signal came (CLI_SIGNAL + n).
 */
int cli_await(const cli_settings *settings, cli_loop *loop, redlock_lock *lock, int error);

/* As cli_loop_turn(). Returns a signal, 0, or CLI_TURN_END if the wait must end. */
typedef int cli_turn(void *context, cli_loop *loop, redlock_time until_us);
#define CLI_TURN_END (-1)

/*
 * Acquires the lock. With -v, names each new holder meanwhile. |turn| replaces cli_loop_turn()
 * unless it is NULL. Returns -1 when the acquire has ended: cli_result() follows. Returns the exit
 * status if it could not begin (after a message), if a signal came, or if |turn| has ended it (0).
 * It also ends, after a message, if so many nodes reject the password that too few are left:
 * waiting does not help.
 */
int cli_take(const cli_settings *settings, cli_loop *loop, redlock_lock *lock, cli_turn *turn,
             void *context);

/* Attaches the lock of the text |operand|. Returns -1, or the exit status after a message. */
int cli_handover_open(redlock_lock **lock, redlock_client *client, const char *operand);

/* Releases the lock of |text| at once, also before the end of --hold-for. */
void cli_handover_release(redlock_client *client, const char *text);

/*
 * Returns the exit status for |error| of |lock|, after a message. -q silences it, except for wrong
 * usage.
 */
int cli_fail_lock(const cli_settings *settings, redlock_lock *lock, int error);

/*
 * Returns -1 if the operation succeeded, or the exit status after a message, which is also JSON
 * with --json.
 */
int cli_result(const cli_settings *settings, redlock_lock *lock);

/* Flushes what the verb has printed. Returns the exit status: 0 if the operation succeeded. */
int cli_print_result(const cli_settings *settings, redlock_lock *lock);

/*
 * Prints a row for each node, as text or as JSON: its name, the vote, and the error. |granted| and
 * |taken| are names for these votes. |label| is that of the holder, or NULL. With -q, only nodes
 * that have not granted get a row.
 */
void cli_put_votes(const cli_settings *settings, redlock_lock *lock, const char *granted,
                   const char *taken, const char *label, size_t label_length);

/* Flushes the standard output. Returns 0, or the exit status after a message. */
int cli_flush(void);

#define CLI_VERB_FUNCTION(function, name, fewest, most, operands, groups, purpose)                 \
  cli_call_verb cli_##function;
CLI_VERBS(CLI_VERB_FUNCTION)

#endif
