/*
 * What the relays in front of servers (far, lossy, proxy) have in common: a port, and both ends of each connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Ends the program, and says why, if not |ok|. */
void relay_must(bool ok, const char *what);

/* Memory that a child shares with this process, all zero. */
void *relay_share(size_t size);

/* Listens on a free port of 127.0.0.1; writes "127.0.0.1:port" to |address|. */
int relay_listen(char address[32]);

/* A connection to 127.0.0.1:|port|, or -1 when nobody is there. */
int relay_reach(int port);

/* Accepts a client, |ends|[0], and connects |ends|[1] to |port|. False when one of them is not there: then neither is. */
bool relay_greet(int listener, int port, int ends[2]);

/* Forks a child, which dies with this process. Returns its id; 0 in the child. */
pid_t relay_fork(void);

/* Kills the child, and waits for it. */
void relay_end(pid_t pid);

#endif
