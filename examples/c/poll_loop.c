/*
 * Many locks in flight on one client in a poll loop: sixty-four tasks acquire and release their
 * locks again and again. Only poll() blocks, and a real program adds its other descriptors to it.
 *
 *     poll_loop 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TASKS 64
#define ROUNDS 20

typedef struct {
  redlock_lock *lock;
  int rounds_left;
  bool releasing;
} task;

/* Starts what the task does next. Returns true if it has begun. */
static bool task_step(const task *self) {
  int error = self->releasing ? redlock_lock_release_start(self->lock)
                              : redlock_lock_acquire_start(self->lock, NULL);
  if (error != REDLOCK_OK) {
    fprintf(stderr, "start: %s\n", redlock_lock_message(self->lock));
  }
  return error == REDLOCK_OK;
}

/* Handles the end of the task's operation. Returns true if the task goes on. */
static bool task_ended(task *self, int *held) {
  int error = redlock_lock_result(self->lock);
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s: %s\n", self->releasing ? "release" : "acquire",
            redlock_lock_message(self->lock));
    return false;
  }
  if (!self->releasing) {
    *held += 1;
  } else if (--self->rounds_left == 0) {
    return false;
  }
  self->releasing = !self->releasing;
  return task_step(self);
}

/* Runs until no task goes on. Returns how many times a lock was held, or -1. */
static int run(redlock_client *client) {
  struct pollfd fds[REDLOCK_NODES_MAX];
  int running = TASKS;
  int held = 0;
  while (running > 0) {
    size_t count = redlock_client_pollfds(client, fds, REDLOCK_NODES_MAX);
    int ready = poll(fds, (nfds_t)count, redlock_client_timeout_ms(client));
    if (ready < 0 && errno != EINTR) {
      perror("poll");
      return -1;
    }
    /* After EINTR the revents say nothing: the client looks for itself. */
    int error = redlock_client_process(client, ready < 0 ? NULL : fds, count);
    if (error != REDLOCK_OK) {
      fprintf(stderr, "%s\n", redlock_strerror(error));
      return -1;
    }
    redlock_lock *lock;
    while ((lock = redlock_client_next_ended(client)) != NULL) {
      running -= task_ended(redlock_lock_data(lock), &held) ? 0 : 1;
    }
  }
  return held;
}

static bool tasks_start(redlock_client *client, task *tasks) {
  for (int i = 0; i < TASKS; i++) {
    char resource[32];
    int length = snprintf(resource, sizeof resource, "task:%d", i);
    tasks[i].rounds_left = ROUNDS;
    if (redlock_lock_new(&tasks[i].lock, client, resource, (size_t)length, NULL) != REDLOCK_OK) {
      fprintf(stderr, "%s\n", redlock_client_message(client));
      return false;
    }
    redlock_lock_set_data(tasks[i].lock, &tasks[i]);
    if (!task_step(&tasks[i])) {
      return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  char message[256];
  redlock_client *client = NULL;
  task tasks[TASKS] = {{0}};
  int held = -1;

  if (argc < 2) {
    fprintf(stderr, "usage: %s address...\n", argv[0]);
    return 2;
  }
  int error = redlock_client_new(&client, NULL, message, sizeof message);
  for (int i = 1; i < argc && error == REDLOCK_OK; i++) {
    error = redlock_client_add(client, argv[i], message, sizeof message);
  }
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", message);
  } else if (tasks_start(client, tasks)) {
    redlock_time started_us = redlock_now();
    held = run(client);
    printf("%d tasks held their locks %d times in %.1f ms\n", TASKS, held,
           (double)(redlock_now() - started_us) / (double)REDLOCK_MILLISECONDS);
  }
  for (int i = 0; i < TASKS; i++) {
    redlock_lock_free(tasks[i].lock);
  }
  redlock_client_free(client);
  return held == TASKS * ROUNDS ? 0 : 1;
}
