/*
 * Waits of rl_caller, rl_watchdog, rl_poll and cli_loop: after a suspend, each wait whose time has
 * come ends at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "suspend.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../../../cli/cli_loop.c"
#include "client_world.h"

static const char KEY[] = "orders:42";
static const char OTHER[] = "ffffffffffffffffffffffffffffffffffffffff";

/* Less than a slice (rl_clock.h), so that only a timer can end a wait in time. */
#define AT_ONCE_US (500 * MS)
#define SLICE_US (1000 * MS)

static loopback *farm;
static redlock_client *client;

static int begin(void **state) {
  redlock_options options = {.notify = REDLOCK_NO};
  witness_start();
  suspend_refuse_timers(false);
  farm = loopback_new(3, LOOPBACK_TCP);
  loopback_run(farm);
  client = new_client_of(farm, (redlock_settings){.options = &options});
  (void)suspend_timer_calls();
  return 0;
}

static int end(void **state) {
  redlock_client_free(client);
  return loopback_end(farm) ? 0 : 1;
}

/* Fails if more than |bound_us| and the delay of the scheduler has passed since the resume. */
static void check_soon(redlock_time resumed_us, redlock_duration bound_us) {
  redlock_duration took_us = redlock_now() - resumed_us;
  redlock_duration delay_us = witness_delay_us(resumed_us);
  if (took_us > bound_us + delay_us) {
    fail_msg("%llu ms after the resume, %llu ms of which the scheduler took",
             (unsigned long long)(took_us / MS), (unsigned long long)(delay_us / MS));
  }
}

/* Another client holds the key without an expiry. */
static void hold_by_another(void) {
  loopback_lock(farm);
  for (unsigned i = 0; i < farm->count; i++) {
    fake_store_put(&farm->nodes[i].store, KEY, OTHER, REDLOCK_NEVER);
  }
  loopback_unlock(farm);
}

/*
 * Waits until a thread polls for 8 s or longer, which excludes attempts in flight, and |sleepers|
 * threads sleep.
 */
static void await_rest(size_t sleepers) {
  redlock_time patience_us = redlock_now() + 20 * SECONDS;
  for (bool rests = false; !rests; (void)poll(NULL, 0, 1)) {
    assert_true(redlock_now() < patience_us);
    rl_client_enter(client);
    size_t asleep = 0;
    for (const rl_list *at = client->callers.asleep.next; at != &client->callers.asleep;
         at = at->next) {
      asleep++;
    }
    rests = client->callers.polling && asleep == sleepers &&
            client->callers.wants.deadline_us > redlock_now() + 8 * SECONDS;
    rl_client_leave(client);
  }
}

/* -------------------------------------------------------------------------------------- callers */

static void *acquire(void *lock) {
  int error = redlock_lock_acquire(lock, NULL, NULL);
  return error == REDLOCK_E_TAKEN ? lock : NULL;
}

/* |count| threads of one client wait for a minute; the machine is suspended for longer. */
static void acquire_ends_after_a_suspend(size_t count, redlock_duration bound_us) {
  redlock_options options = {.wait_us = 60 * SECONDS,
                             .retry_delay_us = 20 * SECONDS,
                             .retry_jitter_us = 1,
                             .node_timeout_us = 5 * SECONDS};
  redlock_lock *locks[2];
  pthread_t threads[2];
  hold_by_another();
  for (size_t i = 0; i < count; i++) {
    locks[i] = new_lock(client, KEY, &options);
    assert_int_equal(pthread_create(&threads[i], NULL, acquire, locks[i]), 0);
  }
  await_rest(count - 1);
  redlock_time resumed_us = suspend_for(100 * SECONDS);
  for (size_t i = 0; i < count; i++) {
    void *taken;
    assert_int_equal(pthread_join(threads[i], &taken), 0);
    assert_ptr_equal(taken, locks[i]);
    redlock_lock_free(locks[i]);
  }
  check_soon(resumed_us, bound_us);
}

TEST(wait_ends_at_once_after_a_suspend) {
  acquire_ends_after_a_suspend(1, AT_ONCE_US);
}

TEST(sleepers_wait_ends_at_once_after_a_suspend) {
  acquire_ends_after_a_suspend(2, AT_ONCE_US);
}

TEST(wait_without_a_timer_ends_within_a_slice_after_a_suspend) {
  suspend_refuse_timers(true);
  acquire_ends_after_a_suspend(1, SLICE_US + AT_ONCE_US);
  suspend_refuse_timers(false);
}

/* --------------------------------------------------------------------------------------- leases */

static atomic_int loss; /* its reason */

static void report_loss(redlock_client *of, void *data) {
  redlock_lock *lost = redlock_client_next_lost(of);
  (void)data;
  atomic_store(&loss, lost == NULL ? REDLOCK_OK : redlock_lock_lost(lost, NULL));
}

TEST(loss_is_reported_at_once_after_a_suspend) {
  redlock_options options = {.ttl_us = 60 * SECONDS, .notify_lost = REDLOCK_YES};
  redlock_lock *lock = new_lock(client, KEY, &options);
  atomic_store(&loss, REDLOCK_OK);
  assert_error(redlock_client_on_lost(client, report_loss, NULL), REDLOCK_OK);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  await_rest(0);
  redlock_time resumed_us = suspend_for(100 * SECONDS);
  while (atomic_load(&loss) == REDLOCK_OK) {
    check_soon(resumed_us, AT_ONCE_US);
    (void)poll(NULL, 0, 1);
  }
  assert_error(atomic_load(&loss), REDLOCK_E_EXPIRED);
  redlock_lock_free(lock);
}

/* 30 s of the lease are left, more than a stall of the scheduler. */
TEST(lease_is_extended_at_once_after_a_suspend) {
  redlock_options options = {.ttl_us = 300 * SECONDS, .auto_extend = REDLOCK_YES};
  redlock_lock *lock = new_lock(client, KEY, &options);
  assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
  await_rest(0);
  redlock_time resumed_us = suspend_for(redlock_lock_remaining(lock) - 30 * SECONDS);
  while (redlock_lock_remaining(lock) < 200 * SECONDS) {
    check_soon(resumed_us, AT_ONCE_US);
    (void)poll(NULL, 0, 1);
  }
  redlock_lock_free(lock);
}

/* ---------------------------------------------------------------------------------------- loops */

static redlock_lock *begin_acquire(void) {
  static const redlock_options options = {.ttl_us = 200 * SECONDS,
                                          .node_timeout_us = 20 * SECONDS,
                                          .retry_count = REDLOCK_RETRIES_NONE};
  redlock_lock *lock = new_lock(client, KEY, &options);
  set_deaf(farm, true);
  assert_error(redlock_lock_acquire_start(lock, NULL), REDLOCK_OK);
  return lock;
}

TEST(descriptor_is_readable_at_once_after_a_suspend) {
  struct pollfd one = {redlock_client_pollfd(client), POLLIN, 0};
  redlock_lock *lock = begin_acquire();
  while (poll(&one, 1, 100) > 0) {
    assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  }
  redlock_time resumed_us = suspend_for(100 * SECONDS);
  assert_int_equal(poll(&one, 1, 20000), 1);
  check_soon(resumed_us, AT_ONCE_US);
  redlock_lock_free(lock);
}

/* Waits until the timer of the descriptor is set to 2 s or more. */
static void await_timer(void) {
  redlock_time patience_us = redlock_now() + 20 * SECONDS;
  for (bool is_set = false; !is_set; (void)poll(NULL, 0, 1)) {
    assert_true(redlock_now() < patience_us);
    rl_client_enter(client);
    is_set =
        client->timer.at_us > redlock_now() + 2 * SECONDS && client->timer.at_us != REDLOCK_NEVER;
    rl_client_leave(client);
  }
}

typedef struct turns {
  cli_loop loop;
  redlock_lock *lock;
} turns;

static void *turn(void *argument) {
  turns *self = argument;
  while (redlock_lock_result(self->lock) == REDLOCK_PENDING) {
    (void)cli_loop_turn(&self->loop, REDLOCK_NEVER, NULL, 0);
  }
  return NULL;
}

/* `redlock run` waits in such turns. */
TEST(turn_of_the_cli_ends_at_once_after_a_suspend) {
  int ends[2];
  pthread_t thread;
  assert_int_equal(pipe(ends), 0);
  assert_true(cli_loop_prepare(ends[0]));
  turns self = {.loop = {.client = client, .signals = ends[0]}, .lock = begin_acquire()};
  assert_int_equal(pthread_create(&thread, NULL, turn, &self), 0);
  await_timer();
  redlock_time resumed_us = suspend_for(100 * SECONDS);
  assert_int_equal(pthread_join(thread, NULL), 0);
  check_soon(resumed_us, AT_ONCE_US);
  redlock_lock_free(self.lock);
  (void)close(ends[0]);
  (void)close(ends[1]);
}

/* A loop that waits by pollfds() and timeout(), with poll(). */
TEST(timeout_is_a_slice_at_most) {
  redlock_lock *lock = begin_acquire();
  do {
    assert_error(redlock_client_process(client, NULL, 0), REDLOCK_OK);
  } while (redlock_client_timeout(client) == 0);
  assert_true(redlock_client_timeout(client) <= SLICE_US);
  assert_true(redlock_client_timeout_ms(client) <= (int)(SLICE_US / MS));
  redlock_lock_free(lock);
}

/* ------------------------------------------------------------------------------------- the cost */

/* On a slow machine attempts may fail, which needs no timer either. */
TEST(pair_needs_no_timer) {
  redlock_options options = {.retry_count = REDLOCK_RETRIES_NONE};
  redlock_lock *lock = new_lock(client, KEY, &options);
  for (unsigned i = 0; i < 100; i++) {
    (void)redlock_lock_acquire(lock, NULL, NULL);
    (void)redlock_lock_release(lock);
  }
  assert_int_equal(suspend_timer_calls(), 0);
  redlock_lock_free(lock);
}

/* With a long |node_timeout| each poll may be long: the timer is set once for many. */
TEST(timer_is_not_set_for_each_wait) {
  redlock_options options = {.ttl_us = 600 * SECONDS, .node_timeout_us = 60 * SECONDS};
  redlock_lock *lock = new_lock(client, KEY, &options);
  for (unsigned i = 0; i < 100; i++) {
    assert_error(redlock_lock_acquire(lock, NULL, NULL), REDLOCK_OK);
    assert_error(redlock_lock_release(lock), REDLOCK_OK);
  }
  assert_true(suspend_timer_calls() < 10);
  redlock_lock_free(lock);
}

int main(void) {
  return tests_run(&(tests_fixture){.before = begin, .after = end});
}
