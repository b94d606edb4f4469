/*
 * A redis-server as a child process: its start, and commands to it. Its port is one of
 * port_reserve().
 *
 * SPDX-License-Identifier: MIT
 *
 * Errors are returned, so that tests and the supervisor of a chaos run can each report them in
 * their way.
 */
#ifndef SERVER_H
#define SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SERVER_REPLY_MAX 65536

typedef struct server_start {
  int port;
  const char *directory; /* directory of its files, which are named after |name| */
  const char *name;
  const char *const *arguments;   /* further ones, ended by NULL; may be NULL */
  const char *const *environment; /* "NAME=value", likewise */
} server_start;

/*
 * Starts a server that dies with this process: the program REDLOCK_TEST_SERVER, or redis-server.
 * Does not wait for it. Returns -1 when it cannot.
 */
pid_t server_launch(const server_start *start);

/* SIGKILL; returns when the process is gone. 0 is no process. */
void server_kill(pid_t pid);

/* Returns true if a process listens on the port. */
bool server_listens(int port);

/*
 * Sends a command, whose words are ended by NULL, on a connection of its own. Returns the reply as
 * text in |reply|: a status or a string unchanged, "(nil)", an integer in digits, an error with its
 * "-"; NULL on a time-out of |timeout_ms|, or when the reply is too long.
 */
const char *server_ask(int port, int timeout_ms, char reply[SERVER_REPLY_MAX],
                       const char *const *words);

/* Returns true if the server that answers is the process |pid|, and has read its files. */
bool server_ready(int port, pid_t pid, int timeout_ms, char reply[SERVER_REPLY_MAX]);

#endif
