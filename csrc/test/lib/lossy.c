/*
 * Loss: a relay in front of a server, which loses some of the messages that the server publishes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lossy.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "relay.h"

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

static void greet(relay *self) {
  int ends[2];
  if (!relay_greet(self->listener, self->port, ends)) {
    return;
  }
  for (unsigned i = 0; i < PAIRS_MAX; i++) {
    pair *free_pair = &self->pairs[i];
    if (free_pair->near < 0) {
      free_pair->replies = free_pair->replies != NULL ? free_pair->replies : malloc(REPLIES_MAX);
      relay_must(free_pair->replies != NULL, "malloc");
      free_pair->near = ends[0];
      free_pair->away = ends[1];
      free_pair->length = 0;
      return;
    }
  }
  (void)close(ends[0]);
  (void)close(ends[1]);
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
  relay_must(one->length < REPLIES_MAX, "lossy: a reply is too long");
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
  relay_must(self != NULL, "calloc");
  for (unsigned i = 0; i < PAIRS_MAX; i++) {
    self->pairs[i].near = self->pairs[i].away = -1;
  }
  self->port = port;
  self->nth = nth;
  self->listener = relay_listen(started->address);
  started->lost = relay_share(sizeof *started->lost);
  self->lost = started->lost;
  started->pid = relay_fork();
  if (started->pid == 0) {
    run(self);
  }
  (void)close(self->listener);
  free(self);
}

void lossy_end(lossy_relay *started) {
  relay_end(started->pid);
  (void)munmap((void *)started->lost, sizeof *started->lost);
}
