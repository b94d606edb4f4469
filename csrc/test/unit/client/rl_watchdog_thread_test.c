/*
 * The watchdog's thread: next to a loop, without entropy, and without descriptors or threads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_watchdog.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client/rl_client.h"
#include "lease/rl_loss.h"
#include "loopback.h"
#include "os/rl_entropy.h"
#include "os/rl_thread.h"
#include "rl_test.h"

#define QUIET_US (10 * MS)
#define LOOP_US (20 * MS)

static bool no_event;
static bool no_sleeper;
static bool no_thread;
static atomic_bool no_entropy;

bool __real_rl_eventfd_open(rl_eventfd *event);
bool __wrap_rl_eventfd_open(rl_eventfd *event);
bool __real_rl_sleeper_init(rl_sleeper *sleeper);
bool __wrap_rl_sleeper_init(rl_sleeper *sleeper);
int __real_rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument);
int __wrap_rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument);
bool __real_rl_entropy_fill(unsigned char *bytes, size_t length);
bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length);

bool __wrap_rl_eventfd_open(rl_eventfd *event) {
  return !no_event && __real_rl_eventfd_open(event);
}

bool __wrap_rl_sleeper_init(rl_sleeper *sleeper) {
  return !no_sleeper && __real_rl_sleeper_init(sleeper);
}

int __wrap_rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument) {
  return no_thread ? EAGAIN : __real_rl_thread_start(thread, stack, run, argument);
}

bool __wrap_rl_entropy_fill(unsigned char *bytes, size_t length) {
  return !atomic_load(&no_entropy) && __real_rl_entropy_fill(bytes, length);
}

/* Number of the watchdog's sleeps, and length of the first one since the last turn. */
static redlock_client *client;
static atomic_uint sleeps;
static redlock_duration first_sleep_us;
static atomic_bool with_mutex; /* It fell asleep with the mutex locked. */

bool __real_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us);
bool __wrap_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us);

bool __wrap_rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us) {
  if (sleeper == &client->watchdog.self.sleeper) {
    if (atomic_load(&sleeps) == 0) {
      first_sleep_us = rl_time_sub(until_us, client->processed_us);
    }
    if (pthread_mutex_lock(&client->mutex.mutex) == EDEADLK) {
      atomic_store(&with_mutex, true);
    } else {
      (void)pthread_mutex_unlock(&client->mutex.mutex);
    }
    atomic_fetch_add(&sleeps, 1);
  }
  return __real_rl_sleeper_wait(sleeper, until_us);
}

/* SIGALRM ends a test that hangs. */
static int begin(void **state) {
  (void)alarm(60);
  assert_error(redlock_client_new(&client, NULL, NULL, 0), REDLOCK_OK);
  return 0;
}

static int end(void **state) {
  redlock_client_free(client);
  (void)alarm(0);
  return atomic_load(&with_mutex) ? 1 : 0;
}

static int start(void) {
  rl_client_enter(client);
  int error = rl_watchdog_start(client);
  rl_client_leave(client);
  return error;
}

static void forget_sleeps(void) {
  rl_client_enter(client);
  atomic_store(&sleeps, 0);
  rl_client_leave(client);
}

static bool polls(void) {
  rl_client_enter(client);
  bool does = client->callers.poller == &client->watchdog.self;
  rl_client_leave(client);
  return does;
}

/* Starts an acquire that waits for |address|. */
static redlock_lock *begin_acquire(const char *address) {
  redlock_lock *lock;
  redlock_options options = {.node_timeout_us = 20 * SECONDS,
                             .ttl_us = 200 * SECONDS,
                             .retry_count = REDLOCK_RETRIES_NONE};
  assert_error(redlock_client_add(client, address, NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, "r", 1, &options), REDLOCK_OK);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  return lock;
}

/* A loop that is absent for more than 20 ms while a reply is awaited. */
TEST(watchdog_polls_while_the_loop_is_absent) {
  loopback *farm = loopback_new(1, LOOPBACK_TCP);
  farm->nodes[0].deaf = true;
  loopback_run(farm);
  assert_true(redlock_client_pollfd(client) >= 0);
  redlock_lock *lock = begin_acquire(farm->nodes[0].address);
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  assert_error(start(), REDLOCK_OK);
  eventually(polls());
  forget_sleeps();
  assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  loopback_lock(farm);
  loopback_down(farm, 0); /* That ends its wait. */
  loopback_unlock(farm);
  eventually(atomic_load(&sleeps) >= 1);
  rl_client_enter(client);
  assert_true(first_sleep_us >= LOOP_US); /* It sleeps once. */
  rl_client_leave(client);
  redlock_lock_free(lock);
  assert_true(loopback_end(farm));
}

TEST(watchdog_sleeps_between_turns_without_entropy) {
  redlock_lock *lock = begin_acquire("127.0.0.1:1");
  atomic_store(&no_entropy, true);
  forget_sleeps();
  assert_error(start(), REDLOCK_OK);
  eventually(atomic_load(&sleeps) >= 3);
  assert_error(redlock_lock_result(lock), REDLOCK_PENDING);
  atomic_store(&no_entropy, false);
  eventually(redlock_lock_result(lock) != REDLOCK_PENDING);
  assert_error(redlock_lock_result(lock), REDLOCK_E_UNAVAILABLE);
  redlock_lock_free(lock);
}

TEST(failed_start_can_be_repeated) {
  for (unsigned i = 0; i < 4; i++) {
    no_event = i == 0;
    no_sleeper = i == 1;
    no_thread = i == 2;
    assert_error(start(), i < 3 ? REDLOCK_E_SYSTEM : REDLOCK_OK);
    assert_true(client->watchdog.runs == (i == 3));
    assert_true((rl_eventfd_to_poll(&client->watchdog.event) >= 0) == (i == 3));
  }
}

static atomic_uint calls;

/* The function may call the library, because the mutex is free. */
static void count_calls(redlock_client *caller, void *data) {
  if (caller == client && data == &calls && pthread_mutex_trylock(&client->mutex.mutex) == 0) {
    (void)pthread_mutex_unlock(&client->mutex.mutex);
    atomic_fetch_add(&calls, 1);
  }
}

/* A child of a fork during the watchdog's stop. */
TEST(watchdog_runs_again_after_a_fork_during_its_stop) {
  client->watchdog.stops = true;
  client->watchdog.runs = true;
  client->watchdog.on_lost = count_calls;
  assert_true(rl_eventfd_open(&client->watchdog.event));
  client->mark.pid = 0;
  if (client->mark.page != NULL) {
    *client->mark.page = 0;
  }
  rl_client_check_fork(client);
  assert_false(client->watchdog.runs);
  assert_null(client->watchdog.on_lost);
  assert_int_equal(rl_eventfd_to_poll(&client->watchdog.event), -1);
  assert_error(start(), REDLOCK_OK);
  eventually(polls());
}

TEST(closed_client_has_no_watchdog) {
  assert_error(start(), REDLOCK_OK);
  assert_error(redlock_client_close(client, 0), REDLOCK_OK);
  assert_false(client->watchdog.runs);
  assert_int_equal(rl_eventfd_to_poll(&client->watchdog.event), -1);
}

TEST(on_lost_checks_its_arguments) {
  assert_error(redlock_client_on_lost(NULL, count_calls, &calls), REDLOCK_E_INVALID);
  client->external = true;
  assert_error(redlock_client_on_lost(client, count_calls, &calls), REDLOCK_E_INVALID);
  client->external = false;
  assert_error(redlock_client_on_lost(client, NULL, NULL), REDLOCK_OK);
  assert_false(client->watchdog.runs); /* It has nothing to do. */
  no_thread = true;
  assert_error(redlock_client_on_lost(client, count_calls, &calls), REDLOCK_E_SYSTEM);
  assert_null(client->watchdog.on_lost);
  no_thread = false;
  assert_error(redlock_client_on_lost(client, count_calls, &calls), REDLOCK_OK);
  assert_true(client->watchdog.runs);
  assert_true(client->watchdog.on_lost == count_calls);
  assert_error(redlock_client_close(client, 0), REDLOCK_OK);
  assert_error(redlock_client_on_lost(client, NULL, NULL), REDLOCK_E_CLOSED);
}

/* An earlier loss is reported if it was not fetched. */
TEST(earlier_loss_is_reported_once_if_unfetched) {
  redlock_lock *lock;
  redlock_options options = {.ttl_us = 200 * SECONDS, .notify_lost = REDLOCK_YES};
  assert_error(redlock_client_add(client, "127.0.0.1:1", NULL, 0), REDLOCK_OK);
  assert_error(redlock_lock_new(&lock, client, "r", 1, &options), REDLOCK_OK);
  client->watchdog.forbidden = true; /* No function is called meanwhile. */
  for (unsigned i = 0; i < 2; i++) {
    rl_client_enter(client);
    if (i == 1) {
      rl_loss_report(rl_lock_of(lock), REDLOCK_E_EXPIRED, redlock_now());
    }
    assert_int_equal(client->core.losses->count, i);
    assert_true(!rl_list_is_empty(&client->core.losses->queue) == (i == 1));
    rl_client_leave(client);
    assert_error(redlock_client_on_lost(client, count_calls, &calls), REDLOCK_OK);
    assert_int_equal(client->watchdog.reported_count, 0); /* no loss is reported yet */
  }
  atomic_store(&calls, 0);
  client->watchdog.forbidden = false;
  assert_error(start(), REDLOCK_OK);
  eventually(polls());
  assert_int_equal(atomic_load(&calls), 1);
  assert_ptr_equal(redlock_client_next_lost(client), lock);
  assert_error(redlock_client_on_lost(client, count_calls, &calls), REDLOCK_OK);
  assert_int_equal(client->watchdog.reported_count, 1); /* It was fetched. */
  redlock_lock_free(lock);
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin, .after = end});
}
