/*
 * The library, measured like the bare limit of limit.c, through redlock.h alone.
 *
 *     client <locks in flight> <host:port> ...
 *
 * With 1 lock it makes blocking calls on one lock object. With more it runs a loop with poll(2).
 * With BENCH_FORGET set the one lock is released without waiting. It retries nothing, so that
 * failures show.
 *
 * BENCH_FENCE adds fencing tokens, BENCH_GUARD a guard after a bootstrap. With BENCH_CONTENDED all
 * such programs use the same lock names, and wait.
 *
 * Compiled with BENCH_TLS, it uses TLS with the CA of BENCH_TLS_CA.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <poll.h>
#include <redlock.h>
#ifdef BENCH_TLS
#include <redlock_tls.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "measure.h"

#define CLIENT_LOCKS_MAX 1024

typedef struct client_lock {
  redlock_lock *lock;
  bool releasing;
  uint64_t begun_ns, held_ns;
} client_lock;

typedef struct client {
  redlock_client *redlock;
  client_lock *locks;
  unsigned lock_count;
  unsigned active;
  const bench_goal *goal;
  bench_result *result;
} client;

static void client_run_sequential(void *peer, const bench_goal *goal, bench_result *result) {
  client *self = peer;
  redlock_lock *lock = self->locks[0].lock;
  bool forget = getenv("BENCH_FORGET") != NULL;
  uint64_t begun_ns = bench_now_ns(), held_ns, ended_ns;

  while (begun_ns < goal->end_ns && result->pairs < goal->pairs) {
    int acquired = redlock_lock_acquire(lock, NULL, NULL);
    held_ns = bench_now_ns();
    int released = acquired != REDLOCK_OK ? acquired
                   : forget               ? redlock_lock_release_send(lock)
                                          : redlock_lock_release(lock);
    ended_ns = bench_now_ns();
    if (released != REDLOCK_OK) {
      if (result->failures++ == 0)
        fprintf(stderr, "client: %s\n", redlock_lock_message(lock));
    }
    bench_record(result, begun_ns, held_ns, ended_ns);
    begun_ns = ended_ns;
  }
}

static void client_acquire(client *self, client_lock *lock, uint64_t now_ns) {
  if (now_ns >= self->goal->end_ns || self->result->pairs + self->active >= self->goal->pairs)
    return;
  lock->begun_ns = now_ns;
  lock->releasing = false;
  self->active++;
  if (redlock_lock_acquire_start(lock->lock, NULL) != REDLOCK_OK)
    bench_die("client: acquire_start");
}

static void client_ended(client *self, redlock_lock *ended) {
  client_lock *lock = redlock_lock_data(ended);
  uint64_t now_ns = bench_now_ns();
  int error = redlock_lock_result(ended);

  if (error != REDLOCK_OK && self->result->failures++ == 0)
    fprintf(stderr, "client: %s\n", redlock_lock_message(ended));
  if (!lock->releasing && error == REDLOCK_OK) {
    lock->held_ns = now_ns;
    lock->releasing = true;
    if (redlock_lock_release_start(ended) != REDLOCK_OK)
      bench_die("client: release_start");
    return;
  }
  if (!lock->releasing)
    lock->held_ns = now_ns;
  self->active--;
  bench_record(self->result, lock->begun_ns, lock->held_ns, now_ns);
  client_acquire(self, lock, now_ns);
}

static void client_run_in_flight(void *peer, const bench_goal *goal, bench_result *result) {
  client *self = peer;
  struct pollfd fds[REDLOCK_NODES_MAX];
  redlock_lock *ended;

  self->goal = goal;
  self->result = result;
  for (unsigned i = 0; i < self->lock_count; i++)
    client_acquire(self, &self->locks[i], bench_now_ns());
  while (self->active > 0) {
    size_t count = redlock_client_pollfds(self->redlock, fds, REDLOCK_NODES_MAX);

    if (poll(fds, (nfds_t)count, redlock_client_timeout_ms(self->redlock)) < 0 && errno != EINTR)
      bench_die("client: poll: %s", strerror(errno));
    if (redlock_client_process(self->redlock, fds, count) != REDLOCK_OK)
      bench_die("client: process");
    while ((ended = redlock_client_next_ended(self->redlock)) != NULL)
      client_ended(self, ended);
  }
}

/* Every program that is asked to shares the names. */
static void client_name(char *name, size_t size, unsigned index) {
  bench_name(name, size, index);
  if (getenv("BENCH_CONTENDED") != NULL)
    snprintf(name, size, "contended-%u", index);
}

static void client_settings(redlock_settings *settings, redlock_options *options) {
  options->retry_count = REDLOCK_RETRIES_NONE;
  if (getenv("BENCH_CONTENDED") != NULL) {
    options->retry_count = 0;
    options->wait_us = 10 * REDLOCK_SECONDS;
    options->retry_delay_us = options->retry_jitter_us = REDLOCK_MILLISECONDS;
  }
  options->fence = getenv("BENCH_FENCE") != NULL ? REDLOCK_YES : REDLOCK_NO;
#ifdef BENCH_HAS_GUARD
  settings->guard = getenv("BENCH_GUARD") != NULL ? REDLOCK_YES : REDLOCK_NO;
#endif
  settings->options = options;
#ifdef BENCH_TLS
  settings->transport = redlock_tls();
  settings->tls = REDLOCK_YES;
  settings->tls_ca = getenv("BENCH_TLS_CA");
#endif
}

static void client_make(client *self, char **addresses, int address_count) {
  char message[256];
  redlock_options options = {0};
  redlock_settings settings;

  memset(&settings, 0, sizeof settings);
  client_settings(&settings, &options);
  if (redlock_client_new(&self->redlock, &settings, message, sizeof message) != REDLOCK_OK)
    bench_die("client: %s", message);
  for (int i = 0; i < address_count; i++)
    if (redlock_client_add(self->redlock, addresses[i], message, sizeof message) != REDLOCK_OK)
      bench_die("client: %s", message);
#ifdef BENCH_HAS_GUARD
  if (getenv("BENCH_GUARD") != NULL && redlock_client_bootstrap(self->redlock) != REDLOCK_OK)
    bench_die("client: %s", redlock_client_message(self->redlock));
#endif
  self->locks = calloc(self->lock_count, sizeof *self->locks);
  if (self->locks == NULL)
    bench_die("client: out of memory");
  for (unsigned i = 0; i < self->lock_count; i++) {
    char name[BENCH_NAME_SIZE];

    client_name(name, sizeof name, i);
    if (redlock_lock_new(&self->locks[i].lock, self->redlock, name, strlen(name), NULL) !=
        REDLOCK_OK)
      bench_die("client: lock_new");
    redlock_lock_set_data(self->locks[i].lock, &self->locks[i]);
  }
}

int main(int argc, char **argv) {
  static bench_result result;
  client self = {.lock_count = argc > 1 ? (unsigned)atoi(argv[1]) : 0};

  if (argc < 3 || self.lock_count == 0 || self.lock_count > CLIENT_LOCKS_MAX)
    bench_die("usage: client <locks in flight> <host:port> ...");
  client_make(&self, argv + 2, argc - 2);
  bench_serve(self.lock_count == 1 ? client_run_sequential : client_run_in_flight, &self, &result);
  for (unsigned i = 0; i < self.lock_count; i++)
    redlock_lock_free(self.locks[i].lock);
  redlock_client_free(self.redlock);
  free(self.locks);
  return 0;
}
