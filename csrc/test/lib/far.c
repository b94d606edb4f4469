/*
 * Distance: a relay in front of a server, over which every byte takes its time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "far.h"

#include <linux/filter.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "relay.h"

#define PAIRS_MAX 64
#define PACKETS_MAX 256
#define PACKET_MAX 4096

typedef struct packet {
  int to;
  bool end; /* of the stream, instead of bytes */
  redlock_time due_us;
  size_t length;
  char bytes[PACKET_MAX];
} packet;

typedef struct relay {
  int listener;
  int port;
  redlock_duration delay_us;
  int ends[PAIRS_MAX][2]; /* -1: none */
  volatile unsigned *silenced;
  packet packets[PACKETS_MAX]; /* a ring, in the order in which they are due */
  unsigned first;
  unsigned count;
} relay;

static void greet(relay *self) {
  int ends[2];
  if (!relay_greet(self->listener, self->port, ends)) {
    return;
  }
  for (unsigned i = 0; i < PAIRS_MAX; i++) {
    if (self->ends[i][0] < 0 && self->ends[i][1] < 0) {
      self->ends[i][0] = ends[0];
      self->ends[i][1] = ends[1];
      return;
    }
  }
  (void)close(ends[0]);
  (void)close(ends[1]);
}

static void take(relay *self, int *end, int to) {
  relay_must(self->count < PACKETS_MAX, "far: too much is on its way");
  packet *last = &self->packets[(self->first + self->count++) % PACKETS_MAX];
  ssize_t got = recv(*end, last->bytes, sizeof last->bytes, 0);
  last->to = to;
  last->end = got <= 0;
  last->length = got > 0 ? (size_t)got : 0;
  last->due_us = redlock_now() + self->delay_us;
  if (got <= 0) {
    (void)shutdown(*end, SHUT_RD);
    *end = -1; /* It is left open for what is still to come the other way. */
  }
}

static int deliver(relay *self) {
  while (self->count > 0) {
    packet *oldest = &self->packets[self->first];
    redlock_time now_us = redlock_now();
    if (oldest->due_us > now_us) {
      return (int)((oldest->due_us - now_us) / REDLOCK_MILLISECONDS) + 1;
    }
    if (oldest->end) {
      (void)shutdown(oldest->to, SHUT_WR);
    } else {
      (void)send(oldest->to, oldest->bytes, oldest->length, MSG_NOSIGNAL);
    }
    self->first = (self->first + 1) % PACKETS_MAX;
    self->count--;
  }
  return -1;
}

static volatile sig_atomic_t silence_wanted;

static void on_signal(int signal) {
  (void)signal;
  silence_wanted = 1;
}

/* The kernel drops what comes for the near ends before it looks at it. */
static void silence(relay *self) {
  struct sock_filter drop = {BPF_RET | BPF_K, 0, 0, 0};
  struct sock_fprog program = {1, &drop};
  for (unsigned i = 0; i < PAIRS_MAX; i++) {
    int near = self->ends[i][0];
    if (near >= 0) {
      relay_must(setsockopt(near, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0,
                 "SO_ATTACH_FILTER");
      self->ends[i][0] = -1;
      self->ends[i][1] = -1;
    }
  }
  self->count = 0;
  silence_wanted = 0;
  (*self->silenced)++;
}

static void run(relay *self) {
  for (;;) {
    if (silence_wanted) {
      silence(self);
    }
    struct pollfd fds[1 + 2 * PAIRS_MAX];
    int peers[PAIRS_MAX][2];
    fds[0] = (struct pollfd){self->listener, POLLIN, 0};
    memcpy(peers, self->ends, sizeof peers);
    for (unsigned i = 0; i < 2 * PAIRS_MAX; i++) {
      fds[1 + i] = (struct pollfd){self->ends[i / 2][i % 2], POLLIN, 0};
    }
    if (poll(fds, 1 + 2 * PAIRS_MAX, deliver(self)) <= 0) {
      continue;
    }
    for (unsigned i = 0; i < 2 * PAIRS_MAX; i++) {
      if (fds[1 + i].revents != 0 && peers[i / 2][1 - i % 2] >= 0) {
        take(self, &self->ends[i / 2][i % 2], peers[i / 2][1 - i % 2]);
      } else if (fds[1 + i].revents != 0) {
        self->ends[i / 2][i % 2] = -1;
      }
    }
    if (fds[0].revents != 0) {
      greet(self);
    }
  }
}

void far_start(far_relay *started, int port, redlock_duration delay_us) {
  relay *self = calloc(1, sizeof *self);
  relay_must(self != NULL, "calloc");
  memset(self->ends, -1, sizeof self->ends);
  self->port = port;
  self->delay_us = delay_us;
  self->listener = relay_listen(started->address);
  started->silenced = relay_share(sizeof *started->silenced);
  self->silenced = started->silenced;
  started->pid = relay_fork();
  if (started->pid == 0) {
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGUSR1, &action, NULL);
    run(self);
  }
  (void)close(self->listener);
  free(self);
}

void far_end(far_relay *started) {
  relay_end(started->pid);
  (void)munmap((void *)started->silenced, sizeof *started->silenced);
}

void far_silence(far_relay *started) {
  unsigned before = *started->silenced;
  while (*started->silenced == before) {
    (void)kill(started->pid, SIGUSR1);
    (void)poll(NULL, 0, 1);
  }
}
