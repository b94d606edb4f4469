/*
 * Twenty tasks in a program that runs in libuv: the client is one uv_poll_t, and needs no timer.
 * Each task acquires its lock, works for a moment, and releases it. The loop ends after the last
 * task.
 *
 *     libuv_loop 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <stdbool.h>
#include <stdio.h>
#include <uv.h>

#define TASKS 20
#define WORK_MS 5

typedef struct {
  redlock_lock *lock;
  uv_timer_t work;
} task;

typedef struct {
  redlock_client *client;
  uv_poll_t poll;
  task tasks[TASKS];
  int left;
  int done;
} program;

/* A task has come to its end. With the last one the handle goes, before the descriptor does. */
static void leave(program *self, task *of, bool well) {
  uv_close((uv_handle_t *)&of->work, NULL);
  self->done += well;
  if (--self->left == 0) {
    uv_close((uv_handle_t *)&self->poll, NULL);
  }
}

static void on_work_done(uv_timer_t *work) {
  task *of = work->data;
  if (redlock_lock_release_start(of->lock) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_lock_message(of->lock));
  }
}

/* Handles the end of a task's operation: an acquire if the lock is held, otherwise a release. */
static void ended(program *self, task *of) {
  int error = redlock_lock_result(of->lock);
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_lock_message(of->lock));
    leave(self, of, false);
  } else if (redlock_lock_remaining(of->lock) > 0) {
    (void)uv_timer_start(&of->work, on_work_done, WORK_MS, 0);
  } else {
    leave(self, of, true);
  }
}

static void on_readable(uv_poll_t *poll, int status, int events) {
  program *self = poll->data;
  redlock_lock *lock;
  (void)status;
  (void)events;
  (void)redlock_client_process(self->client, NULL, 0);
  while ((lock = redlock_client_next_ended(self->client)) != NULL) {
    ended(self, redlock_lock_data(lock));
  }
}

static int begin(program *self, uv_loop_t *loop) {
  int error = REDLOCK_OK;
  for (int i = 0; i < TASKS && error == REDLOCK_OK; i++) {
    char name[32];
    task *of = &self->tasks[i];
    int length = snprintf(name, sizeof name, "libuv:%d", i);
    error = redlock_lock_new(&of->lock, self->client, name, (size_t)length, NULL);
    if (error != REDLOCK_OK) {
      fprintf(stderr, "%s\n", redlock_client_message(self->client));
      break;
    }
    redlock_lock_set_data(of->lock, of);
    (void)uv_timer_init(loop, &of->work);
    of->work.data = of;
    self->left++;
    error = redlock_lock_acquire_start(of->lock, NULL);
    if (error != REDLOCK_OK) {
      fprintf(stderr, "%s\n", redlock_lock_message(of->lock));
    }
  }
  return error;
}

int main(int argc, char **argv) {
  char message[256] = "";
  program self = {0};
  uv_loop_t *loop = uv_default_loop();

  int error = redlock_client_new(&self.client, NULL, message, sizeof message);
  for (int i = 1; i < argc && error == REDLOCK_OK; i++) {
    error = redlock_client_add(self.client, argv[i], message, sizeof message);
  }
  self.poll.data = &self;
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", message);
  } else if (uv_poll_init(loop, &self.poll, redlock_client_pollfd(self.client)) != 0 ||
             uv_poll_start(&self.poll, UV_READABLE, on_readable) != 0) {
    fputs("libuv cannot poll the client\n", stderr);
  } else if (begin(&self, loop) == REDLOCK_OK) {
    (void)uv_run(loop, UV_RUN_DEFAULT);
  }
  for (int i = 0; i < TASKS; i++) {
    redlock_lock_free(self.tasks[i].lock);
  }
  (void)redlock_client_close(self.client, 1000 * REDLOCK_MILLISECONDS);
  redlock_client_free(self.client);
  printf("%d of %d tasks are done\n", self.done, TASKS);
  return self.done == TASKS ? 0 : 1;
}
