/*
 * redlock(1): the table of options, and the parts of a command line.
 *
 * SPDX-License-Identifier: MIT
 *
 * The parser, the help, the manual page and the completions are made from this table and from
 * cli_verbs.h. A new option is a row here and a row in cli_settings.c.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli_verbs.h"

/*
 * X(group, title). A verb accepts the options of its groups. All verbs accept those of CLIENT, TLS
 * and ALWAYS, so that one alias with the nodes serves them all.
 */
#define CLI_GROUPS(X)                                                                              \
  X(CLIENT, "Nodes and leases")                                                                    \
  X(WAIT, "Waiting for the lock")                                                                  \
  X(KEEP, "Keeping the lock")                                                                      \
  X(LABEL, "Label of the lock, for people")                                                        \
  X(FENCE, "Fencing token")                                                                        \
  X(PERMITS, "Several holders")                                                                    \
  X(LEAST, "Minimum hold")                                                                         \
  X(RUN, "The command")                                                                            \
  X(STOP, "Stopping the command")                                                                  \
  X(KEYS, "Examination")                                                                           \
  X(TALK, "Messages")                                                                              \
  X(JSON, "Output")                                                                                \
  X(HOLD, "Holding")                                                                               \
  X(WATCH, "Watching")                                                                             \
  X(BENCH, "Measurement")                                                                          \
  X(TLS, "TLS; each of these options turns it on, and rediss:// turns it on for one node")         \
  X(ALWAYS, "Help")

/*
 * X(code, letter or 0, name, name of the value or NULL, group, meaning [default]), in the order of
 * the help.
 */
#define CLI_OPTIONS(X)                                                                             \
  X(NODE, 'n', "node", "ADDRESS", CLIENT,                                                          \
    "a node, or several with commas or spaces between them [REDLOCK_NODES]")                       \
  X(NODES_FILE, 0, "nodes-file", "FILE", CLIENT,                                                   \
    "file of addresses, one a line; # begins a comment")                                           \
  X(TTL, 't', "ttl", "TIME", CLIENT, "time after which the lock ends if this program dies [10s]")  \
  X(NODE_TIMEOUT, 0, "node-timeout", "TIME", CLIENT,                                               \
    "time limit of one attempt [100ms, at most a tenth of the ttl]")                               \
  X(QUORUM, 0, "quorum", "NUMBER", CLIENT,                                                         \
    "nodes that must grant the lock, if more than a majority")                                     \
  X(GUARD, 0, "guard", NULL, CLIENT,                                                               \
    "ignore nodes that may have lost locks (implied by the next two)")                             \
  X(GUARD_MAX_TTL, 0, "guard-max-ttl", "TIME", CLIENT,                                             \
    "longest ttl of any client of the nodes [30s]")                                                \
  X(GUARD_CLUSTER, 0, "guard-cluster", "NAME", CLIENT,                                             \
    "name of the list of nodes [a hash of the list]")                                              \
  X(PREFIX, 'p', "prefix", "TEXT", CLIENT, "text before the name of the resource")                 \
  X(WAIT, 'w', "wait", "TIME", WAIT,                                                               \
    "time to wait, or inf; 0 = try once [0.6s if taken, 1s if nodes hang; lead: inf]")             \
  X(CONFLICT, 'E', "conflict-exit-code", "NUMBER", WAIT, "exit status if the lock is taken [1]")   \
  X(MAX_HOLD, 0, "max-hold", "TIME", KEEP,                                                         \
    "time after which the lock is not extended any longer [unlimited]")                            \
  X(LABEL, 0, "label", "TEXT", LABEL, "text that other clients see [HOST pid N COMMAND]")          \
  X(NO_LABEL, 0, "no-label", NULL, LABEL, "no such text")                                          \
  X(FENCE, 0, "fence", NULL, FENCE, "give each grant a greater number: REDLOCK_FENCE")             \
  X(PERMITS, 0, "permits", "NUMBER", PERMITS,                                                      \
    "up to so many holders at once, the same number for all: REDLOCK_SLOT")                        \
  X(HOLD_FOR, 0, "hold-for", "TIME", LEAST,                                                        \
    "keep the lock for TIME after the grant, even if released before")                             \
  X(ON_LOST, 0, "on-lost", "term|warn", RUN,                                                       \
    "if the lock ends: stop the command (term), or only report it (warn) [term]")                  \
  X(STRICT, 0, "strict", NULL, STOP, "kill the command before the lock ends")                      \
  X(KILL_AFTER, 0, "kill-after", "TIME", STOP,                                                     \
    "time from SIGTERM to SIGKILL; with --strict at most ttl/4 [5s]")                              \
  X(KEYS, 0, "keys", NULL, KEYS, "also search for locks that never expire")                        \
  X(QUIET, 'q', "quiet", NULL, TALK, "write no messages except about mistakes of usage")           \
  X(VERBOSE, 'v', "verbose", NULL, TALK, "write more, such as the holder of the lock")             \
  X(JSON, 0, "json", NULL, JSON, "print JSON")                                                     \
  X(CTDB, 0, "ctdb", NULL, HOLD, "print a digit, as CTDB's cluster mutex helpers do")              \
  X(INTERVAL, 0, "interval", "TIME", WATCH, "time between two inspections [1s]")                   \
  X(DURATION, 0, "duration", "TIME", BENCH, "length of the measurement [5s]")                      \
  X(TLS, 0, "tls", NULL, TLS, "use TLS for all nodes except Unix sockets")                         \
  X(TLS_CA, 0, "tls-ca", "FILE", TLS, "trusted CA certificates [the system's]")                    \
  X(TLS_CA_PATH, 0, "tls-ca-path", "DIRECTORY", TLS, "the same, by openssl-rehash")                \
  X(TLS_CRL, 0, "tls-crl", "FILE", TLS, "revoked certificates")                                    \
  X(TLS_CERT, 0, "tls-cert", "FILE", TLS, "own certificate")                                       \
  X(TLS_KEY, 0, "tls-key", "FILE", TLS, "its key")                                                 \
  X(TLS_KEY_PASSWORD_FILE, 0, "tls-key-password-file", "FILE", TLS,                                \
    "file whose first line is the password of the key")                                            \
  X(TLS_SERVER_NAME, 0, "tls-server-name", "NAME", TLS,                                            \
    "name in the nodes' certificates [the host of the node]")                                      \
  X(TLS_MIN_VERSION, 0, "tls-min-version", "VERSION", TLS, "1.2 or 1.3 [1.2]")                     \
  X(TLS_CIPHERS, 0, "tls-ciphers", "LIST", TLS, "OpenSSL names, separated by ':'")                 \
  X(TLS_DANGEROUSLY_UNVERIFIED, 0, "tls-dangerously-unverified", NULL, TLS,                        \
    "accept any certificate")                                                                      \
  X(HELP, 'h', "help", NULL, ALWAYS, "show the help; of the verb, if there is one")                \
  X(VERSION, 'V', "version", NULL, ALWAYS, "show the version")

#define CLI_GROUP_NUMBER(group, title) CLI_GROUP_##group,
enum { CLI_GROUPS(CLI_GROUP_NUMBER) CLI_GROUP_COUNT };
#define CLI_GROUP_BIT(group, title) CLI_FOR_##group = 1 << CLI_GROUP_##group,
enum {
  CLI_GROUPS(CLI_GROUP_BIT) CLI_FOR_NODES = CLI_FOR_CLIENT | CLI_FOR_TLS,
  CLI_FOR_REPORT = CLI_FOR_TALK | CLI_FOR_JSON
};

#define CLI_OPTION_NUMBER(code, letter, name, value, group, meaning) CLI_OPTION_##code,
typedef enum cli_option_code { CLI_OPTIONS(CLI_OPTION_NUMBER) CLI_OPTION_COUNT } cli_option_code;

typedef struct cli_option {
  cli_option_code code;
  char letter;
  const char *name, *value;
  unsigned group; /* one bit, CLI_FOR_... */
  const char *meaning;
} cli_option;

typedef struct cli_settings cli_settings;
struct cli_loop;
struct redlock_lock;

/* Does the work of a verb with its lock. Returns the exit status. */
typedef int cli_call_verb(const cli_settings *settings, struct cli_loop *loop,
                          struct redlock_lock *lock);

typedef struct cli_verb {
  cli_call_verb *call;
  const char *name;
  size_t fewest, most; /* operands */
  const char *operands;
  unsigned groups; /* CLI_FOR_... */
  const char *purpose;
} cli_verb;

extern const cli_option cli_options[CLI_OPTION_COUNT];
extern const cli_verb cli_verbs[]; /* ended by a verb without name */

/* Returns the verb of this name, or NULL. */
const cli_verb *cli_verb_find(const char *name);

/* An option of a command line. */
typedef struct cli_choice {
  const cli_option *option;
  const char *value;    /* or NULL */
  const char *variable; /* of the environment, whose value this is; or NULL */
} cli_choice;

#define CLI_CHOICES_MAX 256

/* A command line in parts. */
typedef struct cli_line {
  char *title; /* memory of all words, which ps(1) shows */
  size_t title_size;
  cli_choice choices[CLI_CHOICES_MAX];
  size_t choice_count;
  const cli_verb *verb; /* or NULL */
  char **operands;      /* the name of the verb and its operands; ended by NULL */
  size_t operand_count;
} cli_line;

/*
 * Splits a command line. Options may stand before and after the verb, up to "--" or to the first
 * word of a command. The operands are moved to the beginning of |argv|. Returns -1, or the exit
 * status after a message.
 */
int cli_line_read(cli_line *line, int argc, char **argv);

/* Checks operands and options for the verb. Returns as above. */
int cli_line_check(const cli_line *line);

/* Prints the help of |verb|, or of all verbs if it is NULL. */
void cli_help_print(const cli_verb *verb);

/* Rejects |value|: writes "|what| '|value|' |rule|" with a reference to the help of |verb|. */
int cli_reject(const cli_verb *verb, const char *what, const char *value, const char *rule);

#endif
