/*
 * A proxy in front of a server, which can be told to use another one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS_MAX 16

/* Of each connection the client's end and the server's; -1: none. */
typedef int pair[2];

static void must(bool ok, const char *what) {
  if (!ok) {
    perror(what);
    abort();
  }
}

static struct sockaddr_in loopback_address(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* -1 when nobody is there. */
static int reach(int port) {
  struct sockaddr_in address = loopback_address(port);
  int on = 1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    (void)close(fd);
    return -1;
  }
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

static void hang_up(pair *ends) {
  for (unsigned side = 0; side < 2; side++) {
    if ((*ends)[side] >= 0) {
      (void)close((*ends)[side]);
      (*ends)[side] = -1;
    }
  }
}

static void greet(pair *pairs, int listener, int port) {
  int on = 1;
  int near = accept(listener, NULL, NULL);
  int away = near >= 0 ? reach(port) : -1;
  (void)setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (unsigned i = 0; i < PAIRS_MAX && away >= 0; i++) {
    if (pairs[i][0] < 0) {
      pairs[i][0] = near;
      pairs[i][1] = away;
      return;
    }
  }
  pair both = {near, away};
  hang_up(&both);
}

/* What has come from one side goes to the other. */
static void pass_on(pair *ends, unsigned from) {
  char bytes[65536];
  ssize_t got = recv((*ends)[from], bytes, sizeof bytes, 0);
  if (got <= 0 || send((*ends)[1 - from], bytes, (size_t)got, MSG_NOSIGNAL) != got) {
    hang_up(ends);
  }
}

static void obey(pair *pairs, volatile proxy_order *order) {
  for (unsigned i = 0; i < PAIRS_MAX && order->said != order->done; i++) {
    if (pairs[i][0] >= 0 && order->keeps) {
      (void)close(pairs[i][1]);
      pairs[i][1] = reach(order->port);
    }
    if (!order->keeps || pairs[i][1] < 0) {
      hang_up(&pairs[i]);
    }
  }
  order->done = order->said;
}

static void serve(int listener, volatile proxy_order *order) {
  pair pairs[PAIRS_MAX];
  memset(pairs, -1, sizeof pairs);
  for (;;) {
    struct pollfd fds[1 + 2 * PAIRS_MAX];
    fds[0] = (struct pollfd){listener, POLLIN, 0};
    for (unsigned i = 0; i < 2 * PAIRS_MAX; i++) {
      fds[1 + i] = (struct pollfd){pairs[i / 2][i % 2], POLLIN, 0};
    }
    (void)poll(fds, 1 + 2 * PAIRS_MAX, 1);
    for (unsigned i = 0; i < 2 * PAIRS_MAX; i++) {
      if (fds[1 + i].revents != 0 && pairs[i / 2][i % 2] == fds[1 + i].fd) {
        pass_on(&pairs[i / 2], i % 2);
      }
    }
    if (fds[0].revents != 0) {
      greet(pairs, listener, order->port);
    }
    if (order->said != order->done) {
      obey(pairs, order);
    }
  }
}

void proxy_start(proxy *self, int port) {
  struct sockaddr_in address = loopback_address(0);
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  void *shared =
      mmap(NULL, sizeof *self->order, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  must(listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0 &&
           listen(listener, PAIRS_MAX) == 0 &&
           getsockname(listener, (struct sockaddr *)&address, &length) == 0,
       "proxy: a port");
  must(shared != MAP_FAILED, "proxy: mmap");
  self->order = shared;
  self->order->port = port;
  (void)snprintf(self->address, sizeof self->address, "127.0.0.1:%d", ntohs(address.sin_port));
  self->pid = fork();
  must(self->pid >= 0, "proxy: fork");
  if (self->pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(listener, self->order);
  }
  (void)close(listener);
}

void proxy_end(proxy *self) {
  (void)kill(self->pid, SIGKILL);
  (void)waitpid(self->pid, NULL, 0);
  (void)munmap((void *)(uintptr_t)self->order, sizeof *self->order);
}

void proxy_switch(proxy *self, int port, bool keeps) {
  self->order->port = port;
  self->order->keeps = keeps;
  __atomic_fetch_add(&self->order->said, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&self->order->done, __ATOMIC_SEQ_CST) != self->order->said) {
    (void)poll(NULL, 0, 1);
  }
}
