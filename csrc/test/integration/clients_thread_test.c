/*
 * Several threads with a client each, in blocking calls at once.
 *
 * SPDX-License-Identifier: MIT
 *
 * Threads must not fail through cmocka: they count, and the test looks at what they have counted.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "support.h"

#define THREADS 4
#define ROUNDS 100

typedef struct worker {
  pthread_t thread;
  unsigned number;
  unsigned own;      /* pairs on a name of its own */
  unsigned common;   /* sections under the name of all */
  unsigned errors;   /* what should not have happened */
  unsigned two_hold; /* another was in its section as well */
  char message[256]; /* of the last error */
  char token[REDLOCK_TOKEN_LENGTH + 1];
} worker;

static atomic_uint inside; /* sections under the common name */

static redlock_client *make_client(worker *self) {
  redlock_client *client = NULL;
  char local[64];
  if (redlock_client_new(&client, NULL, self->message, sizeof self->message) != REDLOCK_OK) {
    return NULL;
  }
  /* A name, so that look-ups run beside each other as well. */
  (void)snprintf(local, sizeof local, "localhost:%d", three.nodes[2].port);
  const char *addresses[] = {three.nodes[0].address, three.nodes[1].address, local};
  for (unsigned i = 0; i < 3; i++) {
    if (redlock_client_add(client, addresses[i], self->message, sizeof self->message) !=
        REDLOCK_OK) {
      self->errors++;
    }
  }
  return client;
}

static void note(worker *self, redlock_lock *lock, int result) {
  if (result != REDLOCK_OK) {
    self->errors++;
    (void)snprintf(self->message, sizeof self->message, "%s", redlock_lock_message(lock));
  }
}

static void work_with(worker *self, redlock_client *client) {
  char name[32];
  redlock_options options = {0};
  redlock_lock *own;
  redlock_lock *common;
  (void)snprintf(name, sizeof name, "own%u", self->number);
  options.node_timeout_us = 5 * REDLOCK_SECONDS;
  options.ttl_us = 60 * REDLOCK_SECONDS;
  options.wait_us = 600 * REDLOCK_SECONDS;
  options.retry_delay_us = MS(2);
  options.retry_jitter_us = MS(2);
  if (redlock_lock_new(&own, client, name, strlen(name), &options) != REDLOCK_OK ||
      redlock_lock_new(&common, client, "common", 6, &options) != REDLOCK_OK) {
    self->errors++;
    return;
  }
  for (unsigned i = 0; i < ROUNDS && self->errors == 0; i++) {
    note(self, own, redlock_lock_acquire(own, NULL, NULL));
    (void)memcpy(self->token, redlock_lock_token(own), sizeof self->token);
    note(self, own, redlock_lock_release(own));
    self->own++;
    if (i % 10 == 0) {
      note(self, common, redlock_lock_acquire(common, NULL, NULL));
      self->two_hold += atomic_fetch_add(&inside, 1) != 0;
      self->common++;
      (void)atomic_fetch_sub(&inside, 1);
      note(self, common, redlock_lock_release(common));
    }
  }
  redlock_lock_free(own);
  redlock_lock_free(common);
}

static void *work(void *argument) {
  worker *self = argument;
  redlock_client *client = make_client(self);
  if (client == NULL) {
    self->errors++;
    return NULL;
  }
  work_with(self, client);
  redlock_client_free(client);
  return NULL;
}

static void clients_of_different_threads_do_not_meet(void **state) {
  static worker workers[THREADS];
  (void)state;
  farm_reset(&three);
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i].number = i;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    if (workers[i].errors != 0) {
      fail_msg("thread %u: %s", i, workers[i].message);
    }
    assert_int_equal(workers[i].two_hold, 0);
    assert_int_equal(workers[i].own, ROUNDS);
    assert_int_equal(workers[i].common, ROUNDS / 10);
    assert_string_not_equal(workers[i].token, workers[(i + 1) % THREADS].token);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clients_of_different_threads_do_not_meet),
  };
  return cmocka_run_group_tests_name("clients and threads", tests, three_start, three_end);
}
