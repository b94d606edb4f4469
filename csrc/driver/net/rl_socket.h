/*
 * The connection to one node: names, addresses, descriptors, time-outs. rl_stream.c has its bytes.
 *
 * SPDX-License-Identifier: MIT
 *
 * Callers may read the fields |error| and |changes|, and |fd| for rl_same_server(). They write
 * none.
 */
#ifndef RL_SOCKET_H
#define RL_SOCKET_H

#include <poll.h>
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
  RL_SOCKET_SHAKING, /* connected, in the transport's handshake */
  RL_SOCKET_OPEN
} rl_socket_phase;

typedef struct rl_socket {
  rl_socket_phase phase;
  int fd;                    /* CONNECTING, SHAKING, OPEN; else -1 */
  rl_stream stream;          /* SHAKING, OPEN */
  unsigned changes;          /* number of changes of the descriptor to wait for */
  const rl_route *route;     /* of this attempt to connect */
  rl_resolver *resolver;     /* look-up in progress; it may outlive an attempt to connect */
  const rl_address *address; /* whose name is looked up */
  redlock_time retry_us; /* RESOLVING without a look-up: time of the next attempt to begin one */
  struct addrinfo *addresses;       /* all addresses of the name */
  struct addrinfo *current;         /* the address that is tried */
  redlock_time address_deadline_us; /* time to try the next address */
  redlock_time shake_deadline_us;   /* end of the time for the handshake */
  bool refused;                     /* a handshake has failed in this attempt to connect */
  int epoll_fd;                     /* epoll set with its registration, or -1 */
  int polled_fd;                    /* descriptor that is registered there, or -1 */
  short polled_events;
  char error[RL_STREAM_ERROR_MAX]; /* why the last attempt to connect failed */
} rl_socket;

void rl_socket_init(rl_socket *socket);

/*
 * Begins to connect to |address| by |route|, trying the addresses of a name one after the other.
 * The phase is CLOSED afterwards if that failed, with socket->error. |address| and |route| must
 * outlive the connection.
 */
void rl_socket_connect(rl_socket *socket, const rl_address *address, const rl_route *route,
                       redlock_time now_us);

static inline bool rl_socket_is_open(const rl_socket *socket) {
  return socket->phase == RL_SOCKET_OPEN;
}
static inline bool rl_socket_is_closed(const rl_socket *socket) {
  return socket->phase == RL_SOCKET_CLOSED;
}

/* Returns true if the socket is open, and the kernel may take bytes. */
static inline bool rl_socket_takes(const rl_socket *socket) {
  return rl_socket_is_open(socket) && !socket->stream.blocked;
}

/*
 * Returns true if the stream has bytes of its own to send: rl_socket_send() of no bytes sends them.
 */
static inline bool rl_socket_has_unsent(const rl_socket *socket) {
  return rl_socket_is_open(socket) && rl_stream_unsent(&socket->stream);
}

/* Returns true if rl_socket_receive() has bytes that poll() does not report. */
static inline bool rl_socket_holds_input(const rl_socket *socket) {
  return rl_socket_is_open(socket) && rl_stream_holds_input(&socket->stream);
}

/* As rl_socket_wait(), of a socket that is not open. */
int rl_socket_wait_to_open(const rl_socket *socket, short *events);

/* Returns the descriptor to poll, with the events to poll for, or -1. */
static inline int rl_socket_wait(const rl_socket *socket, bool has_output, short *events) {
  if (!rl_socket_is_open(socket)) {
    return rl_socket_wait_to_open(socket, events);
  }
  bool writes = socket->stream.blocked && (has_output || rl_stream_unsent(&socket->stream));
  *events = writes ? POLLIN | POLLOUT : POLLIN;
  return socket->fd;
}

/* Returns the descriptor that rl_socket_wait() returns. */
static inline int rl_socket_fd(const rl_socket *socket) {
  short events;
  return rl_socket_is_open(socket) ? socket->fd : rl_socket_wait_to_open(socket, &events);
}

/* OPEN: notes the result of poll(). Returns true if the caller should call rl_socket_receive(). */
bool rl_socket_polled(rl_socket *socket, short revents);

/* RESOLVING, CONNECTING or SHAKING: continues. */
void rl_socket_progress(rl_socket *socket, redlock_time now_us);

/*
 * OPEN: return the number of bytes; 0 if the call would block; -1 if the connection has ended, with
 * socket->error. No SIGPIPE, no EINTR. After a partial send the socket takes no more until poll()
 * reports that it does.
 */
long rl_socket_send(rl_socket *socket, const void *bytes, size_t length);
long rl_socket_receive(rl_socket *socket, void *bytes, size_t length);

/* Back to CLOSED. A look-up goes on; an rl_socket_connect() soon after its end uses it. */
void rl_socket_close(rl_socket *socket);

/* Closes the socket; |reason| becomes socket->error. */
void rl_socket_give_up(rl_socket *socket, const char *reason);

/* Closes the socket and its look-up. |forked|: in a forked child, so nothing may reach the peer. */
void rl_socket_free(rl_socket *socket, bool forked);

/* Updates the registration with the epoll set |epoll_fd| to rl_socket_wait(). */
void rl_socket_register(rl_socket *socket, int epoll_fd, bool has_output);

/* Returns the time when rl_socket_progress() is due at the latest. */
redlock_time rl_socket_deadline_to_open(const rl_socket *socket);
static inline redlock_time rl_socket_deadline(const rl_socket *socket) {
  return rl_socket_is_open(socket) ? REDLOCK_NEVER : rl_socket_deadline_to_open(socket);
}

#endif
