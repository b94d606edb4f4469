/*
 * Throw-away redis-servers on free ports of 127.0.0.1, and functions to inspect them from outside.
 *
 * SPDX-License-Identifier: MIT
 *
 * The servers end with the program that started them, and so does their directory, however the
 * program ends. Every error here fails the running test.
 */
#ifndef FARM_H
#define FARM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "redlock.h"
#include "scratch.h"
#include "server.h"

#define FARM_NODES_MAX 8

typedef struct farm_node {
  pid_t pid; /* 0 when it is not running */
  bool stopped;
  int port;
  char address[32]; /* "127.0.0.1:port", for clients: by the port for TLS where farm_over_tls is */
  int tls_port;     /* 0: it speaks no TLS */
  char tls_address[48];
} farm_node;

typedef struct farm {
  unsigned count;
  scratch_directory scratch;
  const char *const *arguments; /* further ones for redis-server, ended by NULL; may be NULL */
  char reply[SERVER_REPLY_MAX]; /* of farm_command() */
  farm_node nodes[FARM_NODES_MAX];
} farm;

/*
 * NULL; or all clients of a program use TLS, with nothing else changed: tls/over_tls.c, which is
 * linked into tests that run once more over TLS.
 */
typedef struct farm_tls {
  const char *const *(*arguments)(void); /* for redis-server, ended by NULL */
  void (*fill)(redlock_settings *settings);
} farm_tls;
extern const farm_tls *farm_over_tls;

void farm_start(farm *self, unsigned count, const char *const *arguments);
/* The same with a port for TLS besides; |arguments| name the certificates. */
void farm_start_tls(farm *self, unsigned count, const char *const *arguments);
void farm_end(farm *self);

/* Brings all nodes back, empties them and their script caches. */
void farm_reset(farm *self);

/* The port that clients are to use: that of |address|. */
int farm_client_port(const farm *self, unsigned node);

/* Sends SIGSTOP, which is delivered when the function returns; and SIGCONT. */
void farm_stop(farm *self, unsigned node);
void farm_continue(farm *self, unsigned node);

/* Sends SIGKILL; and starts the node again on its port, with the data of its files. */
void farm_kill(farm *self, unsigned node);
void farm_restart(farm *self, unsigned node);
/* The same with this loading time for every key; returns as soon as the node listens. */
void farm_restart_slowly(farm *self, unsigned node, const char *key_microseconds);

/*
 * Sends a command, ended by NULL, on a connection of its own. Returns the reply as text: a status
 * or a bulk string unchanged, "(nil)", an integer in digits, an error with its "-"; NULL when the
 * node cannot be reached or does not answer within 30 seconds.
 */
const char *farm_command(farm *self, unsigned node, ...) __attribute__((sentinel));

/* Sends the command to each node, and fails unless all execute it. */
void farm_command_all(farm *self, ...) __attribute__((sentinel));

/* Calls farm_stop() or another action for the nodes |from| to |until| - 1. */
void farm_each(farm *self, unsigned from, unsigned until, void (*action)(farm *, unsigned));

/* On how many of the nodes that run |key| has the value |value|; with NULL: exists. */
unsigned farm_count(farm *self, const char *key, const char *value);

/*
 * Returns the number of connections that the clients of a test have to a node. Their names do not
 * count: a client whose node ended during the handshake may reconnect without a name (rl_link.c).
 */
unsigned farm_connections(farm *self, unsigned node);

/* How often a node has run |command|, by INFO commandstats; farm_count_calls(..., "set") */
unsigned farm_calls(farm *self, unsigned node, const char *command);

/* Returns the state of a process as proc(5) has it: 'T' is stopped, 'Z' or 'X' has ended. */
char process_state(pid_t pid);

/* Returns a free port of 127.0.0.1. */
int farm_free_port(void);

#endif
