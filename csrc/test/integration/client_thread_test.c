/*
 * Clients in many threads: blocking calls at once, forks, frees and wake-ups.
 *
 * SPDX-License-Identifier: MIT
 *
 * Threads must not fail through cmocka. They count errors, which the test checks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "support.h"

#define THREADS_MAX 64

typedef struct worker {
  pthread_t thread;
  redlock_client *client; /* NULL: the thread makes its own */
  unsigned number;
  unsigned rounds;
  atomic_uint own;    /* acquires and releases of its own lock */
  unsigned common;    /* critical sections under the common lock */
  atomic_uint errors; /* unexpected results */
  unsigned two_hold;  /* critical sections with another thread inside */
  char message[256];  /* of the last error */
} worker;

static worker workers[THREADS_MAX];
static atomic_uint inside; /* threads in the critical section */
static atomic_bool stop;

static int reset(void **state) {
  farm_reset(&five);
  atomic_store(&stop, false);
  return 0;
}

static redlock_options patient(void) {
  redlock_options options = once();
  options.retry_count = 0; /* unlimited within the wait */
  options.wait_us = 600 * REDLOCK_SECONDS;
  options.retry_delay_us = MS(2);
  options.retry_jitter_us = MS(2);
  return options;
}

static void check_result(worker *self, redlock_lock *lock, int result) {
  if (result != REDLOCK_OK) {
    self->errors++;
    (void)snprintf(self->message, sizeof self->message, "%s", redlock_lock_message(lock));
  }
}

static redlock_lock *make_lock(worker *self, const char *name) {
  redlock_lock *lock = NULL;
  self->errors += redlock_lock_new(&lock, self->client, name, strlen(name), NULL) != REDLOCK_OK;
  return lock;
}

/* Frees a lock while it is held. */
static void drop(worker *self) {
  char name[32];
  (void)snprintf(name, sizeof name, "dropped%u", self->number);
  redlock_lock *lock = make_lock(self, name);
  check_result(self, lock, redlock_lock_acquire(lock, NULL, NULL));
  redlock_lock_free(lock);
}

static void section(worker *self, redlock_lock *common) {
  check_result(self, common, redlock_lock_acquire(common, NULL, NULL));
  self->two_hold += atomic_fetch_add(&inside, 1) != 0;
  self->common++;
  (void)atomic_fetch_sub(&inside, 1);
  check_result(self, common, redlock_lock_release(common));
}

/*
 * Makes a client of its own for a thread. One node is a name, so that look-ups run in parallel,
 * too.
 */
static redlock_client *make_client(worker *self) {
  redlock_client *client = NULL;
  redlock_options options = patient();
  redlock_settings settings = {.options = &options};
  char local[64];
  (void)snprintf(local, sizeof local, "localhost:%d", farm_client_port(&five, 2));
  const char *addresses[] = {five.nodes[0].address, five.nodes[1].address, local};
  if (farm_over_tls != NULL) {
    farm_over_tls->fill(&settings);
  }
  self->errors += redlock_client_new(&client, &settings, NULL, 0) != REDLOCK_OK;
  for (unsigned i = 0; i < 3; i++) {
    self->errors += redlock_client_add(client, addresses[i], NULL, 0) != REDLOCK_OK;
  }
  return client;
}

static void *work(void *argument) {
  worker *self = argument;
  redlock_client *client = self->client == NULL ? make_client(self) : NULL;
  self->client = client != NULL ? client : self->client;
  char name[32];
  (void)snprintf(name, sizeof name, "own%u", self->number);
  redlock_lock *own = make_lock(self, name);
  redlock_lock *common = make_lock(self, "common");
  for (unsigned i = 0; i < self->rounds && self->errors == 0 && !atomic_load(&stop); i++) {
    redlock_duration left_us = 0;
    check_result(self, own, redlock_lock_acquire(own, NULL, &left_us));
    self->errors += left_us == 0 || redlock_lock_remaining(own) == 0;
    self->errors += strlen(redlock_lock_token(own)) != REDLOCK_TOKEN_LENGTH;
    if (i % 4 == 0) {
      check_result(self, own, redlock_lock_extend(own, 0, NULL));
    }
    check_result(self, own, redlock_lock_release(own));
    self->own++;
    if (i % 16 == self->number % 16) {
      section(self, common);
      drop(self);
    }
  }
  redlock_lock_free(own);
  redlock_lock_free(common);
  redlock_client_free(client);
  return NULL;
}

static void begin_workers(redlock_client *client, unsigned count, unsigned rounds) {
  memset(workers, 0, sizeof workers);
  for (unsigned i = 0; i < count; i++) {
    workers[i].number = i;
    workers[i].rounds = rounds;
    workers[i].client = client;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
}

static redlock_client *begin(unsigned count, unsigned rounds) {
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  begin_workers(client, count, rounds);
  return client;
}

static void finish(redlock_client *client, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
  }
  if (client != NULL) {
    assert_int_equal(redlock_client_close(client, EVENTUALLY_US), REDLOCK_OK);
  }
  redlock_client_free(client);
  for (unsigned i = 0; i < count; i++) {
    if (workers[i].errors != 0) {
      fail_msg("thread %u: %s", i, workers[i].message);
    }
    assert_int_equal(workers[i].two_hold, 0);
  }
  eventually(farm_count(&five, "common", NULL) == 0);
  for (unsigned i = 0; i < count; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "dropped%u", i);
    eventually(farm_count(&five, name, NULL) == 0);
  }
}

TEST(threads_get_their_own_results) {
  static const struct {
    unsigned threads, rounds;
    bool shared; /* one client */
  } cases[] = {{8, 60, true}, {64, 20, true}, {4, 100, false}};
  for (unsigned i = 0; i < 3; i++) {
    redlock_options options = patient();
    redlock_client *client = cases[i].shared ? client_of(&five, 5, &options) : NULL;
    begin_workers(client, cases[i].threads, cases[i].rounds);
    finish(client, cases[i].threads);
    for (unsigned k = 0; k < cases[i].threads; k++) {
      assert_int_equal(workers[k].own, cases[i].rounds);
    }
  }
}

TEST(threads_share_connections) {
  redlock_client *client = begin(8, 1000000);
  eventually(workers[7].own > 20);
  for (unsigned node = 0; node < 5; node++) { /* One may be a subscriber. */
    unsigned connections = 0;
    eventually((connections = farm_connections(&five, node)) >= 1 && connections <= 2);
  }
  atomic_store(&stop, true);
  finish(client, 8);
}

/*
 * --------------------------------------------------------------------------------- a hung poller
 */

static atomic_bool held_up;
static atomic_bool go_on;

static void hold_up(int number) {
  atomic_store(&held_up, true);
  while (!atomic_load(&go_on)) {
    (void)poll(NULL, 0, 1);
  }
}

typedef struct call {
  pthread_t thread;
  redlock_lock *lock;
  const redlock_options *options;
  atomic_int result;
  atomic_int thread_id;
  redlock_time ended_us;
} call;

static void *acquire(void *argument) {
  call *self = argument;
  atomic_store(&self->thread_id, (int)syscall(SYS_gettid));
  int result = redlock_lock_acquire(self->lock, self->options, NULL);
  self->ended_us = redlock_now();
  atomic_store(&self->result, result);
  return NULL;
}

static void begin_call(call *self, redlock_client *client, const char *name,
                       const redlock_options *options) {
  self->lock = new_lock(client, name);
  self->options = options;
  atomic_store(&self->result, REDLOCK_PENDING);
  atomic_store(&self->thread_id, 0);
  assert_int_equal(pthread_create(&self->thread, NULL, acquire, self), 0);
}

static bool sleeps(const call *self) {
  char path[64], text[512] = "";
  (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&self->thread_id));
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    return false;
  }
  (void)fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  const char *state = strrchr(text, ')');
  return state != NULL && state[1] == ' ' && state[2] == 'S';
}

/*
 * Waits until the thread polls for all threads, without the mutex: it was asleep in twenty samples.
 */
static void until_polling(const call *self) {
  unsigned seen = 0;
  eventually((seen = sleeps(self) ? seen + 1 : 0) >= 20);
}

static int end_call(call *self) {
  eventually(atomic_load(&self->result) != REDLOCK_PENDING);
  assert_int_equal(pthread_join(self->thread, NULL), 0);
  redlock_lock_free(self->lock);
  return atomic_load(&self->result);
}

/* The poller is stuck in a signal handler of the program. */
TEST(sleeper_keeps_its_budget_when_its_poller_stalls) {
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_options brief = patient();
  brief.wait_us = MS(200);
  redlock_lock *held = held_lock(client, "r");
  call poller, sleeper;
  struct sigaction action = {.sa_handler = hold_up};
  atomic_store(&held_up, false);
  atomic_store(&go_on, false);
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  options.retry_delay_us = 300 * REDLOCK_SECONDS; /* It polls, without the mutex. */
  begin_call(&poller, client, "r", &options);
  until_polling(&poller);
  assert_int_equal(pthread_kill(poller.thread, SIGUSR1), 0);
  eventually(atomic_load(&held_up));
  redlock_time begun_us = stopwatch();
  begin_call(&sleeper, client, "r", &brief);
  assert_int_equal(end_call(&sleeper), REDLOCK_E_TAKEN);
  assert_between(sleeper.ended_us - begun_us, MS(100), MS(1500) + witness_delay_us(begun_us));
  atomic_store(&go_on, true);
  redlock_lock_cancel(poller.lock);
  assert_int_equal(end_call(&poller), REDLOCK_E_CANCELLED);
  free_with_client(held);
}

/* -------------------------------------------------------------------------- poller and sleepers */

/* Makes a client and stops all nodes but the first |running|. */
static redlock_client *client_with_hung_nodes(const redlock_options *options, unsigned running) {
  redlock_client *client = client_of(&five, 5, options);
  warm_up(client);
  for (unsigned i = running; i < 5; i++) {
    farm_stop(&five, i);
  }
  return client;
}

static void continue_nodes(void) {
  farm_each(&five, 0, 5, farm_continue);
}

/* The call of the poller ends first. */
TEST(sleeper_polls_when_the_call_of_the_poller_ends) {
  redlock_options brief = once();
  brief.ttl_us = 600 * REDLOCK_SECONDS;
  brief.node_timeout_us = MS(500);
  redlock_options slow = brief;
  slow.node_timeout_us = 300 * REDLOCK_SECONDS;
  redlock_client *client = client_with_hung_nodes(&slow, 2);
  call poller, sleeper;
  begin_call(&poller, client, "poller", &brief);
  /* On a slow machine the call may have ended, and its keys are gone. */
  eventually(farm_count(&five, "poller", NULL) == 2 ||
             atomic_load(&poller.result) != REDLOCK_PENDING);
  begin_call(&sleeper, client, "sleeper", &slow);
  assert_int_equal(end_call(&poller), REDLOCK_E_UNAVAILABLE);
  continue_nodes();
  assert_int_equal(end_call(&sleeper), REDLOCK_OK); /* By itself it would wake after 300 s. */
  redlock_client_free(client);
}

/* The poller polls until the time of its own operation; another operation is due earlier. */
TEST(poller_handles_earlier_operations) {
  redlock_options brief = once();
  brief.ttl_us = 600 * REDLOCK_SECONDS;
  brief.node_timeout_us = MS(600); /* more than the nodes have been silent */
  redlock_options slow = brief;
  slow.node_timeout_us = 300 * REDLOCK_SECONDS;
  redlock_client *client = client_with_hung_nodes(&slow, 0); /* No reply wakes the poller. */
  call poller;
  begin_call(&poller, client, "poller", &slow);
  until_polling(&poller);
  redlock_lock *started = new_lock(client, "started");
  redlock_time begun_us = stopwatch();
  assert_int_equal(redlock_lock_acquire_start(started, &brief), REDLOCK_OK);
  assert_int_equal(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  eventually(redlock_lock_result(started) !=
             REDLOCK_PENDING); /* Reading the result processes nothing. */
  /* After 3 s the silent connections would end, and wake the poller. */
  assert_took(begun_us, MS(600), MS(2200));
  assert_int_equal(redlock_lock_result(started), REDLOCK_E_UNAVAILABLE);
  assert_ptr_equal(redlock_client_next_ended(client), started);
  continue_nodes();
  (void)end_call(&poller); /* On a slow machine it may have ended with its connections. */
  redlock_lock_free(started);
  redlock_client_free(client);
}

/*
 * --------------------------------------------------------------------------------------- wake-up
 */

TEST(wakeup_ends_all_blocking_calls_and_releases_their_locks) {
  redlock_options options = patient();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  redlock_client *client = client_with_hung_nodes(&options, 2);
  call calls[8];
  for (unsigned i = 0; i < 8; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "w%u", i);
    begin_call(&calls[i], client, name, &options);
    eventually(farm_count(&five, name, NULL) >= 2);
  }
  redlock_client_wakeup(client);
  for (unsigned i = 0; i < 8; i++) {
    assert_int_equal(end_call(&calls[i]), REDLOCK_E_CANCELLED);
  }
  for (unsigned i = 0; i < 8; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "w%u", i);
    eventually(farm_count(&five, name, NULL) == 0);
  }
  continue_nodes();
  redlock_lock *after = held_lock(client, "after"); /* A later call is not ended. */
  redlock_lock_free(after);
  redlock_client_free(client);
}

static redlock_client *woken;

static void wake_up(int number) {
  redlock_client_wakeup(woken);
}

/* As in the Ctrl-C handler of a program with one thread. */
TEST(signal_handler_ends_a_waiting_acquire) {
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *held = held_lock(client, "r");
  redlock_lock *lock = new_lock(client, "r");
  struct sigaction action = {.sa_handler = wake_up};
  /* repeated, because the first signal may come before the call */
  struct itimerval soon = {{0, 30000}, {0, 30000}}, never = {{0, 0}, {0, 0}};
  options.retry_delay_us = 300 * REDLOCK_SECONDS;
  woken = client;
  assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
  assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
  assert_int_equal(redlock_lock_acquire(lock, &options, NULL), REDLOCK_E_CANCELLED);
  assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
  assert_ok(held, redlock_lock_release(held));
  redlock_lock_free(held);
  free_with_client(lock);
}

TEST(close_ends_calls_of_other_threads) {
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *held = held_lock(client, "r");
  call calls[4];
  for (unsigned i = 0; i < 4; i++) {
    begin_call(&calls[i], client, "r", &options);
  }
  (void)poll(NULL, 0, 20);
  assert_int_equal(redlock_client_close(client, EVENTUALLY_US), REDLOCK_OK);
  for (unsigned i = 0; i < 4; i++) {
    assert_int_equal(end_call(&calls[i]), REDLOCK_E_CLOSED);
  }
  assert_int_equal(farm_count(&five, "r", NULL), 0);
  free_with_client(held);
}

static void *work_until_closed(void *argument) {
  worker *self = argument;
  char name[32];
  (void)snprintf(name, sizeof name, "own%u", self->number);
  redlock_lock *own = make_lock(self, name);
  while (redlock_lock_acquire(own, NULL, NULL) == REDLOCK_OK &&
         redlock_lock_release(own) == REDLOCK_OK) {
    atomic_fetch_add(&self->own, 1);
  }
  redlock_lock_free(own);
  return NULL;
}

/* A thread may leave sending and receiving to another thread while the client closes. */
TEST(close_ends_as_soon_as_all_is_answered) {
  redlock_options options = patient();
  for (unsigned round = 0; round < 12; round++) {
    redlock_client *client = client_of(&five, 5, &options);
    memset(workers, 0, sizeof workers);
    for (unsigned i = 0; i < THREADS_MAX; i++) {
      workers[i] = (worker){.number = i, .client = client};
      assert_int_equal(pthread_create(&workers[i].thread, NULL, work_until_closed, &workers[i]), 0);
    }
    (void)poll(NULL, 0, 3 + (int)(round % 20));
    redlock_time began_us = redlock_now();
    assert_int_equal(redlock_client_close(client, 2 * EVENTUALLY_US), REDLOCK_OK);
    redlock_duration took_us = redlock_now() - began_us;
    for (unsigned i = 0; i < THREADS_MAX; i++) {
      assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    }
    redlock_client_free(client);
    assert_between(took_us, 0, EVENTUALLY_US);
  }
}

/* A second thread on a lock gets BUSY, but may cancel the call of the first. */
TEST(second_thread_may_only_cancel) {
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *held = held_lock(client, "r");
  call first, second;
  begin_call(&first, client, "r", &options);
  begin_call(&second, client, "r", &options);
  eventually(redlock_lock_result(first.lock) == REDLOCK_PENDING);
  eventually(redlock_lock_result(second.lock) == REDLOCK_PENDING);
  assert_int_equal(redlock_lock_acquire(first.lock, NULL, NULL), REDLOCK_E_BUSY);
  assert_int_equal(redlock_lock_extend(first.lock, 0, NULL), REDLOCK_E_BUSY);
  assert_int_equal(redlock_lock_release(first.lock), REDLOCK_E_BUSY);
  assert_int_equal(redlock_lock_acquire_start(first.lock, NULL), REDLOCK_E_BUSY);
  redlock_lock_cancel(second.lock);
  assert_int_equal(end_call(&second), REDLOCK_E_CANCELLED);
  assert_int_equal(redlock_lock_result(first.lock), REDLOCK_PENDING);
  assert_ok(held, redlock_lock_release(held));
  assert_int_equal(end_call(&first), REDLOCK_OK);
  free_with_client(held);
}

/* The poller polls until a time that the cancel has made too late. */
TEST(cancel_ends_the_call_of_the_poller) {
  redlock_options options = patient();
  redlock_client *client = client_with_hung_nodes(&options, 0); /* No reply wakes the poller. */
  call poller;
  begin_call(&poller, client, "r", &options);
  until_polling(&poller);
  redlock_time begun_us = stopwatch();
  redlock_lock_cancel(poller.lock);
  assert_int_equal(end_call(&poller), REDLOCK_E_CANCELLED);
  /* After 3 s the silent connections would end, and wake the poller. */
  assert_between(poller.ended_us - begun_us, 0, MS(2000) + witness_delay_us(begun_us));
  continue_nodes();
  redlock_client_free(client);
}

static void *process(void *client) {
  while (!atomic_load(&stop)) {
    (void)redlock_client_process(client, NULL, 0);
  }
  return NULL;
}

/* A loop of the program has read the replies for which the poller polls. */
TEST(call_returns_when_another_thread_has_read_its_replies) {
  redlock_options options = patient();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  redlock_client *client = client_of(&five, 5, &options);
  pthread_t loop;
  warm_up(client);
  assert_int_equal(pthread_create(&loop, NULL, process, client), 0);
  redlock_lock *lock = new_lock(client, "r");
  redlock_duration longest_us = 0;
  for (unsigned i = 0; i < 200 && longest_us < EVENTUALLY_US; i++) {
    redlock_time begun_us = redlock_now();
    assert_ok(lock, redlock_lock_acquire(lock, NULL, NULL));
    assert_ok(lock, redlock_lock_release(lock));
    redlock_duration took_us = redlock_now() - begun_us;
    longest_us = took_us > longest_us ? took_us : longest_us;
  }
  atomic_store(&stop, true);
  assert_int_equal(pthread_join(loop, NULL), 0);
  assert_true(longest_us < EVENTUALLY_US); /* By itself it would wake after 300 s. */
  free_with_client(lock);
}

static void *read_lock(void *lock) {
  while (!atomic_load(&stop)) {
    (void)redlock_lock_token(lock);
    (void)redlock_lock_remaining(lock);
    (void)redlock_lock_deadline(lock);
    (void)redlock_lock_margin(lock);
    (void)redlock_lock_lost(lock, NULL);
  }
  return NULL;
}

/* For TSan: both threads borrow strings of the lock, maybe for the first time. */
TEST(threads_may_read_one_lock) {
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = held_lock(client, "r");
  pthread_t other;
  assert_int_equal(pthread_create(&other, NULL, read_lock, lock), 0);
  for (unsigned i = 0; i < 500; i++) {
    assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_HELD);
    assert_contains(redlock_lock_message(lock), "held");
  }
  atomic_store(&stop, true);
  assert_int_equal(pthread_join(other, NULL), 0);
  free_with_client(lock);
}

/* redlock.h promises this stack; sanitizers need more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK (1024 * 1024)
#else
#define STACK (48 * 1024)
#endif

/* Returns the number of the first step that failed, or 0. */
static uintptr_t use_whole_interface(redlock_client *client) {
  static char text[REDLOCK_HANDOVER_MAX];
  static redlock_resource many[REDLOCK_RESOURCES_MAX];
  static char names[REDLOCK_RESOURCES_MAX];
  redlock_lock *lock;
  redlock_lock *other;
  size_t length;
  redlock_options options = {.auto_extend = REDLOCK_YES};
  for (unsigned i = 0; i < REDLOCK_RESOURCES_MAX; i++) {
    names[i] = (char)('0' + i);
    many[i] = (redlock_resource){&names[i], 1};
  }
  if (redlock_lock_new(&lock, client, "r", 1, &options) != REDLOCK_OK ||
      redlock_lock_new_many(&other, client, many, REDLOCK_RESOURCES_MAX, NULL) != REDLOCK_OK) {
    return 1;
  }
  if (redlock_lock_acquire(other, NULL, NULL) != REDLOCK_OK ||
      redlock_lock_release(other) != REDLOCK_OK) {
    return 2;
  }
  redlock_lock_free(other);
  if (redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_OK ||
      redlock_lock_extend(lock, 0, NULL) != REDLOCK_OK ||
      redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_E_HELD ||
      redlock_lock_message(lock)[0] == '\0') {
    return 3;
  }
  if (redlock_lock_detach(lock, text, sizeof text, &length) != REDLOCK_OK ||
      redlock_lock_attach(&other, client, text, length, NULL) != REDLOCK_OK ||
      redlock_lock_acquire(other, NULL, NULL) != REDLOCK_OK) {
    return 4;
  }
  if (redlock_lock_inspect(lock) != REDLOCK_OK ||
      redlock_lock_force_release(lock, NULL, REDLOCK_TOKEN_ANY) != REDLOCK_OK) {
    return 5;
  }
  (void)redlock_lock_release_send(other);
  redlock_lock_free(other);
  redlock_lock_free(lock);
  return redlock_client_close(client, EVENTUALLY_US) == REDLOCK_OK ? 0 : 6;
}

static void *with_a_small_stack(void *client) {
  return (void *)use_whole_interface(client);
}

TEST(calls_need_a_small_stack) {
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  pthread_attr_t attributes;
  pthread_t thread;
  void *wrong;
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
  assert_int_equal(pthread_create(&thread, &attributes, with_a_small_stack, client), 0);
  assert_int_equal(pthread_join(thread, &wrong), 0);
  assert_null(wrong);
  (void)pthread_attr_destroy(&attributes);
  redlock_client_free(client);
}

int main(void) {
  return tests_run(&(tests_fixture){.start = five_start, .before = reset, .end = five_end});
}
