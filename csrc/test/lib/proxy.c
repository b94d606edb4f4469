/*
 * A proxy in front of a server, which can be told to use another one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proxy.h"

#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "relay.h"

#define PAIRS_MAX 16

/* Of each connection the client's end and the server's; -1: none. */
typedef int pair[2];

static void hang_up(pair *ends) {
  for (unsigned side = 0; side < 2; side++) {
    if ((*ends)[side] >= 0) {
      (void)close((*ends)[side]);
      (*ends)[side] = -1;
    }
  }
}

static void greet(pair *pairs, int listener, int port) {
  pair both;
  if (!relay_greet(listener, port, both)) {
    return;
  }
  for (unsigned i = 0; i < PAIRS_MAX; i++) {
    if (pairs[i][0] < 0) {
      pairs[i][0] = both[0];
      pairs[i][1] = both[1];
      return;
    }
  }
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
      pairs[i][1] = relay_reach(order->port);
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
  int listener = relay_listen(self->address);
  self->order = relay_share(sizeof *self->order);
  self->order->port = port;
  self->pid = relay_fork();
  if (self->pid == 0) {
    serve(listener, self->order);
  }
  (void)close(listener);
}

void proxy_end(proxy *self) {
  relay_end(self->pid);
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
