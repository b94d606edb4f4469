/*
 * A proxy in front of a server, which can be told to use another one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROXY_H
#define PROXY_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct proxy_order {
  int port;      /* of the server */
  bool keeps;    /* connections of clients are kept when it changes */
  unsigned said; /* orders, and how many of them have been carried out */
  unsigned done;
} proxy_order;

typedef struct proxy {
  pid_t pid;
  char address[32];            /* "127.0.0.1:port" */
  volatile proxy_order *order; /* shared with the process */
} proxy;

/* Passes everything on to 127.0.0.1:|port| in a process of its own, which dies with this one. */
void proxy_start(proxy *self, int port);
void proxy_end(proxy *self);

/*
 * From now on to |port|. Clients keep their connections, if |keeps|, as behind a proxy that knows the protocol; else they
 * are closed, as when an address moves. Nothing may be on its way. Done when the call returns.
 */
void proxy_switch(proxy *self, int port, bool keeps);

#endif
