/*
 * Operations that are left to arriving threads: they end, are sent in time, and fail no other
 * thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_caller.h"

#include <stdatomic.h>
#include <unistd.h>

#include "api/rl_handle.h"
#include "api/rl_handle_run.h"
#include "client/rl_client.h"
#include "client_world.h"

static atomic_bool no_entropy;

bool __real_rl_entropy_fill(unsigned char *bytes, size_t length);
bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length);

bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length) {
  return !atomic_load(&no_entropy) && __real_rl_entropy_fill(bytes, length);
}

/* A missing thread does not return from its sleep, as in a signal handler that runs for long. */
static _Thread_local bool is_held_up;
static atomic_bool let_go;

bool __real_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us);
bool __wrap_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us);

bool __wrap_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us) {
  bool posted = __real_rl_sleeper_wait(sleeper, is_held_up ? REDLOCK_NEVER : until_us);
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

/* A caller waits for a held lock: it polls, and has nothing to do for a minute. */
static loopback *farm;
static redlock_client *client;
static redlock_lock *held;

typedef struct call {
  pthread_t thread;
  redlock_lock *lock;
  bool held_up;
  bool wakes_up; /* all threads, when it is about to sleep */
  atomic_int result;
} call;

static call poller;

static void *acquire(void *argument) {
  call *self = argument;
  is_held_up = self->held_up;
  wakes_up = self->wakes_up ? client : NULL;
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

static void end(call *self) {
  assert_int_equal(pthread_join(self->thread, NULL), 0);
  redlock_lock_free(self->lock);
}

/* It polls, is not poked, and has nothing to do for the next 20 s. */
static bool polls(const call *self) {
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
  rl_client_enter(client);
  const rl_caller *caller = rl_caller_of(self->lock);
  bool is_so = caller != NULL && caller->sleeps && !caller->woken;
  rl_client_leave(client);
  return is_so;
}

/* A lock of the held resource, which retries after a minute. */
static redlock_lock *patient_lock(void) {
  redlock_options options = {.retry_delay_us = 60 * SECONDS, .wait_us = 200 * SECONDS};
  return new_lock(client, "held", &options);
}

/* Without notifications, which would wake the poller. */
static int open_scene(void **state) {
  redlock_options options = {.node_timeout_us = 60 * SECONDS,
                             .ttl_us = 600 * SECONDS,
                             .notify = REDLOCK_NO,
                             .retry_count = REDLOCK_RETRIES_NONE};
  atomic_store(&let_go, false);
  atomic_store(&no_entropy, false);
  farm = loopback_new(3, LOOPBACK_TCP);
  loopback_run(farm);
  client = new_client_of(farm, (redlock_settings){.options = &options});
  held = new_lock(client, "held", NULL);
  assert_error(redlock_lock_acquire(held, NULL, NULL), REDLOCK_OK);
  poller.lock = patient_lock();
  begin(&poller);
  eventually(polls(&poller));
  return 0;
}

static int close_scene(void **state) {
  redlock_lock_cancel(poller.lock);
  end(&poller);
  free_with_client(held);
  return loopback_end(farm) ? 0 : 1;
}

/* Sets the number of woken threads that have yet to arrive, and the thread that sends for all. */
static void expect(bool arriving, rl_caller *sender) {
  rl_client_enter(client);
  client->callers.arriving = arriving;
  client->callers.sender = sender;
  rl_client_leave(client);
}

TEST(bytes_are_sent_although_a_woken_thread_is_missing) {
  redlock_lock *locks[2];
  const char *names[] = {"sent", "dropped"};
  for (unsigned i = 0; i < 2; i++) {
    locks[i] = new_lock(client, names[i], NULL);
    assert_error(redlock_lock_acquire(locks[i], NULL, NULL), REDLOCK_OK);
    eventually(loopback_keys(farm, names[i]) == 3);
  }
  eventually(polls(&poller));
  expect(true, NULL);
  assert_error(redlock_lock_release_send(locks[0]), REDLOCK_OK);
  eventually(loopback_keys(farm, names[0]) == 0);
  eventually(polls(&poller));
  redlock_lock_free(locks[1]);
  eventually(loopback_keys(farm, names[1]) == 0);
  expect(false, NULL);
  redlock_lock_free(locks[0]);
}

/* The poller would send, and is missing, too. */
TEST(late_sender_delays_no_thread) {
  redlock_lock *lock = new_lock(client, "sent", NULL);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  eventually(polls(&poller));
  expect(true, rl_caller_of(poller.lock));
  assert_error(redlock_lock_release_send(lock), REDLOCK_OK);
  eventually(redlock_lock_remaining(lock) == 0 && loopback_keys(farm, "sent") == 0);
  expect(false, NULL);
  redlock_lock_free(lock);
}

TEST(loop_sends_although_a_woken_thread_is_missing) {
  redlock_lock *lock = new_lock(client, "loop", NULL);
  expect(true, NULL);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  eventually(loopback_keys(farm, "loop") == 3);
  expect(false, NULL);
  redlock_lock_free(lock);
}

/* Other threads wait for it. */
TEST(missing_sender_delays_no_thread) {
  call sender = {.lock = patient_lock(), .held_up = true};
  call next = {.lock = new_lock(client, "next", NULL)};
  expect(true, NULL);
  begin(&sender);
  eventually(sleeps(&sender));
  assert_ptr_equal(client->callers.sender, rl_caller_of(sender.lock));
  expect(false, client->callers.sender); /* The other thread has arrived. */
  redlock_lock_cancel(sender.lock);
  eventually(polls(&poller)); /* Keys that it may have set are released. */
  begin(&next);
  eventually(result_of(&next) == REDLOCK_OK);
  atomic_store(&let_go, true);
  end(&sender);
  end(&next);
  assert_error(result_of(&sender), REDLOCK_E_CANCELLED);
}

/* Another thread sends it while it sleeps; the time-out of its nodes counts. */
static int launch_by_another(void) {
  rl_caller sender = {0};
  redlock_options options = {.node_timeout_us = 300 * MS};
  call next = {.lock = new_lock(client, "next", &options)};
  rl_client_enter(client);
  client->callers.arriving = 1;
  client->callers.sender = &sender;
  client->callers.unsent = true;
  client->callers.send_us = REDLOCK_NEVER;
  rl_client_leave(client);
  begin(&next);
  eventually(sleeps(&next));
  assert_true(client->callers.unsent_operations);
  atomic_store(&hold_poller_up, true);
  expect(false, NULL);
  eventually(loopback_keys(farm, "next") == 3);
  eventually(result_of(&next) != REDLOCK_PENDING);
  atomic_store(&hold_poller_up, false);
  end(&next);
  return result_of(&next);
}

/* After a long stall of this process the nodes may count as late: retry. */
TEST(sleeper_checks_an_operation_that_another_thread_sent) {
  int result = REDLOCK_PENDING;
  bool stalled = true;
  witness_start();
  for (unsigned i = 0; i < 20 && result != REDLOCK_OK && stalled; i++) {
    assert_int_equal(close_scene(NULL), 0);
    (void)open_scene(NULL);
    redlock_time began_us = redlock_now();
    result = launch_by_another();
    stalled = witness_delay_us(began_us) > 100 * MS;
  }
  assert_error(result, REDLOCK_OK);
}

TEST(missing_entropy_fails_only_acquires) {
  call next = {.lock = new_lock(client, "next", NULL)};
  atomic_store(&no_entropy, true);
  expect(true, NULL);
  begin(&next);
  eventually(result_of(&next) != REDLOCK_PENDING || result_of(&poller) != REDLOCK_PENDING);
  eventually(result_of(&next) != REDLOCK_PENDING);
  atomic_store(&no_entropy, false);
  expect(false, NULL);
  end(&next);
  assert_error(result_of(&next), REDLOCK_E_SYSTEM);
  assert_int_equal(result_of(&poller), REDLOCK_PENDING);
}

/* Between its check of wake-ups and its sleep. Later calls go on. */
TEST(wakeup_reaches_a_thread_that_falls_asleep) {
  rl_caller sender = {0};
  call late = {.lock = patient_lock(), .wakes_up = true};
  call next = {.lock = patient_lock()};
  atomic_store(&hold_poller_up, true);
  expect(true, &sender);
  begin(&late);
  eventually(atomic_load(&client->callers.wakeups) == 1);
  eventually(sleeps(&late) || result_of(&late) != REDLOCK_PENDING);
  expect(false, NULL);
  begin(&next);
  eventually(sleeps(&next));
  atomic_store(&hold_poller_up, false);
  eventually(result_of(&poller) == REDLOCK_E_CANCELLED);
  eventually(result_of(&late) == REDLOCK_E_CANCELLED);
  assert_int_equal(result_of(&next), REDLOCK_PENDING);
  redlock_lock_cancel(next.lock);
  end(&late);
  end(&next);
}

#define GROUP_MISSING 9 /* one more than are posted at once: one may be woken to poll */
#define GROUP 14

static call group[GROUP];

/* They sleep, and the first ones will be missing after they are woken. */
static void begin_group(void) {
  for (unsigned i = 0; i < GROUP; i++) {
    group[i] = (call){.lock = patient_lock(), .held_up = i < GROUP_MISSING};
    begin(&group[i]);
    eventually(sleeps(&group[i]));
  }
  eventually(polls(&poller));
}

static void cancel_group(void) {
  for (unsigned i = 0; i < GROUP; i++) {
    redlock_lock_cancel(group[i].lock);
  }
}

/* All that can come do so; then the missing ones do. */
static void end_group(void) {
  for (unsigned i = GROUP_MISSING; i < GROUP; i++) {
    eventually(result_of(&group[i]) == REDLOCK_E_CANCELLED);
  }
  for (unsigned i = 0; i < GROUP_MISSING; i++) {
    assert_int_equal(result_of(&group[i]), REDLOCK_PENDING);
  }
  atomic_store(&let_go, true);
  for (unsigned i = 0; i < GROUP; i++) {
    end(&group[i]);
    assert_error(result_of(&group[i]), REDLOCK_E_CANCELLED);
  }
  assert_null(rl_callers_first(&client->callers.asleep));
  assert_null(rl_callers_first(&client->callers.unposted));
  assert_int_equal(client->callers.arriving, 0);
}

static unsigned unposted_count(void) {
  unsigned count = 0;
  rl_client_enter(client);
  for (unsigned i = 0; i < GROUP; i++) {
    const rl_caller *caller = rl_caller_of(group[i].lock);
    count += caller != NULL && caller->unposted;
  }
  rl_client_leave(client);
  return count;
}

TEST(woken_threads_are_posted_eight_at_a_time) {
  begin_group();
  atomic_store(&hold_poller_up, true);
  cancel_group();
  assert_int_equal(unposted_count(), GROUP - 8);
  assert_int_equal(unposted_count(), GROUP - 8);
  atomic_store(&hold_poller_up, false);
  end_group();
}

TEST(eight_missing_threads_delay_no_other_thread) {
  begin_group();
  cancel_group();
  end_group();
}

/* The poller leaves, too, and no thread is left to poll. */
TEST(missing_threads_delay_no_thread_after_a_wakeup) {
  begin_group();
  redlock_client_wakeup(client);
  end_group();
}

int main(void) {
  return tests_run(&(tests_fixture){.before = open_scene, .after = close_scene});
}
