/*
 * The watchdog thread: extends leases while the program does other work.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "support.h"

/* Extends every few milliseconds, so that a test sees it soon. */
static redlock_options auto_extended(void) {
  redlock_options options = once();
  options.auto_extend = REDLOCK_YES;
  options.extend_every_us = MS(20);
  return options;
}

/*
 * Returns a held lock whose lease ends soon. On a loaded machine the first attempts may be too
 * late.
 */
static redlock_lock *hold_for(redlock_client *client, const char *name, redlock_duration ttl_us) {
  redlock_options options = once();
  options.ttl_us = ttl_us;
  options.notify_lost = REDLOCK_YES;
  redlock_lock *lock = new_lock(client, name);
  eventually(redlock_lock_acquire(lock, &options, NULL) == REDLOCK_OK);
  return lock;
}

/* Returns a lock that the watchdog extends every |every_us|; 0 is a third of the ttl. */
static redlock_lock *hold_every(redlock_client *client, const char *name,
                                redlock_duration every_us) {
  redlock_options options = auto_extended();
  options.extend_every_us = every_us;
  redlock_lock *lock = new_lock(client, name);
  assert_ok(lock, redlock_lock_acquire(lock, &options, NULL));
  return lock;
}

static redlock_lock *hold(redlock_client *client, const char *name) {
  return hold_every(client, name, MS(20));
}

/* Computes without calls of the library until the watchdog has extended the lease. */
static void compute_until_extended(const redlock_lock *lock) {
  redlock_time deadline_us = redlock_lock_deadline(lock), until_us = redlock_now() + EVENTUALLY_US;
  while (redlock_lock_deadline(lock) == deadline_us) {
    assert_true(redlock_now() < until_us);
  }
  assert_true(redlock_lock_deadline(lock) > deadline_us);
}

static void sleep_until_extended(const redlock_lock *lock) {
  redlock_time deadline_us = redlock_lock_deadline(lock);
  eventually(redlock_lock_deadline(lock) > deadline_us);
}

/* The first test, because the witness does not sleep. */
TEST(idle_watchdog_sleeps) {
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = hold_every(client, "r", 0);
  struct rusage before, after;
  pump_until(client, all_up(client));
  assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
  (void)poll(NULL, 0, 500);
  assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
  assert_true(after.ru_nvcsw - before.ru_nvcsw < 20);
  free_with_client(lock);
}

TEST(lease_is_extended_while_the_program_computes_and_sleeps) {
  unsigned before = running_threads();
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = hold(client, "r");
  assert_int_equal(running_threads(), before + 1);
  compute_until_extended(lock);
  compute_until_extended(lock);
  farm_stop(&five, 4);
  sleep_until_extended(lock);
  sleep_until_extended(lock);
  assert_int_equal(redlock_lock_lost(lock, NULL), REDLOCK_OK);
  farm_continue(&five, 4);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
  /* The kernel lists a joined thread for a moment. */
  eventually(running_threads() == before);
  eventually(farm_count(&five, "r", NULL) == 0);
}

TEST(client_without_auto_extend_has_no_thread) {
  unsigned before = running_threads();
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = held_lock(client, "r");
  assert_int_equal(running_threads(), before);
  redlock_options options = auto_extended();
  redlock_lock *looped = new_lock(client, "looped"); /* The loop extends this lease. */
  assert_int_equal(redlock_lock_acquire_start(looped, &options), REDLOCK_OK);
  pump_until(client, redlock_lock_result(looped) == REDLOCK_OK);
  assert_int_equal(running_threads(), before);
  redlock_lock_free(lock);
  redlock_lock_free(looped);
  redlock_client_free(client);
}

TEST(close_with_hung_nodes_ends_in_time) {
  (void)stopwatch(); /* Its witness has a thread, too. */
  unsigned before = running_threads();
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = hold(client, "r");
  farm_each(&five, 0, 5, farm_stop);
  (void)poll(NULL, 0, 100); /* An extend is in flight now, most likely. */
  redlock_time begun_us = redlock_now();
  assert_int_equal(redlock_client_close(client, MS(50)), REDLOCK_E_UNAVAILABLE);
  assert_took(begun_us, 0, MS(2000)); /* After 3 s the connections would end. */
  eventually(running_threads() == before);
  free_with_client(lock);
  farm_each(&five, 0, 5, farm_continue);
}

static unsigned cycles(void) {
  const char *text = getenv("WATCHDOG_CYCLES"); /* NOLINT(concurrency-mt-unsafe) */
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 100;
}

TEST(cycles_of_clients_leave_nothing) {
  unsigned threads_before = running_threads();
  unsigned descriptors = open_descriptors();
  size_t bytes = 0;
  for (unsigned i = 0; i < cycles(); i++) {
    redlock_client *client = client_of(&five, 1, NULL);
    redlock_lock *lock = hold(client, "r");
    if (i % 2 == 0) {
      assert_ok(lock, redlock_lock_release(lock));
    }
    if (i % 3 == 0) {
      assert_int_equal(redlock_client_close(client, EVENTUALLY_US), REDLOCK_OK);
    }
    free_with_client(lock);
    if (i % 2 != 0) {
      eventually(farm_count(&five, "r", NULL) == 0);
    }
    if (i == cycles() / 5) {
      bytes = allocated_bytes();
    }
  }
  eventually(running_threads() == threads_before);
  assert_int_equal(open_descriptors(), descriptors);
  assert_true(allocated_bytes() < bytes + 1024 * 1024);
}

/* The program has a loop, which does not return to its descriptor. */
TEST(stalled_loop_loses_no_lease) {
  redlock_client *client = client_of(&five, 5, NULL);
  assert_true(redlock_client_pollfd(client) >= 0);
  redlock_lock *lock = hold(client, "r");
  compute_until_extended(lock);
  compute_until_extended(lock);
  pump_until(client, all_up(client));
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

typedef struct watch {
  redlock_client *client;
  atomic_bool stop;
  redlock_lock *_Atomic lost;
} watch;

static void *watch_for_losses(void *argument) {
  watch *self = argument;
  struct pollfd ready = {redlock_client_pollfd(self->client), POLLIN, 0};
  while (!atomic_load(&self->stop)) {
    (void)poll(&ready, 1, 20);
    (void)redlock_client_process(self->client, NULL, 0);
    redlock_lock *lost = redlock_client_next_lost(self->client);
    if (redlock_lock_lost(lost, NULL) == REDLOCK_E_LOST) {
      atomic_store(&self->lost, lost);
    }
  }
  return NULL;
}

/* As docs/c.md recommends for programs without a loop. */
TEST(waiting_thread_gets_losses_while_the_program_computes) {
  watch self = {.client = client_of(&five, 5, NULL)};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, watch_for_losses, &self), 0);
  redlock_lock *lock = hold(self.client, "r");
  compute_until_extended(lock);
  assert_null(atomic_load(&self.lost));
  farm_command_all(&five, "SET", "r", "another", NULL);
  eventually(atomic_load(&self.lost) == lock);
  assert_int_equal(redlock_lock_lost(lock, NULL), REDLOCK_E_LOST);
  atomic_store(&self.stop, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  redlock_lock_free(lock);
  redlock_client_free(self.client);
}

typedef struct lost_log {
  atomic_uint calls;
  redlock_lock *_Atomic lost;
  pthread_t caller;
} lost_log;

static void log_loss(redlock_client *client, void *data) {
  lost_log *self = data;
  redlock_lock *lost;
  self->caller = pthread_self();
  atomic_fetch_add(&self->calls, 1);
  while ((lost = redlock_client_next_lost(client)) != NULL) {
    if (redlock_lock_lost(lost, NULL) != REDLOCK_E_UNAVAILABLE) {
      (void)redlock_lock_extend(lost, 0, NULL); /* A blocking call is allowed here. */
      atomic_store(&self->lost, lost);
    }
  }
}

/*
 * Noticed by the watchdog that polls, by a thread in a call while the watchdog sleeps, and by a
 * reading thread.
 */
TEST(on_lost_reports_each_loss) {
  lost_log self = {0};
  redlock_client *client = client_of(&five, 5, NULL);
  assert_int_equal(redlock_client_on_lost(client, log_loss, &self), REDLOCK_OK);
  redlock_lock *first = hold(client, "r");
  farm_command_all(&five, "SET", "r", "another", NULL);
  eventually(atomic_load(&self.lost) == first);
  assert_false(pthread_equal(self.caller, pthread_self()));

  redlock_lock *second = hold_for(client, "s", MS(200));
  eventually(atomic_load(&self.lost) == second); /* It expires while no thread is in a call. */

  redlock_lock *third = hold_for(client, "t", MS(200));
  redlock_options patient = {.wait_us = MS(500)};
  redlock_lock *waiting = new_lock(client, "r");
  /* On a slow machine the wait may end before the nodes have answered. */
  eventually(redlock_lock_acquire(waiting, &patient, NULL) == REDLOCK_E_TAKEN);
  eventually(atomic_load(&self.lost) == third); /* This thread led meanwhile. */

  assert_int_equal(redlock_client_on_lost(client, NULL, NULL), REDLOCK_OK);
  unsigned calls = atomic_load(&self.calls);
  redlock_lock *fourth = hold_for(client, "u", MS(200));
  eventually(redlock_client_next_lost(client) == fourth);
  assert_int_equal(atomic_load(&self.calls), calls);
  redlock_lock_free(first);
  redlock_lock_free(second);
  redlock_lock_free(third);
  redlock_lock_free(fourth);
  redlock_lock_free(waiting);
  redlock_client_free(client);
}

static void count_calls(redlock_client *client, void *data) {
  (void)client;
  atomic_fetch_add((atomic_uint *)data, 1);
}

/*
 * The function only counts: the program reads the losses later. Returns false if the lease has
 * expired before the test saw that it could not be extended.
 */
static bool on_lost_is_called_again(redlock_duration ttl_us) {
  atomic_uint calls = 0;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = auto_extended();
  options.ttl_us = ttl_us;
  options.node_timeout_us = MS(500);
  redlock_lock *lock = new_lock(client, "r");
  eventually(redlock_lock_acquire(lock, &options, NULL) == REDLOCK_OK);
  assert_int_equal(redlock_client_on_lost(client, count_calls, &calls), REDLOCK_OK);
  farm_each(&five, 0, 5, farm_stop);
  eventually(redlock_lock_lost(lock, NULL) != REDLOCK_OK && atomic_load(&calls) > 0);
  unsigned before = atomic_load(&calls);
  bool in_time = redlock_lock_lost(lock, NULL) == REDLOCK_E_UNAVAILABLE;
  eventually(redlock_lock_lost(lock, NULL) == REDLOCK_E_EXPIRED);
  farm_each(&five, 0, 5, farm_continue);
  if (in_time) {
    eventually(atomic_load(&calls) > before);
  }
  free_with_client(lock);
  return in_time;
}

TEST(on_lost_is_called_again_when_the_lease_has_expired) {
  redlock_duration ttl_us = MS(3000);
  while (!on_lost_is_called_again(ttl_us)) {
    ttl_us *= 2; /* A slow machine needs a longer lease. */
    assert_true(ttl_us < 60 * REDLOCK_SECONDS);
    (void)five_reset(state);
  }
}

static void free_the_lock(redlock_client *client, void *data) {
  redlock_lock *lost = redlock_client_next_lost(client);
  redlock_lock_free(lost);
  atomic_store((atomic_bool *)data, lost != NULL);
}

static void free_lock_and_client(redlock_client *client, void *data) {
  redlock_lock_free(redlock_client_next_lost(client));
  redlock_client_free(client);
  atomic_store((atomic_bool *)data, true);
}

/* The watchdog continues with the client after the function has returned. */
TEST(on_lost_may_free_the_last_reference) {
  unsigned before = running_threads(), descriptors = open_descriptors();
  for (unsigned i = 0; i < 4; i++) {
    atomic_bool freed = false;
    redlock_client *client = client_of(&five, 5, NULL);
    bool both = i % 2 == 1;
    assert_int_equal(
        redlock_client_on_lost(client, both ? free_lock_and_client : free_the_lock, &freed),
        REDLOCK_OK);
    (void)hold_for(client, "r", MS(400));
    if (!both) {
      redlock_client_free(client);
    }
    eventually(atomic_load(&freed));
    eventually(running_threads() == before && open_descriptors() == descriptors);
  }
}

static void close_the_client(redlock_client *client, void *data) {
  int error = redlock_client_close(client, EVENTUALLY_US);
  atomic_store((atomic_int *)data, error == REDLOCK_OK ? 1 : error);
}

TEST(on_lost_may_close_the_client) {
  unsigned before = running_threads();
  atomic_int closed = 0;
  redlock_client *client = client_of(&five, 5, NULL);
  assert_int_equal(redlock_client_on_lost(client, close_the_client, &closed), REDLOCK_OK);
  redlock_lock *lock = hold_for(client, "r", MS(400));
  eventually(atomic_load(&closed) != 0);
  assert_int_equal(atomic_load(&closed), 1);
  eventually(running_threads() == before);
  assert_int_equal(redlock_client_close(client, 0), REDLOCK_OK);
  assert_int_equal(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_E_CLOSED);
  free_with_client(lock);
}

/* ---------------------------------------------------------------------------------------- forks */

static int child_holds_nothing(void *argument) {
  redlock_lock *lock = argument;
  return redlock_lock_remaining(lock) == 0 && redlock_lock_release(lock) == REDLOCK_E_NOT_HELD ? 0
                                                                                               : 1;
}

TEST(watchdog_may_be_forked_at_any_time) {
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = hold_every(client, "r", MS(2));
  for (unsigned i = 0; i < 60; i++) {
    in_child(child_holds_nothing, lock);
  }
  assert_true(redlock_lock_remaining(lock) > 0);
  assert_ok(lock, redlock_lock_release(lock));
  free_with_client(lock);
}

/*
 * -------------------------------------------------------------------------------------- the host
 */

static atomic_int signalled; /* id of the thread that ran the handler */

static void note_thread(int number) {
  atomic_store(&signalled, (int)syscall(SYS_gettid));
}

TEST(watchdog_takes_no_signal) {
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = hold(client, "r");
  struct sigaction action = {.sa_handler = note_thread};
  sigset_t usr1;
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  assert_int_equal(sigemptyset(&usr1), 0);
  assert_int_equal(sigaddset(&usr1, SIGUSR1), 0);
  assert_int_equal(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0);
  assert_int_equal(kill(getpid(), SIGUSR1), 0); /* for any thread that has not blocked it */
  (void)poll(NULL, 0, 50);
  assert_int_equal(atomic_load(&signalled), 0);
  assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL), 0);
  assert_int_equal(atomic_load(&signalled), getpid());
  free_with_client(lock);
}

/* A lock was freed while a node hung: its release is sent when the node continues. */
TEST(watchdog_sends_releases_of_freed_locks) {
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *other = hold(client, "other");
  redlock_lock *lock = hold(client, "r");
  eventually(farm_count(&five, "r", NULL) == 5);
  farm_stop(&five, 0);
  redlock_lock_free(lock);
  /* A node that granted too late to count may get the key only from an extend. */
  eventually(farm_count(&five, "other", redlock_lock_token(other)) == 4);
  eventually(farm_count(&five, "r", NULL) <= 1);
  farm_continue(&five, 0);
  eventually(farm_count(&five, "r", NULL) == 0);
  farm_kill(&five, 1);
  farm_restart(&five, 1);
  eventually(farm_connections(&five, 1) >= 1); /* The watchdog connects. */
  redlock_lock_free(other);
  redlock_client_free(client);
}

int main(void) {
  cmocka_set_test_filter(getenv("WATCHDOG_TEST")); /* long/cycles runs one test */
  return tests_run(
      &(tests_fixture){.start = five_start_threaded, .before = five_reset, .end = five_end});
}
