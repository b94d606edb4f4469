/*
 * A relay in front of a server.
 *
 * SPDX-License-Identifier: MIT
 */
#include "relay.h"

#include <arpa/inet.h>
#include <linux/filter.h>
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

#define BACKLOG 256
#define LINKS_MAX 256
#define REPLIES_MAX 65536
#define PACKETS_MAX 256
#define PACKET_MAX 4096
#define MESSAGE "*3\r\n$7\r\nmessage\r\n"

enum { CLIENT, SERVER };

/* A connection of a client, and one to the server. */
typedef struct relay_link {
  int ends[2];      /* -1: none */
  bool ended[2];    /* no more bytes come from this end */
  unsigned packets; /* in flight */
  size_t length;    /* of |replies| */
  char *replies;    /* incomplete replies of the server, if notifications are lost */
} relay_link;

typedef struct relay_packet {
  relay_link *link;
  int to;
  redlock_time due_us;
  size_t length; /* 0: the end of the stream */
  char bytes[PACKET_MAX];
} relay_packet;

typedef struct relay_process {
  int listener;
  redlock_duration delay_us;
  unsigned messages;
  volatile relay_order *order;
  relay_link links[LINKS_MAX];
  relay_packet packets[PACKETS_MAX]; /* a ring, in the order in which they are due */
  unsigned first, count;
} relay_process;

static void must(bool ok, const char *what) {
  if (!ok) {
    perror(what);
    abort();
  }
}

static struct sockaddr_in address_of(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int undelayed(int fd) {
  int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

/* Returns a connection to the server, or -1. */
static int connect_to(int port) {
  struct sockaddr_in address = address_of(port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    (void)close(fd);
    return -1;
  }
  return undelayed(fd);
}

static void close_link(relay_link *link) {
  (void)close(link->ends[CLIENT]);
  (void)close(link->ends[SERVER]);
  link->ends[CLIENT] = link->ends[SERVER] = -1;
}

static void accept_client(relay_process *self) {
  int client = undelayed(accept(self->listener, NULL, NULL));
  int server = client >= 0 ? connect_to(self->order->port) : -1;
  for (unsigned i = 0; i < LINKS_MAX && server >= 0; i++) {
    relay_link *link = &self->links[i];
    if (link->ends[CLIENT] < 0 && link->packets == 0) {
      char *replies = link->replies;
      *link = (relay_link){.ends = {client, server}, .replies = replies};
      return;
    }
  }
  (void)close(client);
  (void)close(server);
}

/* ---------------------------------------------------------------------------------- bytes */

static void deliver(relay_link *link, int to, const char *bytes, size_t length) {
  if (length == 0) {
    (void)shutdown(link->ends[to], SHUT_WR);
  } else if (send(link->ends[to], bytes, length, MSG_NOSIGNAL) != (ssize_t)length) {
    (void)shutdown(link->ends[CLIENT], SHUT_RDWR); /* The peer has gone: so both streams end. */
    (void)shutdown(link->ends[SERVER], SHUT_RDWR);
  }
  if (link->ended[CLIENT] && link->ended[SERVER] && link->packets == 0) {
    close_link(link);
  }
}

/* Sends the bytes, or the end of the stream, now or after the delay. */
static void pass(relay_process *self, relay_link *link, int to, const char *bytes, size_t length) {
  if (self->delay_us == 0) {
    deliver(link, to, bytes, length);
    return;
  }
  do {
    must(self->count < PACKETS_MAX, "relay: too much is in flight");
    relay_packet *last = &self->packets[(self->first + self->count++) % PACKETS_MAX];
    last->link = link;
    last->to = to;
    last->due_us = redlock_now() + self->delay_us;
    last->length = length < PACKET_MAX ? length : PACKET_MAX;
    memcpy(last->bytes, bytes, last->length);
    bytes += last->length;
    length -= last->length;
    link->packets++;
  } while (length > 0);
}

/* Delivers due packets. Returns the milliseconds until the next one, or -1. */
static int deliver_due(relay_process *self) {
  while (self->count > 0) {
    relay_packet *oldest = &self->packets[self->first];
    redlock_time now_us = redlock_now();
    if (oldest->due_us > now_us) {
      return (int)((oldest->due_us - now_us) / REDLOCK_MILLISECONDS) + 1;
    }
    self->first = (self->first + 1) % PACKETS_MAX;
    self->count--;
    oldest->link->packets--;
    deliver(oldest->link, oldest->to, oldest->bytes, oldest->length);
  }
  return -1;
}

/* Returns the length of the first reply (RESP2), or 0 while a part of it is missing. */
static size_t reply_length(const char *bytes, size_t length) {
  const char *end = memchr(bytes, '\n', length);
  if (end == NULL) {
    return 0;
  }
  size_t at = (size_t)(end - bytes) + 1;
  long number = strtol(bytes + 1, NULL, 10);
  if (bytes[0] == '$' && number >= 0) {
    at += (size_t)number + 2;
  }
  for (long i = 0; bytes[0] == '*' && i < number; i++) {
    size_t element = at < length ? reply_length(bytes + at, length - at) : 0;
    if (element == 0) {
      return 0;
    }
    at += element;
  }
  return at <= length ? at : 0;
}

static bool is_lost(relay_process *self, const char *reply, size_t length) {
  bool lost = length > strlen(MESSAGE) && memcmp(reply, MESSAGE, strlen(MESSAGE)) == 0 &&
              ++self->messages % self->order->loss == 0;
  self->order->lost += lost;
  return lost;
}

/* Passes complete replies on, but for messages that are lost. */
static void pass_replies(relay_process *self, relay_link *link, const char *bytes, size_t length) {
  size_t at = 0, reply;
  link->replies = link->replies != NULL ? link->replies : malloc(REPLIES_MAX);
  must(link->replies != NULL && link->length + length <= REPLIES_MAX, "relay: a reply is too long");
  memcpy(link->replies + link->length, bytes, length);
  link->length += length;
  for (; (reply = reply_length(link->replies + at, link->length - at)) > 0; at += reply) {
    if (!is_lost(self, link->replies + at, reply)) {
      pass(self, link, CLIENT, link->replies + at, reply);
    }
  }
  link->length -= at;
  memmove(link->replies, link->replies + at, link->length);
}

static void take(relay_process *self, relay_link *link, int from) {
  char bytes[REPLIES_MAX / 4];
  ssize_t got = recv(link->ends[from], bytes, sizeof bytes, 0);
  if (got <= 0) {
    link->ended[from] = true;
    pass(self, link, 1 - from, "", 0);
  } else if (from == SERVER && self->order->loss > 0) {
    pass_replies(self, link, bytes, (size_t)got);
  } else {
    pass(self, link, 1 - from, bytes, (size_t)got);
  }
}

/* ---------------------------------------------------------------------------------- orders */

/* The kernel drops all packets from the client unseen. */
static void silence(relay_link *link) {
  struct sock_filter drop = {BPF_RET | BPF_K, 0, 0, 0};
  struct sock_fprog program = {1, &drop};
  must(setsockopt(link->ends[CLIENT], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0,
       "SO_ATTACH_FILTER");
  link->ends[CLIENT] = link->ends[SERVER] = -1; /* Both stay open. */
}

static void obey(relay_process *self) {
  volatile relay_order *order = self->order;
  for (unsigned i = 0; i < LINKS_MAX; i++) {
    relay_link *link = &self->links[i];
    if (link->ends[CLIENT] < 0) {
      continue;
    }
    if (order->how == RELAY_SILENCE) {
      silence(link);
    } else if (order->how == RELAY_KEEP) {
      (void)close(link->ends[SERVER]);
      link->ends[SERVER] = connect_to(order->port);
      link->ended[SERVER] = false;
    }
    if (order->how == RELAY_CLOSE || link->ends[SERVER] < 0) {
      close_link(link);
    }
  }
  for (unsigned i = 0; i < LINKS_MAX && order->how != RELAY_KEEP; i++) {
    self->links[i].packets = 0;
  }
  self->count = order->how == RELAY_KEEP ? self->count : 0;
  order->done = order->given;
}

static void interrupt(int signal) {
  (void)signal;
}

static void run(relay_process *self) {
  struct pollfd fds[1 + 2 * LINKS_MAX];
  for (;;) {
    if (self->order->given != self->order->done) {
      obey(self);
    }
    int timeout_ms = deliver_due(self);
    fds[0] = (struct pollfd){self->listener, POLLIN, 0};
    for (unsigned i = 0; i < 2 * LINKS_MAX; i++) {
      const relay_link *link = &self->links[i / 2];
      fds[1 + i] = (struct pollfd){link->ended[i % 2] ? -1 : link->ends[i % 2], POLLIN, 0};
    }
    if (poll(fds, 1 + 2 * LINKS_MAX, timeout_ms) <= 0) {
      continue;
    }
    for (unsigned i = 0; i < 2 * LINKS_MAX; i++) {
      relay_link *link = &self->links[i / 2];
      if (fds[1 + i].revents != 0 && link->ends[i % 2] == fds[1 + i].fd) {
        take(self, link, (int)(i % 2));
      }
    }
    if (fds[0].revents != 0) {
      accept_client(self);
    }
  }
}

/* ---------------------------------------------------------------------------------- caller */

void relay_start(relay *self, int port, redlock_duration delay_us) {
  relay_process *process = calloc(1, sizeof *process);
  struct sockaddr_in bound = address_of(0);
  socklen_t length = sizeof bound;
  must(process != NULL, "relay: calloc");
  process->delay_us = delay_us;
  for (unsigned i = 0; i < LINKS_MAX; i++) {
    process->links[i].ends[CLIENT] = process->links[i].ends[SERVER] = -1;
  }
  process->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(process->listener >= 0 && bind(process->listener, (struct sockaddr *)&bound, length) == 0 &&
           listen(process->listener, BACKLOG) == 0 &&
           getsockname(process->listener, (struct sockaddr *)&bound, &length) == 0,
       "relay: a port");
  (void)snprintf(self->address, sizeof self->address, "127.0.0.1:%d", ntohs(bound.sin_port));
  self->order =
      mmap(NULL, sizeof *self->order, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  must(self->order != MAP_FAILED, "relay: mmap");
  self->order->port = port;
  process->order = self->order;
  self->pid = fork();
  must(self->pid >= 0, "relay: fork");
  if (self->pid == 0) {
    struct sigaction action = {.sa_handler = interrupt};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigaction(SIGURG, &action, NULL);
    run(process);
  }
  (void)close(process->listener);
  free(process);
}

void relay_end(relay *self) {
  (void)kill(self->pid, SIGKILL);
  (void)waitpid(self->pid, NULL, 0);
  (void)munmap((void *)(uintptr_t)self->order, sizeof *self->order);
}

void relay_turn_to(relay *self, int port, relay_switch how) {
  self->order->port = port;
  self->order->how = (int)how;
  __atomic_fetch_add(&self->order->given, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&self->order->done, __ATOMIC_SEQ_CST) != self->order->given) {
    (void)kill(self->pid, SIGURG);
    (void)poll(NULL, 0, 1);
  }
}
