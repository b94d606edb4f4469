/*
 * Blocking calls of many threads, measured like those of client.c.
 *
 *     threads shared|own <threads> <host:port> ...
 *
 * shared: all threads use one client; own: each thread has a client. Each thread acquires and
 * releases its own lock. It retries nothing, so that failures show.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <redlock.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

#define THREADS_MAX 1024

typedef struct worker {
  pthread_t thread;
  redlock_client *client;
  redlock_lock *lock;
  struct threads *all;
  bench_result result;
} worker;

typedef struct threads {
  unsigned count;
  worker *workers;
  const bench_goal *goal;
  atomic_uint_fast64_t pairs; /* begun */
} threads;

static void *work(void *argument) {
  worker *self = argument;
  const bench_goal *goal = self->all->goal;
  uint64_t begun_ns = bench_now_ns(), held_ns, ended_ns;

  while (begun_ns < goal->end_ns && atomic_fetch_add(&self->all->pairs, 1) < goal->pairs) {
    int acquired = redlock_lock_acquire(self->lock, NULL, NULL);
    held_ns = bench_now_ns();
    int released = acquired == REDLOCK_OK ? redlock_lock_release(self->lock) : acquired;
    ended_ns = bench_now_ns();
    if (released != REDLOCK_OK && self->result.failures++ == 0 && self == self->all->workers)
      fprintf(stderr, "threads: %s\n", redlock_lock_message(self->lock));
    bench_record(&self->result, begun_ns, held_ns, ended_ns);
    begun_ns = ended_ns;
  }
  return NULL;
}

static void add_histogram(bench_histogram *to, const bench_histogram *from) {
  to->count += from->count;
  for (size_t i = 0; i < BENCH_BUCKETS; i++)
    to->buckets[i] += from->buckets[i];
}

static void run(void *peer, const bench_goal *goal, bench_result *result) {
  threads *self = peer;

  self->goal = goal;
  atomic_store(&self->pairs, 0);
  for (unsigned i = 0; i < self->count; i++) {
    worker *one = &self->workers[i];
    memset(&one->result, 0, sizeof one->result);
    if (pthread_create(&one->thread, NULL, work, one) != 0)
      bench_die("threads: no thread");
  }
  for (unsigned i = 0; i < self->count; i++) {
    worker *one = &self->workers[i];
    (void)pthread_join(one->thread, NULL);
    result->pairs += one->result.pairs;
    result->failures += one->result.failures;
    add_histogram(&result->acquire, &one->result.acquire);
    add_histogram(&result->release, &one->result.release);
    add_histogram(&result->pair, &one->result.pair);
  }
}

static redlock_client *make_client(char **addresses, int address_count) {
  char message[256];
  redlock_client *client;
  redlock_options options = {0};
  redlock_settings settings;

  options.retry_count = REDLOCK_RETRIES_NONE;
  memset(&settings, 0, sizeof settings);
  settings.options = &options;
  if (redlock_client_new(&client, &settings, message, sizeof message) != REDLOCK_OK)
    bench_die("threads: %s", message);
  for (int i = 0; i < address_count; i++)
    if (redlock_client_add(client, addresses[i], message, sizeof message) != REDLOCK_OK)
      bench_die("threads: %s", message);
  return client;
}

int main(int argc, char **argv) {
  static bench_result result;
  threads self = {.count = argc > 2 ? (unsigned)atoi(argv[2]) : 0};
  redlock_client *shared = NULL;

  if (argc < 4 || self.count == 0 || self.count > THREADS_MAX)
    bench_die("usage: threads shared|own <threads> <host:port> ...");
  self.workers = calloc(self.count, sizeof *self.workers);
  if (self.workers == NULL)
    bench_die("threads: out of memory");
  if (strcmp(argv[1], "shared") == 0)
    shared = make_client(argv + 3, argc - 3);
  for (unsigned i = 0; i < self.count; i++) {
    char name[BENCH_NAME_SIZE];
    worker *one = &self.workers[i];

    one->all = &self;
    one->client = shared != NULL ? redlock_client_ref(shared) : make_client(argv + 3, argc - 3);
    bench_name(name, sizeof name, i);
    if (redlock_lock_new(&one->lock, one->client, name, strlen(name), NULL) != REDLOCK_OK)
      bench_die("threads: lock_new");
  }
  bench_serve(run, &self, &result);
  for (unsigned i = 0; i < self.count; i++) {
    redlock_lock_free(self.workers[i].lock);
    redlock_client_free(self.workers[i].client);
  }
  redlock_client_free(shared);
  free(self.workers);
  return 0;
}
