/*
 * A server that answers as no Redis server should.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FAKE_SERVER_H
#define FAKE_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

/* A reply that is NULL is the one that Redis would send; "" is none at all. */
typedef struct fake_behaviour {
  const char *greeting; /* sent as soon as a client connects; NULL = nothing */
  const char *setname;  /* the reply to CLIENT SETNAME */
  bool closes_at_name;  /* closes the connection instead */
  bool closes_at_info;  /* closes the connection at CLIENT SETINFO */
  const char *set;      /* to SET */
  const char *script;   /* to EVALSHA and EVAL */
  const char *flood;    /* sent again and again after the first reply to SET */
  bool flood_handshake; /* after that to CLIENT SETNAME instead */
  long close_after;     /* closes the connection when so many bytes have been sent; 0 = never */
  bool one_by_one;      /* every byte on its own */
} fake_behaviour;

typedef struct fake_server {
  pid_t pid;
  int port;
  char address[32];
  volatile unsigned *accepted; /* connections so far */
} fake_server;

/* Serves in a process of its own, which dies with this one. */
void fake_start(fake_server *server, const fake_behaviour *behaviour);
void fake_end(fake_server *server);

#endif
