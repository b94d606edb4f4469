/*
 * The proxy between workers and servers.
 *
 * SPDX-License-Identifier: MIT
 *
 * A connection that has lost bytes never carries any again, because a stream has no holes. It
 * breaks when the fault ends, or stays half open until one side closes it.
 */
#include "chaos_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chaos_farm.h"

#define PROXY_LINKS_MAX 512
#define PROXY_BYTES 65536
#define PROXY_CHUNKS 64

/* Bytes on their way from one side to the other, in the order in which they came. */
typedef struct proxy_chunk {
  redlock_time due_us;
  size_t length;
} proxy_chunk;

typedef struct proxy_way {
  char bytes[PROXY_BYTES];
  size_t held;
  proxy_chunk chunks[PROXY_CHUNKS];
  unsigned chunk_count;
  bool ended; /* the side that these bytes come from has closed */
} proxy_way;

typedef struct proxy_link {
  int fds[2]; /* the worker's side, the server's side */
  unsigned gate;
  unsigned resets;
  int lost; /* the mode in which bytes were lost, or CHAOS_PASS */
  proxy_way ways[2];
} proxy_link;

typedef struct proxy {
  chaos_shared *shared;
  int listeners[CHAOS_NODES];
  proxy_link *links[PROXY_LINKS_MAX];
  unsigned link_count;
  struct pollfd fds[CHAOS_NODES + 2 * PROXY_LINKS_MAX];
} proxy;

static struct sockaddr_in proxy_address(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int proxy_listen(chaos_gate *gate) {
  for (unsigned tries = 0; tries < 100; tries++) {
    gate->port = chaos_free_port();
    struct sockaddr_in address = proxy_address(gate->port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, 128) == 0) {
      return fd;
    }
    (void)close(fd);
  }
  chaos_fail("the proxy can listen on no port");
}

/* Closes both sides: politely, or with RST. */
static void proxy_close(proxy *self, unsigned index, bool reset) {
  proxy_link *link = self->links[index];
  for (unsigned side = 0; side < 2; side++) {
    if (reset) {
      struct linger at_once = {.l_onoff = 1, .l_linger = 0};
      (void)setsockopt(link->fds[side], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    (void)close(link->fds[side]);
  }
  free(link);
  self->links[index] = self->links[--self->link_count];
}

static void proxy_accept(proxy *self, unsigned gate) {
  int on = 1;
  int fd = accept4(self->listeners[gate], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    return;
  }
  struct sockaddr_in address = proxy_address(self->shared->gates[gate].server_port);
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  proxy_link *link = calloc(1, sizeof *link);
  if (server < 0 || link == NULL || self->link_count == PROXY_LINKS_MAX ||
      connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)close(fd);
    if (server >= 0) {
      (void)close(server);
    }
    free(link);
    return;
  }
  (void)fcntl(server, F_SETFL, O_NONBLOCK);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  link->fds[0] = fd;
  link->fds[1] = server;
  link->gate = gate;
  link->resets = atomic_load(&self->shared->gates[gate].resets);
  self->links[self->link_count++] = link;
}

/* Reads from |side|. Returns false when the connection is broken. */
static bool proxy_read(proxy *self, proxy_link *link, unsigned side) {
  chaos_gate *gate = &self->shared->gates[link->gate];
  proxy_way *way = &link->ways[side];
  int mode = atomic_load(&gate->mode);
  char scratch[PROXY_BYTES];
  bool loses = side == 0 ? mode == CHAOS_DROP_REQUESTS || mode == CHAOS_HALF_OPEN
                         : mode == CHAOS_DROP_REPLIES || mode == CHAOS_HALF_OPEN;
  bool swallow = link->lost != CHAOS_PASS || loses;
  size_t room = PROXY_BYTES - way->held;
  ssize_t got = read(link->fds[side], swallow ? scratch : way->bytes + way->held,
                     swallow ? sizeof scratch : room);
  if (got == 0) {
    way->ended = true;
    return true;
  }
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR;
  }
  if (swallow) {
    link->lost = link->lost != CHAOS_PASS ? link->lost : mode;
    atomic_fetch_add(&gate->swallowed, (uint64_t)got);
    return true;
  }
  redlock_duration delay_us = mode == CHAOS_DELAY ? atomic_load(&gate->delay_us) : 0;
  if (delay_us > 0) {
    atomic_fetch_add(&gate->delayed, (uint64_t)got);
  }
  way->chunks[way->chunk_count++] = (proxy_chunk){redlock_now() + delay_us, (size_t)got};
  way->held += (size_t)got;
  return true;
}

/* Sends the due bytes. Returns false when the connection is broken. */
static bool proxy_write(proxy_link *link, unsigned side, redlock_time now_us) {
  proxy_way *way = &link->ways[side];
  while (way->chunk_count > 0 && way->chunks[0].due_us <= now_us) {
    ssize_t sent = send(link->fds[1 - side], way->bytes, way->chunks[0].length, MSG_NOSIGNAL);
    if (sent < 0) {
      return errno == EAGAIN || errno == EINTR;
    }
    way->held -= (size_t)sent;
    memmove(way->bytes, way->bytes + sent, way->held);
    way->chunks[0].length -= (size_t)sent;
    if (way->chunks[0].length > 0) {
      return true;
    }
    way->chunk_count--;
    memmove(way->chunks, way->chunks + 1, way->chunk_count * sizeof way->chunks[0]);
  }
  return !way->ended || way->held > 0;
}

/* Returns true if the fault in which the link has lost bytes is over, and it is to be broken. */
static bool proxy_to_break(const proxy *self, const proxy_link *link) {
  chaos_gate *gate = &self->shared->gates[link->gate];
  if (link->resets != atomic_load(&gate->resets)) {
    return true;
  }
  return (link->lost == CHAOS_DROP_REQUESTS || link->lost == CHAOS_DROP_REPLIES) &&
         atomic_load(&gate->mode) != link->lost;
}

static void proxy_serve(proxy *self, unsigned index, const struct pollfd *fds) {
  proxy_link *link = self->links[index];
  redlock_time now_us = redlock_now();
  bool alive = true;
  if (proxy_to_break(self, link)) {
    atomic_fetch_add(&self->shared->gates[link->gate].broken, 1);
    proxy_close(self, index, true);
    return;
  }
  for (unsigned side = 0; side < 2 && alive; side++) {
    if ((fds[side].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !link->ways[side].ended) {
      alive = proxy_read(self, link, side);
    }
  }
  for (unsigned side = 0; side < 2 && alive; side++) {
    alive = proxy_write(link, side, now_us);
  }
  if (!alive) {
    proxy_close(self, index, false);
  }
}

/* Returns the longest time until the next bytes are due, or until the modes must be checked. */
static int proxy_patience_ms(const proxy *self) {
  redlock_time now_us = redlock_now();
  redlock_duration patience_us = 20 * REDLOCK_MILLISECONDS;
  for (unsigned i = 0; i < self->link_count; i++) {
    for (unsigned side = 0; side < 2; side++) {
      const proxy_way *way = &self->links[i]->ways[side];
      if (way->chunk_count > 0) {
        redlock_time due_us = way->chunks[0].due_us;
        redlock_duration left_us = due_us <= now_us ? REDLOCK_MILLISECONDS : due_us - now_us;
        patience_us = left_us < patience_us ? left_us : patience_us;
      }
    }
  }
  return (int)((patience_us + 999) / 1000);
}

static void proxy_turn(proxy *self) {
  nfds_t count = CHAOS_NODES;
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    self->fds[i] = (struct pollfd){self->listeners[i], POLLIN, 0};
  }
  for (unsigned i = 0; i < self->link_count; i++) {
    for (unsigned side = 0; side < 2; side++) {
      const proxy_way *way = &self->links[i]->ways[side];
      bool room = way->held < PROXY_BYTES && way->chunk_count < PROXY_CHUNKS && !way->ended;
      self->fds[count++] =
          (struct pollfd){room ? self->links[i]->fds[side] : -1, room ? POLLIN : (short)0, 0};
    }
  }
  (void)poll(self->fds, count, proxy_patience_ms(self));
  /* From the last, because the last link moves to the index of a closed one. */
  for (unsigned i = self->link_count; i-- > 0;) {
    proxy_serve(self, i, &self->fds[CHAOS_NODES + 2 * i]);
  }
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    if (self->fds[i].revents != 0) {
      proxy_accept(self, i);
    }
  }
}

pid_t chaos_proxy_start(chaos_shared *shared) {
  static proxy self;
  pid_t parent = getpid();
  self.shared = shared;
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    self.listeners[i] = shared->gates[i].port == 0 ? -1 : proxy_listen(&shared->gates[i]);
  }
  pid_t pid = fork();
  if (pid < 0) {
    chaos_fail("cannot fork");
  }
  if (pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) {
      proxy_turn(&self);
    }
    _exit(0);
  }
  for (unsigned i = 0; i < CHAOS_NODES; i++) {
    if (self.listeners[i] >= 0) {
      (void)close(self.listeners[i]);
    }
  }
  return pid;
}
