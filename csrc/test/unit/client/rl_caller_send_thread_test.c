/*
 * Operations that are left to arriving threads: they end, are sent in time, and fail no other
 * thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_caller.h"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "loopback.h"
#include "rl_test.h"

static atomic_bool no_entropy;

bool __real_rl_entropy_fill(unsigned char *bytes, size_t length);
bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length);

bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length) {
  return !atomic_load(&no_entropy) && __real_rl_entropy_fill(bytes, length);
}

/* A missing thread does not return from its sleep, as in a signal handler that runs for long. */
static _Thread_local bool is_held_up;
static atomic_bool let_go;

bool __real_rl_semaphore_wait(rl_semaphore *semaphore, redlock_time until_us);
bool __wrap_rl_semaphore_wait(rl_semaphore *semaphore, redlock_time until_us);

bool __wrap_rl_semaphore_wait(rl_semaphore *semaphore, redlock_time until_us) {
  bool posted = __real_rl_semaphore_wait(semaphore, is_held_up ? REDLOCK_NEVER : until_us);
  while (is_held_up && !atomic_load(&let_go)) {
    (void)poll(NULL, 0, 1);
  }
  return posted;
}

/* As in a signal handler of the poller. */
static atomic_bool hold_poller_up;

int __real_rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us);
int __wrap_rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us);

int __wrap_rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us) {
  int ready = __real_rl_poll_until(fds, count, until_us);
  while (atomic_load(&hold_poller_up)) {
    (void)poll(NULL, 0, 1);
  }
  return ready;
}

/* Runs between two readings of the clock, after an operation was left to arriving threads. */
static _Thread_local redlock_client *wakes_up;

redlock_time __real_redlock_now(void);
redlock_time __wrap_redlock_now(void);

redlock_time __wrap_redlock_now(void) {
  if (wakes_up != NULL && wakes_up->callers.unsent_operations) {
    redlock_client_wakeup(wakes_up);
    wakes_up = NULL;
  }
  return __real_redlock_now();
}

/* Without notifications, which would wake it. */
static redlock_client *make_client(const loopback *farm) {
  redlock_client *client;
  redlock_options options = {.node_timeout_us = 60 * SECONDS,
                             .ttl_us = 600 * SECONDS,
                             .notify = REDLOCK_NO,
                             .retry_count = REDLOCK_RETRIES_NONE};
  redlock_settings settings = {.options = &options};
  assert_error(redlock_client_new(&client, &settings, NULL, 0), REDLOCK_OK);
  for (unsigned i = 0; farm != NULL && i < farm->count; i++) {
    assert_error(redlock_client_add(client, farm->nodes[i].address, NULL, 0), REDLOCK_OK);
  }
  return client;
}

/* It retries after a minute. */
static redlock_lock *make_lock(redlock_client *client, const char *name, bool patient) {
  redlock_lock *lock;
  redlock_options options = {.retry_delay_us = 60 * SECONDS, .wait_us = 200 * SECONDS};
  assert_error(redlock_lock_new(&lock, client, name, strlen(name), patient ? &options : NULL),
               REDLOCK_OK);
  return lock;
}

typedef struct call {
  pthread_t thread;
  redlock_client *client;
  redlock_lock *lock;
  bool held_up;
  bool wakes_up; /* all threads, when it is about to sleep */
  atomic_int result;
} call;

static void *acquire(void *argument) {
  call *self = argument;
  is_held_up = self->held_up;
  wakes_up = self->wakes_up ? self->client : NULL;
  int result = redlock_lock_acquire(self->lock, NULL, NULL);
  is_held_up = false;
  atomic_store(&self->result, result);
  return NULL;
}

static void begin(call *self) {
  atomic_store(&self->result, REDLOCK_PENDING);
  assert_int_equal(pthread_create(&self->thread, NULL, acquire, self), 0);
}

static int result_of(call *self) {
  return atomic_load(&self->result);
}

/* It polls, is not poked, and has nothing to do for the next 20 s. */
static bool polls(const call *self) {
  redlock_client *client = self->client;
  rl_client_enter(client);
  const rl_caller *caller = rl_caller_of(self->lock);
  bool is_so = caller != NULL && client->callers.poller == caller && client->callers.polling &&
               !client->callers.event_is_set &&
               client->callers.wants.deadline_us > redlock_now() + 20 * SECONDS;
  for (unsigned i = 0; i < client->core.node_count; i++) {
    is_so = is_so && client->core.nodes[i]->link.phase == RL_LINK_UP &&
            client->core.nodes[i]->link.outstanding_count == 0;
  }
  rl_client_leave(client);
  return is_so;
}

static bool sleeps(const call *self) {
  rl_client_enter(self->client);
  const rl_caller *caller = rl_caller_of(self->lock);
  bool is_so = caller != NULL && caller->sleeps && !caller->woken;
  rl_client_leave(self->client);
  return is_so;
}

/* A thread that waits for a held lock: it polls, and has nothing to do for a minute. */
typedef struct scene {
  loopback *farm;
  redlock_client *client;
  redlock_lock *held;
  call poller;
} scene;

static void open_scene(scene *self) {
  atomic_store(&let_go, false);
  atomic_store(&no_entropy, false);
  self->farm = loopback_new(3, LOOPBACK_TCP);
  loopback_run(self->farm);
  self->client = make_client(self->farm);
  self->held = make_lock(self->client, "held", false);
  assert_error(redlock_lock_acquire(self->held, NULL, NULL), REDLOCK_OK);
  self->poller = (call){.client = self->client, .lock = make_lock(self->client, "held", true)};
  begin(&self->poller);
  eventually(polls(&self->poller));
}

static void close_scene(scene *self) {
  redlock_lock_cancel(self->poller.lock);
  assert_int_equal(pthread_join(self->poller.thread, NULL), 0);
  redlock_lock_free(self->poller.lock);
  redlock_lock_free(self->held);
  redlock_client_free(self->client);
  assert_true(loopback_end(self->farm));
}

/* A thread is woken and does not arrive, or has arrived. */
static void let_one_come(redlock_client *client, bool comes) {
  rl_client_enter(client);
  client->callers.arriving = comes;
  rl_client_leave(client);
}

TEST(bytes_are_sent_although_a_woken_thread_is_missing) {
  scene all;
  open_scene(&all);
  redlock_lock *locks[2];
  const char *names[] = {"sent", "dropped"};
  for (unsigned i = 0; i < 2; i++) {
    locks[i] = make_lock(all.client, names[i], false);
    assert_error(redlock_lock_acquire(locks[i], NULL, NULL), REDLOCK_OK);
    eventually(loopback_keys(all.farm, names[i]) == 3);
  }
  eventually(polls(&all.poller));
  let_one_come(all.client, true);
  assert_error(redlock_lock_release_send(locks[0]), REDLOCK_OK);
  eventually(loopback_keys(all.farm, names[0]) == 0);
  eventually(polls(&all.poller));
  redlock_lock_free(locks[1]);
  eventually(loopback_keys(all.farm, names[1]) == 0);
  let_one_come(all.client, false);
  redlock_lock_free(locks[0]);
  close_scene(&all);
}

/* The poller would send, and is missing, too. */
TEST(late_sender_delays_no_thread) {
  scene all;
  open_scene(&all);
  redlock_lock *lock = make_lock(all.client, "sent", false);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  eventually(polls(&all.poller));
  rl_client_enter(all.client);
  all.client->callers.arriving = 1;
  all.client->callers.sender = rl_caller_of(all.poller.lock);
  rl_client_leave(all.client);
  assert_error(redlock_lock_release_send(lock), REDLOCK_OK);
  eventually(redlock_lock_remaining(lock) == 0 && loopback_keys(all.farm, "sent") == 0);
  rl_client_enter(all.client);
  all.client->callers.arriving = 0;
  all.client->callers.sender = NULL;
  rl_client_leave(all.client);
  redlock_lock_free(lock);
  close_scene(&all);
}

TEST(loop_sends_although_a_woken_thread_is_missing) {
  scene all;
  open_scene(&all);
  redlock_lock *lock = make_lock(all.client, "loop", false);
  let_one_come(all.client, true);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(all.client, NULL, 0), REDLOCK_OK);
  eventually(loopback_keys(all.farm, "loop") == 3);
  let_one_come(all.client, false);
  redlock_lock_free(lock);
  close_scene(&all);
}

/* Other threads wait for it. */
TEST(missing_sender_delays_no_thread) {
  scene all;
  open_scene(&all);
  call sender = {
      .client = all.client, .lock = make_lock(all.client, "held", true), .held_up = true};
  call next = {.client = all.client, .lock = make_lock(all.client, "next", false)};
  rl_client_enter(all.client);
  all.client->callers.arriving = 1;
  rl_client_leave(all.client);
  begin(&sender);
  eventually(sleeps(&sender));
  assert_ptr_equal(all.client->callers.sender, rl_caller_of(sender.lock));
  rl_client_enter(all.client);
  all.client->callers.arriving = 0; /* The other thread has arrived. */
  rl_client_leave(all.client);
  redlock_lock_cancel(sender.lock);
  eventually(polls(&all.poller)); /* Keys that it may have set are released. */
  begin(&next);
  eventually(result_of(&next) == REDLOCK_OK);
  atomic_store(&let_go, true);
  assert_int_equal(pthread_join(sender.thread, NULL), 0);
  assert_int_equal(pthread_join(next.thread, NULL), 0);
  assert_error(result_of(&sender), REDLOCK_E_CANCELLED);
  redlock_lock_free(sender.lock);
  redlock_lock_free(next.lock);
  close_scene(&all);
}

/* Another thread sends it while it sleeps; the time-out of its nodes counts. */
static int launch_by_another(void) {
  scene all;
  rl_caller sender = {0};
  redlock_options options = {.node_timeout_us = 300 * MS};
  open_scene(&all);
  call next = {.client = all.client};
  assert_error(redlock_lock_new(&next.lock, all.client, "next", 4, &options), REDLOCK_OK);
  rl_client_enter(all.client);
  all.client->callers.arriving = 1;
  all.client->callers.sender = &sender;
  all.client->callers.unsent = true;
  all.client->callers.send_us = REDLOCK_NEVER;
  rl_client_leave(all.client);
  begin(&next);
  eventually(sleeps(&next));
  assert_true(all.client->callers.unsent_operations);
  atomic_store(&hold_poller_up, true);
  rl_client_enter(all.client);
  all.client->callers.arriving = 0;
  all.client->callers.sender = NULL;
  rl_client_leave(all.client);
  eventually(loopback_keys(all.farm, "next") == 3);
  eventually(result_of(&next) != REDLOCK_PENDING);
  atomic_store(&hold_poller_up, false);
  assert_int_equal(pthread_join(next.thread, NULL), 0);
  int result = result_of(&next);
  redlock_lock_free(next.lock);
  close_scene(&all);
  return result;
}

/* After a long stall of this process the nodes may count as late: retry. */
TEST(sleeper_checks_an_operation_that_another_thread_sent) {
  int result = REDLOCK_PENDING;
  bool stalled = true;
  witness_start();
  for (unsigned i = 0; i < 20 && result != REDLOCK_OK && stalled; i++) {
    redlock_time began_us = redlock_now();
    result = launch_by_another();
    stalled = witness_delay_us(began_us) > 100 * MS;
  }
  assert_error(result, REDLOCK_OK);
}

TEST(missing_entropy_fails_only_acquires) {
  scene all;
  open_scene(&all);
  call next = {.client = all.client, .lock = make_lock(all.client, "next", false)};
  atomic_store(&no_entropy, true);
  let_one_come(all.client, true);
  begin(&next);
  eventually(result_of(&next) != REDLOCK_PENDING || result_of(&all.poller) != REDLOCK_PENDING);
  eventually(result_of(&next) != REDLOCK_PENDING);
  atomic_store(&no_entropy, false);
  let_one_come(all.client, false);
  assert_int_equal(pthread_join(next.thread, NULL), 0);
  assert_error(result_of(&next), REDLOCK_E_SYSTEM);
  assert_int_equal(result_of(&all.poller), REDLOCK_PENDING);
  redlock_lock_free(next.lock);
  close_scene(&all);
}

/* Between its check of wake-ups and its sleep. Later calls go on. */
TEST(wakeup_reaches_a_thread_that_falls_asleep) {
  scene all;
  rl_caller sender = {0};
  open_scene(&all);
  call late = {.client = all.client, .lock = make_lock(all.client, "held", true), .wakes_up = true};
  call next = {.client = all.client, .lock = make_lock(all.client, "held", true)};
  atomic_store(&hold_poller_up, true);
  rl_client_enter(all.client);
  all.client->callers.arriving = 1;
  all.client->callers.sender = &sender;
  rl_client_leave(all.client);
  begin(&late);
  eventually(atomic_load(&all.client->callers.wakeups) == 1);
  eventually(sleeps(&late) || result_of(&late) != REDLOCK_PENDING);
  rl_client_enter(all.client);
  all.client->callers.arriving = 0;
  all.client->callers.sender = NULL;
  rl_client_leave(all.client);
  begin(&next);
  eventually(sleeps(&next));
  atomic_store(&hold_poller_up, false);
  eventually(result_of(&all.poller) == REDLOCK_E_CANCELLED);
  eventually(result_of(&late) == REDLOCK_E_CANCELLED);
  assert_int_equal(result_of(&next), REDLOCK_PENDING);
  redlock_lock_cancel(next.lock);
  assert_int_equal(pthread_join(late.thread, NULL), 0);
  assert_int_equal(pthread_join(next.thread, NULL), 0);
  redlock_lock_free(late.lock);
  redlock_lock_free(next.lock);
  close_scene(&all);
}

#define GROUP_MISSING 9 /* one more than are posted at once: one may be woken to poll */
#define CROWD 14

typedef struct group {
  scene all;
  call calls[CROWD];
} group;

/* They sleep, and the first ones will be missing after they are woken. */
static void open_group(group *self) {
  open_scene(&self->all);
  for (unsigned i = 0; i < CROWD; i++) {
    self->calls[i] = (call){.client = self->all.client,
                            .lock = make_lock(self->all.client, "held", true),
                            .held_up = i < GROUP_MISSING};
    begin(&self->calls[i]);
    eventually(sleeps(&self->calls[i]));
  }
  eventually(polls(&self->all.poller));
}

static void close_group(group *self) {
  atomic_store(&let_go, true);
  for (unsigned i = 0; i < CROWD; i++) {
    assert_int_equal(pthread_join(self->calls[i].thread, NULL), 0);
    assert_error(result_of(&self->calls[i]), REDLOCK_E_CANCELLED);
    redlock_lock_free(self->calls[i].lock);
  }
  assert_null(rl_callers_first(&self->all.client->callers.asleep));
  assert_null(rl_callers_first(&self->all.client->callers.unposted));
  assert_int_equal(self->all.client->callers.arriving, 0);
  close_scene(&self->all);
}

static void cancel_group(group *self) {
  for (unsigned i = 0; i < CROWD; i++) {
    redlock_lock_cancel(self->calls[i].lock);
  }
}

static unsigned due_of(group *self) {
  unsigned due = 0;
  rl_client_enter(self->all.client);
  for (unsigned i = 0; i < CROWD; i++) {
    const rl_caller *caller = rl_caller_of(self->calls[i].lock);
    due += caller != NULL && caller->unposted;
  }
  rl_client_leave(self->all.client);
  return due;
}

static void eventually_all_that_can_have_come(group *self) {
  for (unsigned i = GROUP_MISSING; i < CROWD; i++) {
    eventually(result_of(&self->calls[i]) == REDLOCK_E_CANCELLED);
  }
  for (unsigned i = 0; i < GROUP_MISSING; i++) {
    assert_int_equal(result_of(&self->calls[i]), REDLOCK_PENDING);
  }
}

TEST(woken_threads_are_posted_eight_at_a_time) {
  group many;
  open_group(&many);
  atomic_store(&hold_poller_up, true);
  cancel_group(&many);
  assert_int_equal(due_of(&many), CROWD - 8);
  assert_int_equal(due_of(&many), CROWD - 8);
  atomic_store(&hold_poller_up, false);
  eventually_all_that_can_have_come(&many);
  close_group(&many);
}

TEST(eight_missing_threads_delay_no_other_thread) {
  group many;
  open_group(&many);
  cancel_group(&many);
  eventually_all_that_can_have_come(&many);
  close_group(&many);
}

/* The poller leaves, too, and no thread is left to poll. */
TEST(missing_threads_delay_no_thread_after_a_wakeup) {
  group many;
  open_group(&many);
  redlock_client_wakeup(many.all.client);
  eventually_all_that_can_have_come(&many);
  close_group(&many);
}
