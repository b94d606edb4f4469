/*
 * Loss: a relay in front of a server, which loses some of the messages that the server publishes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lossy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS_MAX 256
#define REPLIES_MAX 65536
#define MESSAGE "*3\r\n$7\r\nmessage\r\n"

typedef struct pair {
  int near, away; /* -1: none */
  size_t length;  /* of what the server has sent, and is no whole reply yet */
  char *replies;
} pair;

typedef struct relay {
  int listener, port;
  unsigned nth, messages;
  volatile unsigned *lost;
  pair pairs[PAIRS_MAX];
} relay;

static void must(bool ok, const char *what) {
  if (!ok) {
    perror(what);
    abort();
  }
}

static struct sockaddr_in loopback_address(int port) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons((uint16_t)port);
  return address;
}

static void greet(relay *self) {
  struct sockaddr_in address = loopback_address(self->port);
  int on = 1;
  int near = accept(self->listener, NULL, NULL);
  int away = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool connected = connect(away, (struct sockaddr *)&address, sizeof address) == 0;
  (void)setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(away, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (unsigned i = 0; i < PAIRS_MAX && connected; i++) {
    pair *free_pair = &self->pairs[i];
    if (free_pair->near < 0) {
      free_pair->replies = free_pair->replies != NULL ? free_pair->replies : malloc(REPLIES_MAX);
      must(free_pair->replies != NULL, "malloc");
      free_pair->near = near;
      free_pair->away = away;
      free_pair->length = 0;
      return;
    }
  }
  (void)close(near);
  (void)close(away);
}

static void part(pair *ended) {
  (void)close(ended->near);
  (void)close(ended->away);
  ended->near = ended->away = -1;
}

/* The length of the whole reply (RESP2) at the beginning; 0 while a part of it is missing. */
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

static bool is_lost(relay *self, const char *reply, size_t length) {
  size_t begins = sizeof MESSAGE - 1;
  bool lost = self->nth > 0 && length > begins && memcmp(reply, MESSAGE, begins) == 0 &&
              ++self->messages % self->nth == 0;
  *self->lost += lost;
  return lost;
}

/* What has come from the server goes on as soon as it is a whole reply. */
static bool from_server(relay *self, pair *one) {
  ssize_t got = recv(one->away, one->replies + one->length, REPLIES_MAX - one->length, 0);
  size_t at = 0, kept = 0, reply;
  if (got <= 0) {
    return false;
  }
  one->length += (size_t)got;
  while (at < one->length && (reply = reply_length(one->replies + at, one->length - at)) > 0) {
    if (!is_lost(self, one->replies + at, reply)) {
      memmove(one->replies + kept, one->replies + at, reply);
      kept += reply;
    }
    at += reply;
  }
  bool sent = kept == 0 || send(one->near, one->replies, kept, MSG_NOSIGNAL) == (ssize_t)kept;
  one->length -= at;
  memmove(one->replies, one->replies + at, one->length);
  must(one->length < REPLIES_MAX, "lossy: a reply is too long");
  return sent;
}

static bool from_client(const pair *one) {
  char bytes[16384];
  ssize_t got = recv(one->near, bytes, sizeof bytes, 0);
  return got > 0 && send(one->away, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

static void run(relay *self) {
  struct pollfd fds[1 + 2 * PAIRS_MAX];
  for (;;) {
    fds[0] = (struct pollfd){self->listener, POLLIN, 0};
    for (unsigned i = 0; i < PAIRS_MAX; i++) {
      fds[1 + 2 * i] = (struct pollfd){self->pairs[i].near, POLLIN, 0};
      fds[2 + 2 * i] = (struct pollfd){self->pairs[i].away, POLLIN, 0};
    }
    if (poll(fds, 1 + 2 * PAIRS_MAX, -1) <= 0) {
      continue;
    }
    for (unsigned i = 0; i < PAIRS_MAX; i++) {
      if ((fds[1 + 2 * i].revents != 0 && !from_client(&self->pairs[i])) ||
          (fds[2 + 2 * i].revents != 0 && !from_server(self, &self->pairs[i]))) {
        part(&self->pairs[i]);
      }
    }
    if (fds[0].revents != 0) {
      greet(self);
    }
  }
}

void lossy_start(lossy_relay *started, int port, unsigned nth) {
  relay *self = calloc(1, sizeof *self);
  struct sockaddr_in address = loopback_address(0);
  socklen_t length = sizeof address;
  must(self != NULL, "calloc");
  for (unsigned i = 0; i < PAIRS_MAX; i++) {
    self->pairs[i].near = self->pairs[i].away = -1;
  }
  self->port = port;
  self->nth = nth;
  self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(bind(self->listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
  must(listen(self->listener, PAIRS_MAX) == 0, "listen");
  must(getsockname(self->listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
  (void)snprintf(started->address, sizeof started->address, "127.0.0.1:%d",
                 ntohs(address.sin_port));
  started->lost =
      mmap(NULL, sizeof *started->lost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  must(started->lost != MAP_FAILED, "mmap");
  self->lost = started->lost;
  started->pid = fork();
  must(started->pid >= 0, "fork");
  if (started->pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    run(self);
  }
  (void)close(self->listener);
  free(self);
}

void lossy_end(lossy_relay *started) {
  (void)kill(started->pid, SIGKILL);
  (void)waitpid(started->pid, NULL, 0);
  (void)munmap((void *)started->lost, sizeof *started->lost);
}
