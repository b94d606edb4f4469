/*
 * A program with its own epoll loop: the client is one descriptor, registered once. The loop waits
 * without a time-out. A timer of the program extends the lock until the work is done.
 *
 *     epoll_loop 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EXTENSIONS 5
#define TICK_NS (20 * 1000000) /* a third of the ttl as a rule; short here */

typedef struct {
  redlock_client *client;
  redlock_lock *lock;
  int set;
  int timer;
  int extensions;
  bool held;
  bool done;
} program;

static bool watch(const program *self, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  return fd >= 0 && epoll_ctl(self->set, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The program's own timer: time to extend, or to give the lock back. */
static void tick(program *self) {
  uint64_t ticks;
  if (read(self->timer, &ticks, sizeof ticks) < 0 || !self->held) {
    return;
  }
  int error = self->extensions < EXTENSIONS ? redlock_lock_extend_start(self->lock, 0)
                                            : redlock_lock_release_start(self->lock);
  if (error == REDLOCK_E_BUSY) {
    return; /* The last extension has not ended yet. */
  }
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_lock_message(self->lock));
    self->done = true;
  }
}

/* An operation has ended. */
static void ended(program *self) {
  int error = redlock_lock_result(self->lock);
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_lock_message(self->lock));
    self->done = true;
  } else if (!self->held) {
    self->held = true;
    puts("held");
  } else if (redlock_lock_remaining(self->lock) > 0) {
    self->extensions++;
  } else {
    printf("released after %d extensions\n", self->extensions);
    self->done = true;
  }
}

static void run(program *self) {
  struct epoll_event events[4];
  while (!self->done) {
    int count = epoll_wait(self->set, events, 4, -1);
    if (count < 0 && errno != EINTR) {
      return;
    }
    for (int i = 0; i < count; i++) {
      if (events[i].data.fd == self->timer) {
        tick(self);
      } else {
        (void)redlock_client_process(self->client, NULL, 0);
      }
    }
    while (redlock_client_next_ended(self->client) != NULL) {
      ended(self);
    }
  }
}

int main(int argc, char **argv) {
  struct itimerspec often = {{0, TICK_NS}, {0, TICK_NS}};
  char message[256] = "";
  program self = {0};

  int error = redlock_client_new(&self.client, NULL, message, sizeof message);
  for (int i = 1; i < argc && error == REDLOCK_OK; i++) {
    error = redlock_client_add(self.client, argv[i], message, sizeof message);
  }
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", message);
    redlock_client_free(self.client);
    return 1;
  }
  if (redlock_lock_new(&self.lock, self.client, "orders:42", 9, NULL) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_client_message(self.client));
    redlock_client_free(self.client);
    return 1;
  }
  self.set = epoll_create1(EPOLL_CLOEXEC);
  self.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (!watch(&self, redlock_client_pollfd(self.client)) || !watch(&self, self.timer) ||
      timerfd_settime(self.timer, 0, &often, NULL) != 0) {
    perror("epoll");
  } else if (redlock_lock_acquire_start(self.lock, NULL) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_lock_message(self.lock));
  } else {
    run(&self);
  }
  redlock_lock_free(self.lock);
  redlock_client_free(self.client);
  (void)close(self.timer);
  (void)close(self.set);
  return self.extensions == EXTENSIONS ? 0 : 1;
}
