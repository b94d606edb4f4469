/*
 * One client for many threads: blocking calls at once, forks, frees and wake-ups in the middle.
 *
 * SPDX-License-Identifier: MIT
 *
 * Threads must not fail through cmocka: they count, and the test looks at what they have counted.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "support.h"

#define THREADS_MAX 64

typedef struct worker {
  pthread_t thread;
  redlock_client *client;
  unsigned number;
  unsigned rounds;
  atomic_uint own;    /* pairs on a name of its own */
  unsigned common;    /* sections under the name of all */
  atomic_uint errors; /* what should not have happened */
  unsigned two_hold;  /* another was in its section as well */
  char message[256];  /* of the last error */
} worker;

static worker workers[THREADS_MAX];
static atomic_uint inside; /* sections under the common name */
static atomic_bool stop;

static int reset(void **state) {
  (void)state;
  farm_reset(&five);
  atomic_store(&stop, false);
  return 0;
}

static redlock_options patient(void) {
  redlock_options options = once();
  options.retry_count = 0; /* as many as the wait allows */
  options.wait_us = 600 * REDLOCK_SECONDS;
  options.retry_delay_us = MS(2);
  options.retry_jitter_us = MS(2);
  return options;
}

static void note(worker *self, redlock_lock *lock, int result) {
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

/* One that is dropped while it is held. */
static void drop(worker *self) {
  char name[32];
  (void)snprintf(name, sizeof name, "dropped%u", self->number);
  redlock_lock *lock = make_lock(self, name);
  note(self, lock, redlock_lock_acquire(lock, NULL, NULL));
  redlock_lock_free(lock);
}

static void section(worker *self, redlock_lock *common) {
  note(self, common, redlock_lock_acquire(common, NULL, NULL));
  self->two_hold += atomic_fetch_add(&inside, 1) != 0;
  self->common++;
  (void)atomic_fetch_sub(&inside, 1);
  note(self, common, redlock_lock_release(common));
}

static void *work(void *argument) {
  worker *self = argument;
  char name[32];
  (void)snprintf(name, sizeof name, "own%u", self->number);
  redlock_lock *own = make_lock(self, name);
  redlock_lock *common = make_lock(self, "common");
  for (unsigned i = 0; i < self->rounds && self->errors == 0 && !atomic_load(&stop); i++) {
    redlock_duration left_us = 0;
    note(self, own, redlock_lock_acquire(own, NULL, &left_us));
    self->errors += left_us == 0 || redlock_lock_remaining(own) == 0;
    self->errors += strlen(redlock_lock_token(own)) != REDLOCK_TOKEN_LENGTH;
    if (i % 4 == 0) {
      note(self, own, redlock_lock_extend(own, 0, NULL));
    }
    note(self, own, redlock_lock_release(own));
    self->own++;
    if (i % 16 == self->number % 16) {
      section(self, common);
      drop(self);
    }
  }
  redlock_lock_free(own);
  redlock_lock_free(common);
  return NULL;
}

static redlock_client *begin(unsigned count, unsigned rounds) {
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  memset(workers, 0, sizeof workers);
  for (unsigned i = 0; i < count; i++) {
    workers[i].number = i;
    workers[i].rounds = rounds;
    workers[i].client = client;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  return client;
}

static void finish(redlock_client *client, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
  }
  assert_int_equal(redlock_client_close(client, EVENTUALLY_US), REDLOCK_OK);
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

static void threads_of_one_client_get_their_own_results(unsigned count, unsigned rounds) {
  redlock_client *client = begin(count, rounds);
  finish(client, count);
  for (unsigned i = 0; i < count; i++) {
    assert_int_equal(workers[i].own, rounds);
  }
}

static void eight_threads_share_a_client(void **state) {
  (void)state;
  threads_of_one_client_get_their_own_results(8, 60);
}

static void sixty_four_threads_share_a_client(void **state) {
  (void)state;
  threads_of_one_client_get_their_own_results(64, 20);
}

/* All of them on five connections: the first one's. */
static void threads_share_the_connections(void **state) {
  (void)state;
  redlock_client *client = begin(8, 1000000);
  eventually(workers[7].own > 20);
  for (unsigned node = 0; node < 5; node++) {
    assert_between(farm_connections(&five, node), 1, 2); /* And one for calls. */
  }
  atomic_store(&stop, true);
  finish(client, 8);
}

/* ---------------------------------------------------------------------------------------- forks */

static int child_uses_the_client(void *argument) {
  redlock_client *client = argument;
  redlock_lock *lock = new_lock(client, "child");
  if (redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_OK ||
      redlock_lock_release(lock) != REDLOCK_OK) {
    return 1;
  }
  redlock_lock_free(lock);
  redlock_client_free(client);
  return 0;
}

/* Whatever a thread was doing on the client, a child finds it whole, and the mutex free. */
static void children_are_forked_while_threads_work(void **state) {
  (void)state;
  redlock_client *client = begin(8, 1000000);
  for (unsigned i = 0; i < 20; i++) {
    unsigned before = workers[i % 8].own;
    in_child(child_uses_the_client, client);
    eventually(workers[i % 8].own > before || workers[i % 8].errors > 0);
  }
  atomic_store(&stop, true);
  finish(client, 8);
}

/* --------------------------------------------------------------------------------- a hung leader */

static atomic_bool held_up;
static atomic_bool go_on;

static void hold_up(int number) {
  (void)number;
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

/* Its thread polls for all, and has no mutex: it has slept whenever it was looked at, for a while. */
static void until_it_polls(const call *self) {
  unsigned seen = 0;
  eventually((seen = sleeps(self) ? seen + 1 : 0) >= 20);
}

static int end_call(call *self) {
  eventually(atomic_load(&self->result) != REDLOCK_PENDING);
  assert_int_equal(pthread_join(self->thread, NULL), 0);
  redlock_lock_free(self->lock);
  return atomic_load(&self->result);
}

/* A thread that polls for all is stuck in a handler of the program's. */
static void a_follower_keeps_its_budget_when_its_leader_is_held_up(void **state) {
  (void)state;
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_options brief = patient();
  brief.wait_us = MS(200);
  redlock_lock *held = held_lock(client, "r");
  call leader, follower;
  struct sigaction action = {.sa_handler = hold_up};
  atomic_store(&held_up, false);
  atomic_store(&go_on, false);
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  options.retry_delay_us = 300 * REDLOCK_SECONDS; /* It polls all the time, and has no mutex. */
  begin_call(&leader, client, "r", &options);
  until_it_polls(&leader);
  assert_int_equal(pthread_kill(leader.thread, SIGUSR1), 0);
  eventually(atomic_load(&held_up));
  redlock_time begun_us = stopwatch();
  begin_call(&follower, client, "r", &brief);
  assert_int_equal(end_call(&follower), REDLOCK_E_TAKEN);
  assert_between(follower.ended_us - begun_us, MS(100), MS(1500) + witness_delay_us(begun_us));
  atomic_store(&go_on, true);
  redlock_lock_cancel(leader.lock);
  assert_int_equal(end_call(&leader), REDLOCK_E_CANCELLED);
  redlock_lock_free(held);
  redlock_client_free(client);
}

/* ------------------------------------------------------------------------- leader and followers */

static redlock_client *client_beside_hung_nodes(const redlock_options *options) {
  redlock_client *client = client_of(&five, 5, options);
  warm_up(client);
  for (unsigned i = 2; i < 5; i++) {
    farm_stop(&five, i);
  }
  return client;
}

static void let_nodes_go_on(void) {
  for (unsigned i = 2; i < 5; i++) {
    farm_continue(&five, i);
  }
}

/* The first thread polls for both, and its call ends first. */
static void the_lead_is_handed_on_when_the_leaders_call_has_ended(void **state) {
  (void)state;
  redlock_options brief = once();
  brief.ttl_us = 600 * REDLOCK_SECONDS;
  brief.node_timeout_us = MS(500);
  redlock_options slow = brief;
  slow.node_timeout_us = 300 * REDLOCK_SECONDS;
  redlock_client *client = client_beside_hung_nodes(&slow);
  call leader, follower;
  begin_call(&leader, client, "leader", &brief);
  eventually(farm_count(&five, "leader", NULL) == 2);
  begin_call(&follower, client, "follower", &slow);
  assert_int_equal(end_call(&leader), REDLOCK_E_UNAVAILABLE);
  let_nodes_go_on();
  assert_int_equal(end_call(&follower), REDLOCK_OK); /* By itself it would look after 300 s. */
  redlock_client_free(client);
}

/* The leader polls until the time of its own operation, and another is to be looked at before. */
static void a_leader_looks_after_what_is_due_before_its_own_time(void **state) {
  (void)state;
  redlock_options brief = once();
  brief.ttl_us = 600 * REDLOCK_SECONDS;
  brief.node_timeout_us = MS(600); /* More than the nodes have been silent for. */
  redlock_options slow = brief;
  slow.node_timeout_us = 300 * REDLOCK_SECONDS;
  redlock_client *client = client_beside_hung_nodes(&slow);
  call leader;
  farm_stop(&five, 0); /* No reply wakes the leader by chance. */
  farm_stop(&five, 1);
  begin_call(&leader, client, "leader", &slow);
  until_it_polls(&leader);
  redlock_lock *started = new_lock(client, "started");
  redlock_time begun_us = stopwatch();
  assert_int_equal(redlock_lock_acquire_start(started, &brief), REDLOCK_OK);
  assert_int_equal(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  eventually(redlock_lock_result(started) != REDLOCK_PENDING); /* Asking processes nothing. */
  /* After 3 s the silent connections are given up, and the leader looks by itself. */
  assert_took(begun_us, MS(600), MS(2200));
  assert_int_equal(redlock_lock_result(started), REDLOCK_E_UNAVAILABLE);
  assert_ptr_equal(redlock_client_next_ended(client), started);
  for (unsigned i = 0; i < 5; i++) {
    farm_continue(&five, i);
  }
  (void)end_call(&leader); /* It may have been given up on a slow machine, with its connections. */
  redlock_lock_free(started);
  redlock_client_free(client);
}

/* --------------------------------------------------------------------------------------- wake-up */

static void a_wakeup_ends_all_blocking_calls_and_gives_back_what_they_had(void **state) {
  (void)state;
  redlock_options options = patient();
  options.node_timeout_us = 300 * REDLOCK_SECONDS;
  options.ttl_us = 600 * REDLOCK_SECONDS;
  redlock_client *client = client_of(&five, 5, &options);
  call calls[8];
  warm_up(client);
  for (unsigned i = 2; i < 5; i++) {
    farm_stop(&five, i);
  }
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
  for (unsigned i = 2; i < 5; i++) {
    farm_continue(&five, i);
  }
  redlock_lock *after = held_lock(client, "after"); /* A call that begins later is not ended. */
  redlock_lock_free(after);
  redlock_client_free(client);
}

static redlock_client *woken;

static void wake_up(int number) {
  (void)number;
  redlock_client_wakeup(woken);
}

/* In the handler of the only thread: the program's own Ctrl-C. */
static void a_signal_handler_ends_a_waiting_acquire(void **state) {
  (void)state;
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *held = held_lock(client, "r");
  redlock_lock *lock = new_lock(client, "r");
  struct sigaction action = {.sa_handler = wake_up};
  /* Again and again, for the first may come before the call. */
  struct itimerval soon = {{0, 30000}, {0, 30000}}, never = {{0, 0}, {0, 0}};
  options.retry_delay_us = 300 * REDLOCK_SECONDS;
  woken = client;
  assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
  assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
  assert_int_equal(redlock_lock_acquire(lock, &options, NULL), REDLOCK_E_CANCELLED);
  assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
  assert_ok(held, redlock_lock_release(held));
  redlock_lock_free(held);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void close_ends_the_calls_of_other_threads(void **state) {
  (void)state;
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
  redlock_lock_free(held);
  redlock_client_free(client);
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

/* What one of them has left to another is sent, and heard, while the client closes. */
static void close_ends_when_all_is_answered_and_not_later(void **state) {
  (void)state;
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

/* Of two threads on one lock the second is told, and the first is not disturbed. */
static void a_lock_in_two_threads_is_busy(void **state) {
  (void)state;
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *held = held_lock(client, "r");
  call first;
  begin_call(&first, client, "r", &options);
  eventually(redlock_lock_result(first.lock) == REDLOCK_PENDING);
  assert_int_equal(redlock_lock_acquire(first.lock, NULL, NULL), REDLOCK_E_BUSY);
  assert_int_equal(redlock_lock_extend(first.lock, 0, NULL), REDLOCK_E_BUSY);
  assert_int_equal(redlock_lock_release(first.lock), REDLOCK_E_BUSY);
  assert_int_equal(redlock_lock_acquire_start(first.lock, NULL), REDLOCK_E_BUSY);
  assert_ok(held, redlock_lock_release(held));
  assert_int_equal(end_call(&first), REDLOCK_OK);
  redlock_lock_free(held);
  redlock_client_free(client);
}

/* Another thread may cancel what a thread waits for. */
static void a_cancel_from_another_thread_ends_the_call(void **state) {
  (void)state;
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *held = held_lock(client, "r");
  call first, second;
  begin_call(&first, client, "r", &options);
  begin_call(&second, client, "r", &options);
  eventually(redlock_lock_result(first.lock) == REDLOCK_PENDING);
  eventually(redlock_lock_result(second.lock) == REDLOCK_PENDING);
  redlock_lock_cancel(second.lock);
  assert_int_equal(end_call(&second), REDLOCK_E_CANCELLED);
  assert_int_equal(redlock_lock_result(first.lock), REDLOCK_PENDING);
  assert_ok(held, redlock_lock_release(held));
  assert_int_equal(end_call(&first), REDLOCK_OK);
  redlock_lock_free(held);
  redlock_client_free(client);
}

/* The thread polls for all, until a time that the cancel has made too late. */
static void a_cancel_ends_the_call_of_the_thread_that_leads(void **state) {
  (void)state;
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  call leader;
  warm_up(client);
  for (unsigned i = 0; i < 5; i++) {
    farm_stop(&five, i); /* No reply wakes the leader by chance. */
  }
  begin_call(&leader, client, "r", &options);
  until_it_polls(&leader);
  redlock_time begun_us = stopwatch();
  redlock_lock_cancel(leader.lock);
  assert_int_equal(end_call(&leader), REDLOCK_E_CANCELLED);
  /* After 3 s the silent connections are given up, and the leader looks by itself. */
  assert_between(leader.ended_us - begun_us, 0, MS(2000) + witness_delay_us(begun_us));
  for (unsigned i = 0; i < 5; i++) {
    farm_continue(&five, i);
  }
  redlock_client_free(client);
}

static void *process(void *client) {
  while (!atomic_load(&stop)) {
    (void)redlock_client_process(client, NULL, 0);
  }
  return NULL;
}

/* What the leader polls for is gone when it comes to look: a loop of the program's has read it. */
static void a_call_returns_when_another_thread_has_read_its_answers(void **state) {
  (void)state;
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
  assert_true(longest_us < EVENTUALLY_US); /* By itself it would look after 300 s. */
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void *look(void *lock) {
  while (!atomic_load(&stop)) {
    (void)redlock_lock_token(lock);
    (void)redlock_lock_remaining(lock);
    (void)redlock_lock_deadline(lock);
    (void)redlock_lock_margin(lock);
    (void)redlock_lock_lost(lock, NULL);
  }
  return NULL;
}

/* Under TSan: both are lent, and may be the first that is. */
static void the_message_may_be_asked_for_while_another_thread_looks(void **state) {
  (void)state;
  redlock_options options = patient();
  redlock_client *client = client_of(&five, 5, &options);
  redlock_lock *lock = held_lock(client, "r");
  pthread_t other;
  assert_int_equal(pthread_create(&other, NULL, look, lock), 0);
  for (unsigned i = 0; i < 500; i++) {
    assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_HELD);
    assert_contains(redlock_lock_message(lock), "held");
  }
  atomic_store(&stop, true);
  assert_int_equal(pthread_join(other, NULL), 0);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/* What redlock.h says; sanitizers want more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK (1024 * 1024)
#else
#define STACK (48 * 1024)
#endif

/* Returns the number of the first call that did not end as it should, or 0. */
static uintptr_t use_all_of_it(redlock_client *client) {
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
  return (void *)use_all_of_it(client);
}

static void calls_have_room_in_a_small_stack(void **state) {
  (void)state;
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

#define TEST(name) cmocka_unit_test_setup(name, reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(eight_threads_share_a_client),
      TEST(sixty_four_threads_share_a_client),
      TEST(threads_share_the_connections),
      TEST(children_are_forked_while_threads_work),
      TEST(a_follower_keeps_its_budget_when_its_leader_is_held_up),
      TEST(the_lead_is_handed_on_when_the_leaders_call_has_ended),
      TEST(a_leader_looks_after_what_is_due_before_its_own_time),
      TEST(a_wakeup_ends_all_blocking_calls_and_gives_back_what_they_had),
      TEST(a_signal_handler_ends_a_waiting_acquire),
      TEST(close_ends_the_calls_of_other_threads),
      TEST(close_ends_when_all_is_answered_and_not_later),
      TEST(a_lock_in_two_threads_is_busy),
      TEST(a_cancel_from_another_thread_ends_the_call),
      TEST(a_cancel_ends_the_call_of_the_thread_that_leads),
      TEST(a_call_returns_when_another_thread_has_read_its_answers),
      TEST(the_message_may_be_asked_for_while_another_thread_looks),
      TEST(calls_have_room_in_a_small_stack),
  };
  return cmocka_run_group_tests_name("a client and threads", tests, five_start, five_end);
}
