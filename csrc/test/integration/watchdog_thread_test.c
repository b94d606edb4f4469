/*
 * The keeper: leases that are kept while the program does something else.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "support.h"

/* Extended every few milliseconds, so that a test sees it soon. */
static redlock_options kept(void) {
  redlock_options options = once();
  options.auto_extend = REDLOCK_YES;
  options.extend_every_us = MS(20);
  return options;
}

/* A lease that ends soon. On a loaded machine the first attempts to take it may be too late. */
static redlock_lock *hold_for(redlock_client *client, const char *name, redlock_duration ttl_us) {
  redlock_options options = once();
  options.ttl_us = ttl_us;
  options.notify_lost = REDLOCK_YES;
  redlock_lock *lock = new_lock(client, name);
  eventually(redlock_lock_acquire(lock, &options, NULL) == REDLOCK_OK);
  return lock;
}

static redlock_lock *hold(redlock_client *client, const char *name,
                          const redlock_options *options) {
  redlock_lock *lock = new_lock(client, name);
  assert_ok(lock, redlock_lock_acquire(lock, options, NULL));
  return lock;
}

/* A program that calls nothing of the library, as one in Lua that computes: until the lease was extended. */
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

static void a_lease_is_kept_while_the_program_computes_and_sleeps(void **state) {
  (void)state;
  unsigned before = running_threads();
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  redlock_lock *lock = hold(client, "r", &options);
  assert_int_equal(running_threads(), before + 1);
  compute_until_extended(lock);
  compute_until_extended(lock);
  farm_stop(&five, 4);
  sleep_until_extended(lock);
  sleep_until_extended(lock);
  assert_int_equal(redlock_lock_lost(lock, NULL), REDLOCK_OK);
  farm_continue(&five, 4);
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_client_free(client);
  /* The kernel takes a moment to forget a thread that was joined. */
  eventually(running_threads() == before);
  eventually(farm_count(&five, "r", NULL) == 0);
}

static void without_auto_extend_there_is_no_thread(void **state) {
  (void)state;
  unsigned before = running_threads();
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_lock *lock = held_lock(client, "r");
  assert_int_equal(running_threads(), before);
  redlock_options options = kept();
  redlock_lock *looped = new_lock(client, "looped"); /* A loop extends it by itself. */
  assert_int_equal(redlock_lock_acquire_start(looped, &options), REDLOCK_OK);
  pump_until(client, redlock_lock_result(looped) == REDLOCK_OK);
  assert_int_equal(running_threads(), before);
  redlock_lock_free(lock);
  redlock_lock_free(looped);
  redlock_client_free(client);
}

static void a_client_with_hung_nodes_is_closed_in_time(void **state) {
  (void)state;
  (void)stopwatch(); /* It has a thread, too. */
  unsigned before = running_threads();
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  redlock_lock *lock = hold(client, "r", &options);
  for (unsigned i = 0; i < 5; i++) {
    farm_stop(&five, i);
  }
  (void)poll(NULL, 0,
             100); /* Most likely an extend is under way by then; if not, the test is easy. */
  redlock_time begun_us = redlock_now();
  assert_int_equal(redlock_client_close(client, MS(50)), REDLOCK_E_UNAVAILABLE);
  assert_took(begun_us, 0, MS(2000)); /* After 3 s the silent connections would be given up. */
  eventually(running_threads() == before);
  redlock_lock_free(lock);
  redlock_client_free(client);
  for (unsigned i = 0; i < 5; i++) {
    farm_continue(&five, i);
  }
}

static void a_dropped_client_takes_its_thread_along(void **state) {
  (void)state;
  unsigned before = running_threads();
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  redlock_lock *lock = hold(client, "r", &options);
  redlock_client_free(client);
  redlock_lock_free(lock); /* The last reference, in a finalizer: nothing waits for a node. */
  eventually(running_threads() == before);
  eventually(farm_count(&five, "r", NULL) == 0);
}

/* The thread sanitizer keeps what it knows of memory that was given back. The address
   sanitizer keeps the memory itself, up to 256 MB of it: over TLS that is more than a client
   uses by far. It counts what is lost by other means. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define KEEPS_WHAT_WAS_FREED true
#else
#define KEEPS_WHAT_WAS_FREED false
#endif

static unsigned cycles(void) {
  const char *said = getenv("WATCHDOG_CYCLES"); /* NOLINT(concurrency-mt-unsafe) */
  return said != NULL ? (unsigned)strtoul(said, NULL, 10) : 100;
}

static void cycles_of_clients_leave_nothing(void **state) {
  (void)state;
  unsigned threads_before = running_threads();
  unsigned descriptors = open_descriptors();
  redlock_options options = kept();
  size_t bytes = 0;
  for (unsigned i = 0; i < cycles(); i++) {
    redlock_client *client = client_of(&five, 1, NULL);
    redlock_lock *lock = hold(client, "r", &options);
    if (i % 2 == 0) {
      assert_ok(lock, redlock_lock_release(lock));
    }
    if (i % 3 == 0) {
      assert_int_equal(redlock_client_close(client, EVENTUALLY_US), REDLOCK_OK);
    }
    redlock_lock_free(lock);
    redlock_client_free(client);
    if (i % 2 != 0) {
      eventually(farm_count(&five, "r", NULL) == 0);
    }
    if (i == cycles() / 5) {
      bytes = resident_bytes();
    }
  }
  eventually(running_threads() == threads_before);
  assert_int_equal(open_descriptors(), descriptors);
  assert_true(KEEPS_WHAT_WAS_FREED || resident_bytes() < bytes + 1024 * 1024);
}

/* The loop has its one descriptor, and does not come to it. */
static void a_loop_that_is_late_loses_no_lease(void **state) {
  (void)state;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  assert_true(redlock_client_pollfd(client) >= 0);
  redlock_lock *lock = hold(client, "r", &options);
  compute_until_extended(lock);
  compute_until_extended(lock);
  pump_until(client, all_up(client));
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_client_free(client);
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

/* As docs/c.md tells programs without a loop. */
static void a_thread_that_waits_for_losses_is_told_while_the_program_computes(void **state) {
  (void)state;
  watch self = {.client = client_of(&five, 5, NULL)};
  redlock_options options = kept();
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, watch_for_losses, &self), 0);
  redlock_lock *lock = hold(self.client, "r", &options);
  compute_until_extended(lock);
  assert_null(atomic_load(&self.lost));
  for (unsigned i = 0; i < 5; i++) {
    (void)farm_command(&five, i, "SET", "r", "somebody", (char *)NULL);
  }
  eventually(atomic_load(&self.lost) == lock);
  assert_int_equal(redlock_lock_lost(lock, NULL), REDLOCK_E_LOST);
  atomic_store(&self.stop, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  redlock_lock_free(lock);
  redlock_client_free(self.client);
}

typedef struct teller {
  atomic_uint calls;
  redlock_lock *_Atomic lost;
  pthread_t caller;
} teller;

static void is_told(redlock_client *client, void *data) {
  teller *self = data;
  redlock_lock *lost;
  self->caller = pthread_self();
  atomic_fetch_add(&self->calls, 1);
  while ((lost = redlock_client_next_lost(client)) != NULL) {
    if (redlock_lock_lost(lost, NULL) != REDLOCK_E_UNAVAILABLE) {
      (void)redlock_lock_extend(lost, 0, NULL); /* It may block, though it comes to nothing. */
      atomic_store(&self->lost, lost);
    }
  }
}

/* Who notices: the keeper that polls; a thread in a call while the keeper sleeps; one that only looks. */
static void a_program_without_a_loop_is_called_when_leases_are_lost(void **state) {
  (void)state;
  teller self = {0};
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options long_one = kept();
  assert_int_equal(redlock_client_on_lost(client, is_told, &self), REDLOCK_OK);
  redlock_lock *first = hold(client, "r", &long_one);
  for (unsigned i = 0; i < 5; i++) {
    (void)farm_command(&five, i, "SET", "r", "somebody", (char *)NULL);
  }
  eventually(atomic_load(&self.lost) == first);
  assert_false(pthread_equal(self.caller, pthread_self()));

  redlock_lock *second = hold_for(client, "s", MS(200));
  eventually(atomic_load(&self.lost) == second); /* It runs out, and nobody calls. */

  redlock_lock *third = hold_for(client, "t", MS(200));
  redlock_options patient = {.wait_us = MS(500)};
  redlock_lock *waiting = new_lock(client, "r");
  assert_int_equal(redlock_lock_acquire(waiting, &patient, NULL), REDLOCK_E_TAKEN);
  eventually(atomic_load(&self.lost) == third); /* While this thread led. */

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

/* It asks later, if at all. */
static void
a_program_that_only_notes_the_call_is_called_again_when_the_lease_is_over(void **state) {
  (void)state;
  atomic_uint calls = 0;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  options.ttl_us = MS(3000);
  options.node_timeout_us = MS(500);
  redlock_lock *lock = new_lock(client, "r");
  eventually(redlock_lock_acquire(lock, &options, NULL) == REDLOCK_OK);
  assert_int_equal(redlock_client_on_lost(client, count_calls, &calls), REDLOCK_OK);
  for (unsigned i = 0; i < 5; i++) {
    farm_stop(&five, i);
  }
  eventually(redlock_lock_lost(lock, NULL) == REDLOCK_E_UNAVAILABLE && atomic_load(&calls) > 0);
  unsigned before = atomic_load(&calls);
  eventually(redlock_lock_lost(lock, NULL) == REDLOCK_E_EXPIRED);
  for (unsigned i = 0; i < 5; i++) {
    farm_continue(&five, i);
  }
  eventually(atomic_load(&calls) > before);
  redlock_lock_free(lock);
  redlock_client_free(client);
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

/* Its thread goes on with the client when the program returns to it. */
static void the_last_reference_may_be_given_up_in_on_lost(void **state) {
  (void)state;
  unsigned before = running_threads();
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
    eventually(running_threads() == before);
  }
}

static void close_the_client(redlock_client *client, void *data) {
  int error = redlock_client_close(client, EVENTUALLY_US);
  atomic_store((atomic_int *)data, error == REDLOCK_OK ? 1 : error);
}

static void a_client_that_is_closed_in_on_lost_leaves_no_thread(void **state) {
  (void)state;
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
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/* ---------------------------------------------------------------------------------------- forks */

static int child_looks(void *argument) {
  redlock_lock *lock = argument;
  return redlock_lock_remaining(lock) == 0 && redlock_lock_release(lock) == REDLOCK_E_NOT_HELD ? 0
                                                                                               : 1;
}

static void the_keeper_may_be_forked_at_any_time(void **state) {
  (void)state;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  options.extend_every_us = MS(2);
  redlock_lock *lock = hold(client, "r", &options);
  for (unsigned i = 0; i < 60; i++) {
    in_child(child_looks, lock);
  }
  assert_true(redlock_lock_remaining(lock) > 0);
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/* -------------------------------------------------------------------------------------- the host */

static atomic_int signalled; /* the thread that a handler ran in */

static void note_thread(int number) {
  (void)number;
  atomic_store(&signalled, (int)syscall(SYS_gettid));
}

static void the_keeper_takes_no_signal_of_the_program(void **state) {
  (void)state;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  redlock_lock *lock = hold(client, "r", &options);
  struct sigaction action = {.sa_handler = note_thread};
  sigset_t usr1;
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  assert_int_equal(sigemptyset(&usr1), 0);
  assert_int_equal(sigaddset(&usr1, SIGUSR1), 0);
  assert_int_equal(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0);
  assert_int_equal(kill(getpid(), SIGUSR1),
                   0); /* Any thread that has it not blocked would take it. */
  (void)poll(NULL, 0, 50);
  assert_int_equal(atomic_load(&signalled), 0);
  assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL), 0);
  assert_int_equal(atomic_load(&signalled), getpid());
  redlock_lock_free(lock);
  redlock_client_free(client);
}

static void an_idle_keeper_sleeps(void **state) {
  (void)state;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  options.extend_every_us = 0; /* a third of the ttl */
  redlock_lock *lock = hold(client, "r", &options);
  struct rusage before, after;
  pump_until(client, all_up(client));
  assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
  (void)poll(NULL, 0, 500);
  assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
  assert_true(after.ru_nvcsw - before.ru_nvcsw < 20);
  redlock_lock_free(lock);
  redlock_client_free(client);
}

/* The release of a lock that was dropped while a node was away goes out when the node is back. */
static void what_a_finalizer_has_left_is_sent(void **state) {
  (void)state;
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  redlock_lock *keeping = hold(client, "keeping", &options);
  redlock_lock *lock = hold(client, "r", &options);
  eventually(farm_count(&five, "r", NULL) == 5);
  farm_stop(&five, 0);
  redlock_lock_free(lock);
  assert_true(farm_count(&five, "keeping", redlock_lock_token(keeping)) >= 4);
  eventually(farm_count(&five, "r", NULL) <= 1);
  farm_continue(&five, 0);
  eventually(farm_count(&five, "r", NULL) == 0);
  farm_kill(&five, 1);
  farm_restart(&five, 1);
  eventually(farm_connections(&five, 1) >= 1); /* The watchdog connects. */
  redlock_lock_free(keeping);
  redlock_client_free(client);
}

/* ------------------------------------------------------------------------------ beside the calls */

static atomic_bool stop;

typedef struct worker {
  pthread_t thread;
  redlock_client *client;
  unsigned number;
  atomic_uint errors;
  atomic_uint pairs;
} worker;

static void *work(void *argument) {
  worker *self = argument;
  redlock_options options = once();
  char name[32];
  (void)snprintf(name, sizeof name, "w%u", self->number);
  redlock_lock *lock = NULL;
  self->errors += redlock_lock_new(&lock, self->client, name, strlen(name), &options) != REDLOCK_OK;
  while (!atomic_load(&stop) && atomic_load(&self->errors) == 0) {
    self->errors += redlock_lock_acquire(lock, NULL, NULL) != REDLOCK_OK;
    self->errors += redlock_lock_release(lock) != REDLOCK_OK;
    self->pairs++;
    if (self->pairs % 32 == 0) {
      (void)poll(NULL, 0, 15); /* So that the keeper leads now and then. */
    }
  }
  redlock_lock_free(lock);
  return NULL;
}

/* Leases that are extended each few milliseconds, threads, forks, frees and wake-ups. */
static void the_keeper_works_beside_threads_and_forks(void **state) {
  (void)state;
  static worker workers[4];
  redlock_client *client = client_of(&five, 5, NULL);
  redlock_options options = kept();
  options.extend_every_us = MS(3);
  redlock_lock *lock = hold(client, "r", &options);
  atomic_store(&stop, false);
  memset(workers, 0, sizeof workers);
  for (unsigned i = 0; i < 4; i++) {
    workers[i].client = client;
    workers[i].number = i;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < 20; i++) {
    redlock_lock *dropped = hold(client, "dropped", &options);
    redlock_lock_free(dropped);
    in_child(child_looks, lock);
    eventually(farm_count(&five, "dropped", NULL) == 0);
    assert_true(redlock_lock_remaining(lock) > 0);
  }
  atomic_store(&stop, true);
  for (unsigned i = 0; i < 4; i++) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    assert_int_equal(workers[i].errors, 0);
    assert_true(workers[i].pairs > 0);
  }
  assert_int_equal(redlock_lock_lost(lock, NULL), REDLOCK_OK);
  assert_ok(lock, redlock_lock_release(lock));
  redlock_lock_free(lock);
  redlock_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup(name, five_reset)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_idle_keeper_sleeps), /* before there is a witness, which does not sleep long */
      TEST(a_lease_is_kept_while_the_program_computes_and_sleeps),
      TEST(without_auto_extend_there_is_no_thread),
      TEST(a_client_with_hung_nodes_is_closed_in_time),
      TEST(a_dropped_client_takes_its_thread_along),
      TEST(cycles_of_clients_leave_nothing),
      TEST(a_loop_that_is_late_loses_no_lease),
      TEST(a_thread_that_waits_for_losses_is_told_while_the_program_computes),
      TEST(a_program_without_a_loop_is_called_when_leases_are_lost),
      TEST(a_program_that_only_notes_the_call_is_called_again_when_the_lease_is_over),
      TEST(the_last_reference_may_be_given_up_in_on_lost),
      TEST(a_client_that_is_closed_in_on_lost_leaves_no_thread),
      TEST(the_keeper_may_be_forked_at_any_time),
      TEST(the_keeper_takes_no_signal_of_the_program),
      TEST(what_a_finalizer_has_left_is_sent),
      TEST(the_keeper_works_beside_threads_and_forks),
  };
  cmocka_set_test_filter(getenv("WATCHDOG_TEST")); /* long/cycles wants but one */
  return cmocka_run_group_tests_name("the keeper", tests, five_start_threaded, five_end);
}
