/*
 * Loss: a relay in front of a server, which loses some of the messages that the server publishes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOSSY_H
#define LOSSY_H

#include <sys/types.h>

typedef struct lossy_relay {
  pid_t pid;
  char address[32];        /* "127.0.0.1:port" */
  volatile unsigned *lost; /* how many messages */
} lossy_relay;

/*
 * Relays to 127.0.0.1:|port| in a process of its own, which dies with this one. Of the messages of all subscribers every
 * |nth| is lost; none if it is 0. All else arrives.
 */
void lossy_start(lossy_relay *relay, int port, unsigned nth);
void lossy_end(lossy_relay *relay);

#endif
