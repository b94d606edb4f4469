/*
 * The connection to one node: names, addresses, descriptors, time-outs. Its bytes are rl_stream.c's.
 *
 * SPDX-License-Identifier: MIT
 *
 * Callers read |error| and |changes|, and |fd| to ask whose server it is; they ask for the rest, and write nothing.
 */
#ifndef RL_SOCKET_H
#define RL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "net/rl_resolver.h"
#include "net/rl_stream.h"
#include "options/rl_address.h"
#include "redlock.h"

struct addrinfo;

typedef enum rl_socket_phase {
  RL_SOCKET_CLOSED = 0,
  RL_SOCKET_RESOLVING,
  RL_SOCKET_CONNECTING,
  RL_SOCKET_SHAKING, /* connected; the transport shakes hands */
  RL_SOCKET_OPEN
} rl_socket_phase;

typedef struct rl_socket {
  rl_socket_phase phase;
  int fd;                           /* CONNECTING, SHAKING, OPEN; else -1 */
  rl_stream stream;                 /* SHAKING, OPEN */
  const rl_route *route;            /* of the attempt to connect */
  rl_resolver *resolver;            /* a look-up in flight; it may outlive an attempt to connect */
  const rl_address *address;        /* whose name is looked up */
  redlock_time turn_us;             /* RESOLVING without a look-up: when to ask for one again */
  struct addrinfo *addresses;       /* all of the name's */
  struct addrinfo *current;         /* the one being tried */
  redlock_time address_deadline_us; /* when to go on to the next address */
  redlock_time shake_deadline_us;   /* when hands must have been shaken */
  bool refused;                     /* a handshake has failed in this attempt to connect */
  unsigned changes;                 /* how often it has had another descriptor to wait for */
  int epoll_fd;                     /* the set it is registered with, -1 for none */
  int polled_fd;                    /* what is registered there, -1 for nothing */
  short polled_events;
  char error[RL_STREAM_ERROR_MAX]; /* why the last attempt to connect failed */
} rl_socket;

void rl_socket_init(rl_socket *socket);

/*
 * Begins to connect to |address| by |route|, trying all addresses of a name one after the other. Afterwards the
 * phase tells: CLOSED means that it failed, for socket->error. |address| and |route| must outlive the
 * connection.
 */
void rl_socket_connect(rl_socket *socket, const rl_address *address, const rl_route *route,
                       redlock_time now_us);

/* The descriptor to wait for and the events to wait for on it, or -1. */
int rl_socket_wait(const rl_socket *socket, bool has_output, short *events);

/* Returns true if bytes go through it; whether there is nothing, not even on its way. */
bool rl_socket_is_open(const rl_socket *socket);
bool rl_socket_is_closed(const rl_socket *socket);

/* Returns true if it is open, and the kernel may take bytes. */
bool rl_socket_takes(const rl_socket *socket);

/* Returns true if it has bytes to send besides those of the caller: rl_socket_send() of no bytes sends them. */
bool rl_socket_has_unsent(const rl_socket *socket);

/* Returns true if it has bytes for rl_socket_receive() of which poll() does not tell. */
bool rl_socket_holds_input(const rl_socket *socket);

/* OPEN: notes what poll() has told of it. Returns whether to call rl_socket_receive(). */
bool rl_socket_polled(rl_socket *socket, short revents);

/* RESOLVING, CONNECTING or SHAKING: looks how far it has come. */
void rl_socket_progress(rl_socket *socket, redlock_time now_us);

/*
 * OPEN: how many bytes were taken or had; 0 when the call would have blocked; -1 when the connection
 * has ended, for socket->error. No SIGPIPE, no EINTR. After a send that did not take all it takes no more
 * until poll() has told that it does.
 */
long rl_socket_send(rl_socket *socket, const void *bytes, size_t length);
long rl_socket_receive(rl_socket *socket, void *bytes, size_t length);

/* Back to CLOSED. A look-up goes on and is used by the next rl_socket_connect(). */
void rl_socket_close(rl_socket *socket);

/* Closes it for a reason of the caller's, which is socket->error from now on. */
void rl_socket_give_up(rl_socket *socket, const char *reason);

/* Closed, with nothing left, as rl_socket_init() makes it. |forked|: this is a child, and nothing must reach the peer. */
void rl_socket_free(rl_socket *socket, bool forked);

/* Brings the registration with the epoll set |epoll_fd| in line with rl_socket_wait(). */
void rl_socket_register(rl_socket *socket, int epoll_fd, bool has_output);

/* When to call rl_socket_progress() at the latest. */
redlock_time rl_socket_deadline(const rl_socket *socket);

#endif
