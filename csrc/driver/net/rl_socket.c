/*
 * The connection to one node: names, addresses, descriptors, time-outs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net/rl_socket.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/epoll.h>
#endif

#include "base/rl_time.h"
#include "node/rl_node.h"
#include "os/rl_descriptor.h"

#define RL_SOCKET_ADDRESS_MIN_US (250 * REDLOCK_MILLISECONDS)

/* Time between attempts to begin a look-up while too many are in progress. */
#define RL_SOCKET_RETRY_US (10 * REDLOCK_MILLISECONDS)

/* Time-outs of a dead path: as long as a node may be silent (rl_link.h). */
#define RL_SOCKET_UNACKNOWLEDGED_MS 3000
#define RL_SOCKET_KEEPALIVE_IDLE_S 10
#define RL_SOCKET_KEEPALIVE_INTERVAL_S 1
#define RL_SOCKET_KEEPALIVE_COUNT 3

void rl_socket_init(rl_socket *socket) {
  memset(socket, 0, sizeof *socket);
  socket->fd = -1;
  socket->epoll_fd = -1;
  socket->polled_fd = -1;
}

#if defined(__linux__)
/*
 * Removes a descriptor before it is closed: the epoll set keeps it while a forked child or the
 * thread of a resolver has it open, too.
 */
static void rl_socket_unregister(rl_socket *socket) {
  if (socket->polled_fd >= 0) {
    (void)epoll_ctl(socket->epoll_fd, EPOLL_CTL_DEL, socket->polled_fd, NULL);
  }
  socket->polled_fd = -1;
}

void rl_socket_register(rl_socket *socket, int epoll_fd, bool has_output) {
  short events;
  struct epoll_event event;
  int fd = rl_socket_wait(socket, has_output, &events);
  if (socket->polled_fd == fd && (fd < 0 || socket->polled_events == events)) {
    return;
  }
  if (socket->polled_fd != fd) {
    rl_socket_unregister(socket);
  }
  memset(&event, 0, sizeof event);
  event.events = (events & POLLIN ? EPOLLIN : 0u) | (events & POLLOUT ? EPOLLOUT : 0u);
  event.data.fd = fd;
  int operation = socket->polled_fd == fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (fd >= 0 && epoll_ctl(epoll_fd, operation, fd, &event) == 0) {
    socket->epoll_fd = epoll_fd;
    socket->polled_fd = fd;
    socket->polled_events = events;
  }
}
#else
static void rl_socket_unregister(rl_socket *socket) {
  (void)socket;
}

void rl_socket_register(rl_socket *socket, int epoll_fd, bool has_output) {
  (void)socket;
  (void)epoll_fd;
  (void)has_output;
}
#endif

static void rl_socket_drop_addresses(rl_socket *socket) {
  if (socket->addresses != NULL) {
    freeaddrinfo(socket->addresses);
  }
  socket->addresses = socket->current = NULL;
}

static void rl_socket_close_fd(rl_socket *socket) {
  if (socket->fd >= 0) {
    rl_stream_close(&socket->stream, socket->fd, false);
    rl_socket_unregister(socket);
    (void)close(socket->fd);
    socket->changes++;
  }
  socket->fd = -1;
}

static void rl_socket_set(int fd, int level, int option, int value) {
  (void)setsockopt(fd, level, option, &value, sizeof value); /* Only speed depends on it. */
}

/*
 * A dead path (a NAT that has forgotten the connection, a host without power) acknowledges nothing.
 * The kernel of a hanging node does. Our kernel gives a connection up when bytes have been
 * unacknowledged for 3 s, and probes a path that has been idle for 10 s.
 */
static void rl_socket_tune(int fd, int family) {
  if (family == AF_UNIX) {
    return;
  }
  rl_socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  rl_socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
  rl_socket_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, RL_SOCKET_KEEPALIVE_IDLE_S);
#endif
#ifdef TCP_KEEPINTVL
  rl_socket_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, RL_SOCKET_KEEPALIVE_INTERVAL_S);
#endif
#ifdef TCP_KEEPCNT
  rl_socket_set(fd, IPPROTO_TCP, TCP_KEEPCNT, RL_SOCKET_KEEPALIVE_COUNT);
#endif
#ifdef TCP_USER_TIMEOUT
  rl_socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, RL_SOCKET_UNACKNOWLEDGED_MS);
#endif
}

/* Returns 0 when connected or under way, else an errno. */
static int rl_socket_begin(rl_socket *socket_, int family, const struct sockaddr *address,
                           socklen_t length) {
  rl_socket_close_fd(socket_);
  socket_->fd = rl_descriptor_socket(family);
  if (socket_->fd < 0) {
    return errno;
  }
  socket_->changes++;
  rl_socket_tune(socket_->fd, family);
  int error = connect(socket_->fd, address, length) == 0 ? 0 : errno;
  /*
   * An interrupted connect() goes on, too. With a transport, poll() continues with the handshake.
   */
  if (error != 0 && error != EINPROGRESS && error != EINTR) {
    return error;
  }
  socket_->phase =
      error == 0 && socket_->route->node == NULL ? RL_SOCKET_OPEN : RL_SOCKET_CONNECTING;
  return 0;
}

/*
 * Keeps the reason of a failed handshake: it explains more than an error of the name's other
 * addresses.
 */
static void rl_socket_explain(rl_socket *socket, int error) {
  if (!socket->refused) {
    rl_stream_explain(socket->error, error);
  }
}

/* Tries the current address and the following ones. */
static void rl_socket_try(rl_socket *socket, redlock_time now_us) {
  unsigned left = 0;
  for (const struct addrinfo *address = socket->current; address != NULL;
       address = address->ai_next) {
    left++;
  }
  while (socket->current != NULL) {
    const struct addrinfo *address = socket->current;
    assert(left > 0);
    int error = rl_socket_begin(socket, address->ai_family, address->ai_addr, address->ai_addrlen);
    if (error == 0) {
      redlock_duration share_us = RL_LINK_CONNECT_TIMEOUT_US / left;
      socket->address_deadline_us =
          address->ai_next == NULL
              ? REDLOCK_NEVER
              : rl_time_add(now_us, rl_time_max(share_us, RL_SOCKET_ADDRESS_MIN_US));
      return;
    }
    rl_socket_explain(socket, error);
    socket->current = address->ai_next;
    left--;
  }
  rl_socket_close(socket);
}

static void rl_socket_connect_path(rl_socket *socket, const rl_address *address) {
  struct sockaddr_un local;
  memset(&local, 0, sizeof local);
  local.sun_family = AF_UNIX;
  (void)snprintf(local.sun_path, sizeof local.sun_path, "%s", address->path);
  int error = rl_socket_begin(socket, AF_UNIX, (struct sockaddr *)&local, sizeof local);
  if (error != 0) {
    rl_socket_explain(socket, error);
    rl_socket_close(socket);
  }
}

static void rl_socket_drop_resolver(rl_socket *socket) {
  rl_socket_unregister(socket);
  rl_resolver_free(socket->resolver);
  socket->resolver = NULL;
  socket->changes++;
}

static void rl_socket_resolved(rl_socket *socket, redlock_time now_us) {
  const char *error = NULL;
  if (!rl_resolver_take(socket->resolver, &socket->addresses, &error)) {
    return;
  }
  if (socket->addresses == NULL) {
    (void)snprintf(socket->error, sizeof socket->error, "%s", error);
  }
  rl_socket_drop_resolver(socket);
  socket->current = socket->addresses;
  if (socket->addresses == NULL) {
    rl_socket_close(socket);
    return;
  }
  rl_socket_try(socket, now_us);
}

/* Begins a look-up, continues one, or waits until one may begin. */
static void rl_socket_resolve(rl_socket *socket, redlock_time now_us) {
  bool busy = false;
  if (socket->resolver == NULL) {
    socket->resolver = rl_resolver_new(socket->address, &busy);
    socket->changes++;
  }
  if (busy) {
    socket->phase = RL_SOCKET_RESOLVING;
    socket->retry_us = rl_time_add(now_us, RL_SOCKET_RETRY_US);
    return;
  }
  if (socket->resolver == NULL) {
    (void)snprintf(socket->error, sizeof socket->error,
                   "cannot resolve the name: no thread, descriptor or memory");
    rl_socket_close(socket);
    return;
  }
  socket->phase = RL_SOCKET_RESOLVING;
  rl_socket_resolved(socket, now_us);
}

void rl_socket_connect(rl_socket *socket, const rl_address *address, const rl_route *route,
                       redlock_time now_us) {
  rl_socket_drop_addresses(socket);
  socket->route = route;
  socket->refused = false;
  socket->address_deadline_us = REDLOCK_NEVER;
  socket->shake_deadline_us = rl_time_add(now_us, RL_LINK_CONNECT_TIMEOUT_US);
  if (address->path[0] != '\0') {
    rl_socket_connect_path(socket, address);
    return;
  }
  if (address->sentinels.count == 0) {
    socket->addresses = rl_resolver_numeric(address->host, address->port);
  }
  if (socket->addresses != NULL) {
    socket->current = socket->addresses;
    rl_socket_try(socket, now_us);
    return;
  }
  socket->address = address;
  if (socket->resolver != NULL && rl_resolver_is_stale(socket->resolver, now_us)) {
    rl_socket_drop_resolver(socket);
  }
  rl_socket_resolve(socket, now_us);
}

/* Returns true if the kernel still connects; else |*error| is 0, or an errno if it failed. */
static bool rl_socket_is_connecting(const rl_socket *socket, redlock_time now_us, int *error) {
  struct pollfd writable = {socket->fd, POLLOUT, 0};
  socklen_t length = sizeof *error;
  *error = 0;
  if (poll(&writable, 1, 0) <= 0) {
    *error = ETIMEDOUT;
    return now_us < socket->address_deadline_us;
  }
  if (getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, error, &length) != 0) {
    *error = errno;
  }
  return false;
}

/* The connection is made: opens it or begins the handshake. Returns false if it cannot be used. */
static bool rl_socket_connected(rl_socket *socket, int error) {
  if (error != 0) {
    rl_socket_explain(socket, error);
    return false;
  }
  if (!rl_stream_open(&socket->stream, socket->route, socket->error)) {
    return false;
  }
  socket->phase = rl_stream_shakes(&socket->stream) ? RL_SOCKET_SHAKING : RL_SOCKET_OPEN;
  return true;
}

/* Continues the handshake. Returns false if it has failed. */
static bool rl_socket_shake(rl_socket *socket, redlock_time now_us) {
  socket->stream.blocked = false; /* poll() has reported it. */
  int ended = rl_stream_shake(&socket->stream, socket->fd, socket->error);
  if (ended == 0 && now_us >= rl_socket_deadline(socket)) {
    (void)snprintf(socket->error, sizeof socket->error,
                   "the TLS handshake took too long; is this a TLS port?");
    ended = -1;
  }
  if (ended > 0) {
    socket->phase = RL_SOCKET_OPEN;
  }
  socket->refused = socket->refused || ended < 0;
  return ended >= 0;
}

void rl_socket_progress(rl_socket *socket, redlock_time now_us) {
  int error;
  bool well = true;
  if (socket->phase == RL_SOCKET_RESOLVING) {
    rl_socket_resolve(socket, now_us);
    return;
  }
  if (socket->phase == RL_SOCKET_CONNECTING) {
    if (rl_socket_is_connecting(socket, now_us, &error)) {
      return;
    }
    well = rl_socket_connected(socket, error);
  }
  if (well && socket->phase == RL_SOCKET_SHAKING) {
    well = rl_socket_shake(socket, now_us);
  }
  if (well && socket->phase == RL_SOCKET_OPEN) {
    rl_socket_drop_addresses(socket);
  }
  if (well) {
    return;
  }
  if (socket->current == NULL) { /* A Unix socket has only one address. */
    rl_socket_close(socket);
    return;
  }
  socket->current = socket->current->ai_next;
  rl_socket_try(socket, now_us);
}

int rl_socket_wait_to_open(const rl_socket *socket, short *events) {
  *events = socket->phase == RL_SOCKET_CLOSED       ? 0
            : socket->phase == RL_SOCKET_CONNECTING ? POLLOUT
                                                    : POLLIN;
  if (socket->phase == RL_SOCKET_RESOLVING) {
    return socket->resolver == NULL ? -1 : rl_resolver_fd(socket->resolver);
  }
  if (socket->phase == RL_SOCKET_SHAKING && socket->stream.blocked &&
      rl_stream_unsent(&socket->stream)) {
    *events = POLLIN | POLLOUT;
  }
  return socket->fd;
}

bool rl_socket_polled(rl_socket *socket, short revents) {
  socket->stream.blocked = socket->stream.blocked && (revents & POLLOUT) == 0;
  return (revents & ~POLLOUT) != 0 || rl_socket_holds_input(socket);
}

long rl_socket_send(rl_socket *socket, const void *bytes, size_t length) {
  return rl_stream_send(&socket->stream, socket->fd, bytes, length, socket->error);
}

long rl_socket_receive(rl_socket *socket, void *bytes, size_t length) {
  return rl_stream_receive(&socket->stream, socket->fd, bytes, length, socket->error);
}

void rl_socket_close(rl_socket *socket) {
  rl_socket_close_fd(socket);
  rl_socket_drop_addresses(socket);
  socket->phase = RL_SOCKET_CLOSED;
}

void rl_socket_give_up(rl_socket *socket, const char *reason) {
  rl_socket_close(socket);
  (void)snprintf(socket->error, sizeof socket->error, "%s", reason);
}

void rl_socket_free(rl_socket *socket, bool forked) {
  if (forked) {
    socket->polled_fd = -1; /* Leave the epoll set alone: it is the parent's, too. */
    rl_stream_close(&socket->stream, socket->fd, true);
  }
  rl_socket_unregister(socket);
  if (socket->resolver != NULL) {
    if (forked) {
      rl_resolver_forget(socket->resolver);
    } else {
      rl_resolver_free(socket->resolver);
    }
    socket->resolver = NULL;
  }
  rl_socket_close(socket);
  unsigned changes = socket->changes + 1;
  rl_socket_init(socket);
  socket->changes = changes;
}

redlock_time rl_socket_deadline_to_open(const rl_socket *socket) {
  if (socket->phase == RL_SOCKET_RESOLVING && socket->resolver == NULL) {
    return socket->retry_us;
  }
  if (socket->phase == RL_SOCKET_SHAKING) {
    return rl_time_min(socket->address_deadline_us, socket->shake_deadline_us);
  }
  return socket->phase == RL_SOCKET_CONNECTING ? socket->address_deadline_us : REDLOCK_NEVER;
}
