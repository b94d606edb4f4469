/*
 * All that threads may do with one client, in parallel and at random: for the thread sanitizer.
 *
 * SPDX-License-Identifier: MIT
 *
 * STRESS_SECONDS is the duration [1]; the job tsan/long/stress takes ten minutes.
 *
 * Eight threads in blocking calls, leases that are extended every few milliseconds, locks that are
 * freed while they are held, fire-and-forget releases, hand-overs, nested acquires, wake-ups,
 * reported losses, and forks. Threads must not fail through cmocka. They count errors, which the
 * test checks.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "support.h"

#define THREADS 8
#define SECONDS_USUAL 1

typedef struct worker {
  pthread_t thread;
  redlock_client *client;
  unsigned number;
  unsigned random;
  atomic_uint sections, forgotten, handed, nested;
  unsigned pairs, freed, cancelled;
  unsigned errors;   /* unexpected results */
  unsigned two_hold; /* critical sections with another thread inside */
  char message[256]; /* of the last error */
} worker;

static worker workers[THREADS];
static atomic_uint inside; /* threads in the critical section */
static atomic_bool stop;
static atomic_bool failed; /* a thread has errors */
static atomic_uint lost;   /* reported losses */

static unsigned draw(unsigned *random, unsigned below) {
  *random = *random * 1103515245u + 12345u;
  return (*random >> 16) % below;
}

static redlock_options auto_extended(void) {
  redlock_options options = {0};
  options.ttl_us = 60 * REDLOCK_SECONDS;
  options.node_timeout_us = 10 * REDLOCK_SECONDS; /* enough for a busy machine */
  options.wait_us = 60 * REDLOCK_SECONDS;
  options.retry_delay_us = MS(2);
  options.retry_jitter_us = MS(2);
  options.auto_extend = REDLOCK_YES;
  options.notify_lost = REDLOCK_YES;
  options.extend_every_us = MS(10);
  return options;
}

/* Returns true for REDLOCK_OK. Counts an error unless a wake-up has ended the call. */
static bool succeeded(worker *self, redlock_lock *lock, int result) {
  self->cancelled += result == REDLOCK_E_CANCELLED;
  if (result != REDLOCK_OK && result != REDLOCK_E_CANCELLED) {
    self->errors++;
    (void)snprintf(self->message, sizeof self->message, "%s", redlock_lock_message(lock));
  }
  return result == REDLOCK_OK;
}

static redlock_lock *make_lock(worker *self, const char *name) {
  redlock_options options = auto_extended();
  redlock_lock *lock = NULL;
  self->errors += redlock_lock_new(&lock, self->client, name, strlen(name), &options) != REDLOCK_OK;
  return lock;
}

static void pair(worker *self, redlock_lock *lock) {
  if (!succeeded(self, lock, redlock_lock_acquire(lock, NULL, NULL))) {
    return;
  }
  self->errors += redlock_lock_remaining(lock) == 0 || redlock_lock_token(lock)[0] == '\0';
  if (draw(&self->random, 3) == 0) {
    (void)succeeded(self, lock, redlock_lock_extend(lock, 0, NULL));
  }
  if (draw(&self->random, 8) == 0) {
    (void)poll(NULL, 0, (int)draw(&self->random, 20)); /* The watchdog extends it meanwhile. */
  }
  self->errors += redlock_lock_lost(lock, NULL) == REDLOCK_E_LOST;
  (void)succeeded(self, lock, redlock_lock_release(lock));
  self->pairs++;
}

static void section(worker *self, redlock_lock *common) {
  if (succeeded(self, common, redlock_lock_acquire(common, NULL, NULL))) {
    self->two_hold += atomic_fetch_add(&inside, 1) != 0;
    self->sections++;
    (void)atomic_fetch_sub(&inside, 1);
    (void)succeeded(self, common, redlock_lock_release(common));
  }
}

static void drop(worker *self, const char *name) {
  redlock_lock *lock = make_lock(self, name);
  (void)succeeded(self, lock, redlock_lock_acquire(lock, NULL, NULL));
  redlock_lock_free(lock);
  self->freed++;
}

static void release_and_forget(worker *self, redlock_lock *lock) {
  if (succeeded(self, lock, redlock_lock_acquire(lock, NULL, NULL))) {
    self->errors += redlock_lock_release_send(lock) != REDLOCK_OK;
    if (draw(&self->random, 2) == 0) {
      (void)succeeded(self, lock, redlock_lock_release(lock));
    }
    self->forgotten++;
  }
}

/* A handover text is valid for one attach. */
static void hand_over(worker *self, redlock_lock *lock) {
  char text[REDLOCK_HANDOVER_MAX];
  size_t length = 0;
  redlock_options options = auto_extended();
  redlock_lock *attached[2] = {NULL, NULL};
  if (!succeeded(self, lock, redlock_lock_acquire(lock, NULL, NULL))) {
    return;
  }
  self->errors += redlock_lock_detach(lock, text, sizeof text, &length) != REDLOCK_OK;
  for (unsigned i = 0; i < 2; i++) {
    self->errors +=
        redlock_lock_attach(&attached[i], self->client, text, length, &options) != REDLOCK_OK;
  }
  if (self->errors == 0 &&
      succeeded(self, attached[0], redlock_lock_acquire(attached[0], NULL, NULL))) {
    int again = redlock_lock_acquire(attached[1], NULL, NULL);
    self->errors += again != REDLOCK_E_LOST && again != REDLOCK_E_CANCELLED;
    (void)succeeded(self, attached[0], redlock_lock_release(attached[0]));
    self->handed++;
  }
  redlock_lock_free(attached[0]);
  redlock_lock_free(attached[1]);
}

static void nest(worker *self, const char *name) {
  redlock_lock *outer = make_lock(self, name), *inner = make_lock(self, name);
  self->errors += redlock_lock_set_owner(outer, name, strlen(name)) != REDLOCK_OK;
  self->errors += redlock_lock_set_owner(inner, name, strlen(name)) != REDLOCK_OK;
  if (succeeded(self, outer, redlock_lock_acquire(outer, NULL, NULL)) &&
      succeeded(self, inner, redlock_lock_acquire(inner, NULL, NULL))) {
    (void)succeeded(self, outer, redlock_lock_release(outer));
    self->errors += redlock_lock_remaining(inner) == 0;
    (void)succeeded(self, inner, redlock_lock_release(inner));
    self->nested++;
  }
  redlock_lock_free(outer);
  redlock_lock_free(inner);
}

static void *work(void *argument) {
  worker *self = argument;
  char name[16], freed[16], nested[16], handed[16];
  (void)snprintf(name, sizeof name, "own%u", self->number);
  (void)snprintf(freed, sizeof freed, "freed%u", self->number);
  (void)snprintf(nested, sizeof nested, "nested%u", self->number);
  redlock_lock *own = make_lock(self, name), *common = make_lock(self, "common");
  for (unsigned i = 0; self->errors == 0 && !atomic_load(&stop); i++) {
    /* A wake-up may end a hand-over, whose key expires only after a minute. */
    (void)snprintf(handed, sizeof handed, "h%u.%u", self->number, i);
    redlock_lock *once_only = make_lock(self, handed);
    switch (draw(&self->random, 10)) {
    case 0:
    case 1:
      section(self, common);
      break;
    case 2:
      drop(self, freed);
      break;
    case 3:
      release_and_forget(self, own);
      break;
    case 4:
      hand_over(self, once_only);
      break;
    case 5:
      nest(self, nested);
      break;
    default:
      pair(self, own);
      break;
    }
    redlock_lock_free(once_only);
  }
  if (self->errors > 0) {
    atomic_store(&failed, true);
  }
  redlock_lock_free(own);
  redlock_lock_free(common);
  return NULL;
}

/*
 * ------------------------------------------------------------------------------- the main thread
 */

static void count_losses(redlock_client *client, void *data) {
  while (redlock_client_next_lost(client) != NULL) {
    atomic_fetch_add(&lost, 1);
  }
}

static int child_uses_the_client(void *argument) {
  redlock_client *client = argument;
  redlock_lock *lock = new_lock(client, "child");
  int result = redlock_lock_acquire(lock, NULL, NULL);
  if (result == REDLOCK_OK) {
    result = redlock_lock_release(lock);
  }
  free_with_client(lock);
  return result == REDLOCK_OK ? 0 : 1;
}

/* Another client replaces the key, which is a loss. (A deleted key would be backfilled.) */
static void lose_one(redlock_client *client) {
  redlock_options options = auto_extended();
  redlock_lock *lock = new_lock(client, "victim");
  unsigned before = atomic_load(&lost);
  int result = redlock_lock_acquire(lock, &options, NULL);
  assert_ok(lock, result);
  farm_command_all(&five, "SET", "victim", "another", NULL);
  eventually(atomic_load(&lost) > before || atomic_load(&failed));
  redlock_lock_free(lock);
  farm_command_all(&five, "DEL", "victim", NULL);
}

static bool all_was_done(void) {
  unsigned sections = 0, forgotten = 0, handed = 0, nested = 0;
  for (unsigned i = 0; i < THREADS; i++) {
    sections += atomic_load(&workers[i].sections);
    forgotten += atomic_load(&workers[i].forgotten);
    handed += atomic_load(&workers[i].handed);
    nested += atomic_load(&workers[i].nested);
  }
  return sections > 0 && forgotten > 0 && handed > 0 && nested > 0;
}

/* Returns true until the time is over, or on a slow machine until each operation was tried. */
static bool continues(redlock_time until_us) {
  redlock_time now_us = redlock_now();
  return !atomic_load(&failed) &&
         (now_us < until_us || (!all_was_done() && now_us < until_us + EVENTUALLY_US));
}

TEST(threads_use_one_client_at_random) {
  const char *text = getenv("STRESS_SECONDS");
  unsigned seconds = text != NULL ? (unsigned)strtoul(text, NULL, 10) : SECONDS_USUAL;
  redlock_options options = auto_extended();
  options.auto_extend = REDLOCK_NO;
  unsigned threads = running_threads(), forks = 0, losses = 0, wakeups = 0, random = 1;
  redlock_client *client = client_of(&five, 5, &options);
  assert_int_equal(redlock_client_on_lost(client, count_losses, NULL), REDLOCK_OK);
  memset(workers, 0, sizeof workers);
  atomic_store(&stop, false);
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i].client = client;
    workers[i].number = i;
    workers[i].random = i * 7919 + 1;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (redlock_time until_us = redlock_now() + seconds * REDLOCK_SECONDS; continues(until_us);) {
    in_child(child_uses_the_client, client);
    forks++;
    lose_one(client);
    losses++;
    for (unsigned i = draw(&random, 3); i > 0; i--) {
      redlock_client_wakeup(client);
      wakeups++;
      (void)poll(NULL, 0, (int)draw(&random, 10));
    }
  }
  atomic_store(&stop, true);
  worker sum = {0};
  for (unsigned i = 0; i < THREADS; i++) {
    worker *one = &workers[i];
    assert_int_equal(pthread_join(one->thread, NULL), 0);
    if (one->errors != 0) {
      fail_msg("thread %u: %s", i, one->message);
    }
    assert_int_equal(one->two_hold, 0);
    sum.pairs += one->pairs;
    sum.sections += one->sections;
    sum.freed += one->freed;
    sum.forgotten += one->forgotten;
    sum.handed += one->handed;
    sum.nested += one->nested;
    sum.cancelled += one->cancelled;
  }
  assert_int_equal(redlock_client_close(client, EVENTUALLY_US), REDLOCK_OK);
  redlock_client_free(client);
  eventually(running_threads() == threads);
  eventually(farm_count(&five, "common", NULL) == 0 && farm_count(&five, "freed0", NULL) == 0 &&
             farm_count(&five, "nested0", NULL) == 0 && farm_count(&five, "own0", NULL) == 0);
  print_message("%u s: %u pairs, %u sections, %u freed, %u forgotten, %u handed over, %u "
                "nested, %u cancelled by %u wake-ups; %u losses, %u forks\n",
                seconds, sum.pairs, sum.sections, sum.freed, sum.forgotten, sum.handed, sum.nested,
                sum.cancelled, wakeups, losses, forks);
  assert_true(all_was_done());
}

int main(void) {
  return tests_run(
      &(tests_fixture){.start = five_start_threaded, .before = five_reset, .end = five_end});
}
