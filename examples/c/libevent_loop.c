/*
 * A program that runs in libevent: the client is one persistent event without a time-out. The
 * library extends the lease while the program works, and reports a loss.
 *
 *     libevent_loop 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>

#define TTL_US (300 * REDLOCK_MILLISECONDS)
#define WORK_MS 700 /* longer than the ttl */

typedef struct {
  redlock_client *client;
  redlock_lock *lock;
  struct event *readable;
  struct event *work;
  bool held;
  bool done;
} program;

/* All work is done: a base without events ends its loop. */
static void stop(program *self) {
  (void)event_del(self->readable);
  (void)event_del(self->work);
}

/* An operation has ended. */
static void ended(program *self) {
  struct timeval work = {0, WORK_MS * 1000};
  int error = redlock_lock_result(self->lock);
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_lock_message(self->lock));
    stop(self);
  } else if (!self->held) {
    self->held = true;
    (void)event_add(self->work, &work);
  } else {
    self->done = true;
    stop(self);
  }
}

static void on_readable(evutil_socket_t fd, short events, void *argument) {
  program *self = argument;
  (void)fd;
  (void)events;
  (void)redlock_client_process(self->client, NULL, 0);
  while (redlock_client_next_ended(self->client) != NULL) {
    ended(self);
  }
  while (redlock_client_next_lost(self->client) != NULL) {
    fprintf(stderr, "%s\n", redlock_strerror(redlock_lock_lost(self->lock, NULL)));
    if (redlock_lock_remaining(self->lock) == 0) { /* otherwise a warning: the lease lasts */
      stop(self);
    }
  }
}

static void on_work_done(evutil_socket_t fd, short events, void *argument) {
  program *self = argument;
  (void)fd;
  (void)events;
  if (redlock_lock_remaining(self->lock) == 0 ||
      redlock_lock_release_start(self->lock) != REDLOCK_OK) {
    stop(self);
  }
}

static void run(program *self) {
  struct event_base *base = event_base_new();
  int fd = redlock_client_pollfd(self->client);
  if (base == NULL || fd < 0) { /* An event without a descriptor would wait for ever. */
    fputs("libevent or the client has no descriptor\n", stderr);
    return;
  }
  self->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, self);
  self->work = event_new(base, -1, 0, on_work_done, self);
  if (redlock_lock_acquire_start(self->lock, NULL) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_lock_message(self->lock));
  } else if (self->readable != NULL && self->work != NULL && event_add(self->readable, NULL) == 0) {
    (void)event_base_dispatch(base);
  }
  event_free(self->readable);
  event_free(self->work);
  event_base_free(base);
}

int main(int argc, char **argv) {
  char message[256] = "";
  redlock_options options = {.ttl_us = TTL_US, .auto_extend = REDLOCK_YES};
  program self = {0};

  int error = redlock_client_new(&self.client, NULL, message, sizeof message);
  for (int i = 1; i < argc && error == REDLOCK_OK; i++) {
    error = redlock_client_add(self.client, argv[i], message, sizeof message);
  }
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", message);
  } else if (redlock_lock_new(&self.lock, self.client, "orders:42", 9, &options) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_client_message(self.client));
  } else {
    run(&self);
  }
  redlock_lock_free(self.lock);
  (void)redlock_client_close(self.client, 1000 * REDLOCK_MILLISECONDS);
  redlock_client_free(self.client);
  if (self.done) {
    puts("held for longer than its ttl, and released");
  }
  return self.done ? 0 : 1;
}
