/*
 * A relay in front of a server, in a process of its own: it delays bytes, loses notifications
 * (bench/lossy.c), goes silent, or leads to another server.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <sys/types.h>

#include "redlock.h"

/* Shared with the process. */
typedef struct relay_order {
  int port;       /* of the server */
  int how;        /* a relay_switch */
  unsigned given; /* orders */
  unsigned done;  /* orders */
  unsigned loss;  /* every so many messages to subscribers one is lost; 0: none */
  unsigned lost;  /* messages */
} relay_order;

typedef struct relay {
  pid_t pid;
  char address[32]; /* "127.0.0.1:port" */
  volatile relay_order *order;
} relay;

/* An order for the present connections. */
typedef enum relay_switch {
  RELAY_SILENCE, /* bytes on them are neither acknowledged nor refused, as when a NAT forgets them */
  RELAY_CLOSE,   /* they are closed, as when an address moves */
  RELAY_KEEP /* they stay, as behind a proxy that knows the protocol; nothing may be in flight */
} relay_switch;

/*
 * Relays to 127.0.0.1:|port|. The process ends with this one. Each direction takes |delay_us|;
 * connecting takes none.
 */
void relay_start(relay *self, int port, redlock_duration delay_us);
void relay_end(relay *self);

/* Does that to the connections, and connects new ones to |port|. Returns when it is done. */
void relay_turn_to(relay *self, int port, relay_switch how);

#endif
