/*
 * A Sentinel that watches one master, as a child process.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SENTINEL_H
#define SENTINEL_H

#include <sys/types.h>

#define SENTINEL_MASTER "mymaster"

typedef struct sentinel {
  pid_t pid;
  int port;
  char address[32]; /* "127.0.0.1:port" */
} sentinel;

/*
 * Starts a Sentinel that calls the server on 127.0.0.1:|master_port| "mymaster", and that fails
 * over by itself half a second after the master's last reply. Its files are in |directory|.
 * |settings| are further lines of its configuration, or NULL. Fails the running test on an error.
 */
void sentinel_start(sentinel *self, const char *directory, int master_port, const char *settings);
void sentinel_end(sentinel *self);

/* Returns the port of the present master; 0 if the Sentinel does not answer. */
int sentinel_master(const sentinel *self);

/* Returns the number of replicas that the Sentinel knows. */
int sentinel_replicas(const sentinel *self);

#endif
