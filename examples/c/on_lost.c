/*
 * Threads that compute for long, and stop when their lease is lost. The library extends the leases
 * until max_hold_us, and its watchdog thread reports the losses.
 *
 *     on_lost 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#define WORKERS 2

typedef struct {
  redlock_lock *lock;
  pthread_t thread;
  bool runs;
  atomic_bool stops; /* the lease is lost, or the program ends */
} worker;

/* Held while a lock is freed, and while on_lost() uses locks. */
static pthread_mutex_t freeing = PTHREAD_MUTEX_INITIALIZER;

/* The watchdog thread calls it when a lease has been lost. */
static void on_lost(redlock_client *client, void *data) {
  redlock_lock *lock;
  (void)data;
  (void)pthread_mutex_lock(&freeing);
  while ((lock = redlock_client_next_lost(client)) != NULL) {
    worker *holder = redlock_lock_data(lock);
    int reason = redlock_lock_lost(lock, NULL);
    switch (reason) {
    case REDLOCK_E_EXPIRED:
    case REDLOCK_E_LOST:
    case REDLOCK_E_MAX_HOLD:
      printf("lost: %s\n", redlock_error_name(reason));
      atomic_store(&holder->stops, true);
      break;
    default: /* a warning: the lease lasts; or REDLOCK_OK: it has recovered */
      break;
    }
  }
  (void)pthread_mutex_unlock(&freeing);
}

static void *work(void *argument) {
  worker *self = argument;
  unsigned long long steps = 0;
  if (redlock_lock_acquire(self->lock, NULL, NULL) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_lock_message(self->lock));
    return NULL;
  }
  while (!atomic_load(&self->stops)) { /* the computation, which never ends here */
    steps++;
  }
  printf("stopped after %llu steps\n", steps);
  (void)redlock_lock_release(self->lock); /* REDLOCK_E_EXPIRED: its lease had run out */
  return NULL;
}

/* Returns true if the thread runs. */
static bool start(worker *self, redlock_client *client, int number) {
  redlock_options options = {.ttl_us = 300 * REDLOCK_MILLISECONDS,
                             .auto_extend = REDLOCK_YES,
                             .max_hold_us = 900 * REDLOCK_MILLISECONDS};
  char name[32];
  int length = snprintf(name, sizeof name, "report:%d", number);
  if (redlock_lock_new(&self->lock, client, name, (size_t)length, &options) != REDLOCK_OK) {
    fprintf(stderr, "%s\n", redlock_client_message(client)); /* one thread makes all locks */
    return false;
  }
  redlock_lock_set_data(self->lock, self);
  self->runs = pthread_create(&self->thread, NULL, work, self) == 0;
  return self->runs;
}

/* Ends the threads, then the locks. */
static void stop(worker *workers, redlock_client *client, bool at_once) {
  for (int i = 0; at_once && i < WORKERS; i++) {
    atomic_store(&workers[i].stops, true);
  }
  if (at_once) {
    redlock_client_wakeup(client); /* ends the calls in progress */
  }
  for (int i = 0; i < WORKERS; i++) {
    if (workers[i].runs) {
      (void)pthread_join(workers[i].thread, NULL);
    }
    (void)pthread_mutex_lock(&freeing);
    redlock_lock_free(workers[i].lock);
    (void)pthread_mutex_unlock(&freeing);
  }
}

int main(int argc, char **argv) {
  worker workers[WORKERS] = {{0}};
  redlock_client *client = NULL;
  char message[256] = "";
  bool well = true;

  int error = redlock_client_new(&client, NULL, message, sizeof message);
  for (int i = 1; error == REDLOCK_OK && i < argc; i++) {
    error = redlock_client_add(client, argv[i], message, sizeof message);
  }
  if (error == REDLOCK_OK) {
    error = redlock_client_on_lost(client, on_lost, NULL);
  }
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", message[0] != '\0' ? message : redlock_strerror(error));
    redlock_client_free(client);
    return 1;
  }
  for (int i = 0; well && i < WORKERS; i++) {
    well = start(&workers[i], client, i);
  }
  stop(workers, client, !well);
  (void)redlock_client_close(client, 1000 * REDLOCK_MILLISECONDS);
  redlock_client_free(client);
  return well ? 0 : 1;
}
