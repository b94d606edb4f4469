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
  CLI_FOUND = 1, /* doctor: something keeps locks from being taken, or from being safe */
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
  int quorum; /* 0 = a majority */
  bool guard;
  redlock_duration guard_max_ttl_us; /* 0 = the default */
  const char *guard_cluster;         /* or NULL */
  redlock_options options;
  redlock_duration max_hold_us; /* of run; 0 = none */
  int taken_status;
  bool keys; /* of doctor: look through keys */
  const cli_verb *verb;
  char **operands;         /* the verb's name, and what belongs to it; ended by NULL */
  redlock_settings tls;    /* what it says of TLS */
  char key_password[1025]; /* from a file; or empty */
} cli_settings;

/* Reads the command line. Returns -1, or the status to exit with: a sentence has been written. */
int cli_settings_read(cli_settings *settings, int argc, char **argv);
void cli_settings_free(cli_settings *settings);

/*
 * The options of TLS without a short name. Those that are a text: X(its number, its name, its variable in the environment,
 * its field). Whoever writes any of them wants TLS.
 */
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
  CLI_TLS = 256, /* beyond all letters */
  CLI_TLS_MIN_VERSION,
  CLI_TLS_KEY_PASSWORD,
  CLI_TLS_KEY_PASSWORD_FILE,
  CLI_TLS_DANGEROUSLY_UNVERIFIED,
  CLI_TLS_TEXTS(CLI_TLS_NUMBER) CLI_TLS_END
};

/* Takes one of these options. Returns -1, or the status to exit with. */
int cli_tls_option(cli_settings *settings, int option, const char *value);

/* What the environment says, where the command line says nothing. Returns as above. */
int cli_tls_environment(cli_settings *settings);

/* Loads libredlock_tls. NULL when it cannot: that has been told. */
const redlock_transport *cli_tls_carrier(void);

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
  X(nodes, 0, 0, "", "takes a lock of its own name, and shows what each node answered")            \
  X(doctor, 0, 1, " [RESOURCE]", "examines the nodes, changes nothing, and says what is wrong")    \
  X(bootstrap, 0, 0, "",                                                                           \
    "with --guard: tells new nodes that they may vote; not while a lock is held")
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
