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
#include "redlock.h"

/* Exit statuses besides that of the command. 64 to 75 have the meanings of sysexits.h. */
enum {
  CLI_TAKEN = 1, /* unless -E sets another */
  CLI_FOUND = 1, /* doctor: found an error */
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
  char *environment;       /* REDLOCK_NODES, if |nodes| point into it; or NULL */
  redlock_settings client; /* its |options| are the next field */
  redlock_options options;
  redlock_duration max_hold_us; /* of run; 0 = unlimited */
  int taken_status;
  bool keys; /* of doctor: searches keys */
  const cli_verb *verb;
  char **operands;         /* the verb's name and its operands; ended by NULL */
  char key_password[1025]; /* from a file; or empty */
} cli_settings;

/* Reads the command line and the environment. Returns -1, or the exit status after a message. */
int cli_settings_read(cli_settings *settings, int argc, char **argv);
void cli_settings_free(cli_settings *settings);

/* TLS options with a text: X(number, name, environment variable, field of redlock_settings). */
#define CLI_TLS_TEXTS(X)                                                                           \
  X(CA, "tls-ca", "REDLOCK_TLS_CA", tls_ca)                                                        \
  X(CA_PATH, "tls-ca-path", "REDLOCK_TLS_CA_PATH", tls_ca_path)                                    \
  X(CRL, "tls-crl", "REDLOCK_TLS_CRL", tls_crl)                                                    \
  X(CERT, "tls-cert", "REDLOCK_TLS_CERT", tls_cert)                                                \
  X(KEY, "tls-key", "REDLOCK_TLS_KEY", tls_key)                                                    \
  X(SERVER_NAME, "tls-server-name", "REDLOCK_TLS_SERVER_NAME", tls_server_name)                    \
  X(CIPHERS, "tls-ciphers", "REDLOCK_TLS_CIPHERS", tls_ciphers)
#define CLI_TLS_NUMBER(code, name, variable, field) CLI_TLS_##code,
enum {
  CLI_TLS = 256, /* above all letters */
  CLI_TLS_MIN_VERSION,
  CLI_TLS_KEY_PASSWORD,
  CLI_TLS_KEY_PASSWORD_FILE,
  CLI_TLS_DANGEROUSLY_UNVERIFIED,
  CLI_TLS_TEXTS(CLI_TLS_NUMBER) CLI_TLS_END
};

/* Reads one of these options; each turns TLS on. Returns -1, or the exit status after a message. */
int cli_tls_option(cli_settings *settings, int option, const char *value);

/* Reads the environment for options that the command line has not set. Returns as above. */
int cli_tls_environment(cli_settings *settings);

/* Loads libredlock_tls. Returns NULL after a message. */
const redlock_transport *cli_tls_transport(void);

/* Writes a line with the program's name to the standard error. Returns |status|. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The work of a verb with its lock. Returns the exit status. */
typedef int cli_step(const cli_settings *settings, cli_loop *loop, redlock_lock *lock);

/* Runs |step| with a lock of |resource|. Returns the exit status. */
int cli_with_lock(const cli_settings *settings, redlock_client *client, const char *resource,
                  cli_step *step);

/*
 * Waits for the end of an operation, whose start returned |error|. Returns -1 when the operation
 * has ended. Returns the exit status if the start failed, or if a signal came (128 + its number).
 */
int cli_await(const cli_settings *settings, cli_loop *loop, redlock_lock *lock, int error);

/* Returns -1 if the operation succeeded, or the exit status after a message. */
int cli_result(const cli_settings *settings, redlock_lock *lock);

/* Flushes what the verb has printed. Returns the exit status: 0 if the operation succeeded. */
int cli_print_result(const cli_settings *settings, redlock_lock *lock);

/*
 * X(name, fewest and most operands, their names, purpose). A new verb is a line here and a file
 * cli_NAME.c with a function cli_NAME(), which returns the exit status.
 */
#define CLI_VERBS(X)                                                                               \
  X(run, 2, CLI_OPERANDS_ANY, " RESOURCE [--] COMMAND [ARGUMENT]...",                              \
    "takes the lock, runs the command, extends the lock meanwhile, releases it")                   \
  X(nodes, 0, 0, "", "takes a lock of its own name, and shows the answer of each node")            \
  X(doctor, 0, 1, " [RESOURCE]", "examines the nodes without changing them, and reports problems") \
  X(bootstrap, 0, 0, "", "with --guard: lets new nodes vote; only safe while no lock is held")
#define CLI_OPERANDS_ANY ((size_t)-1)

struct cli_verb {
  const char *name;
  size_t fewest, most;
  const char *operands;
  int (*call)(const cli_settings *settings, redlock_client *client);
};

#define CLI_VERB_FUNCTION(name, fewest, most, operands, purpose)                                   \
  int cli_##name(const cli_settings *settings, redlock_client *client);
CLI_VERBS(CLI_VERB_FUNCTION)

#endif
