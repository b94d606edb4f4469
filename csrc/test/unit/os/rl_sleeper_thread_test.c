/*
 * Semaphores: a post wakes one thread, and nothing else does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_sleeper.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/rl_time.h"
#include "rl_test.h"
#include "suspend.h"

static rl_sleeper sleeper;

TEST(earlier_post_ends_the_next_wait) {
  assert_true(rl_sleeper_init(&sleeper));
  rl_sleeper_post(&sleeper);
  assert_true(rl_sleeper_wait(&sleeper, REDLOCK_NEVER));
  assert_false(rl_sleeper_wait(&sleeper, 0));
  rl_sleeper_post(&sleeper);
  assert_true(rl_sleeper_wait(&sleeper, 0)); /* although the time has passed */
  rl_sleeper_free(&sleeper);
}

TEST(sleep_ends_at_its_time_and_not_before) {
  assert_true(rl_sleeper_init(&sleeper));
  for (unsigned i = 0; i < 20; i++) {
    redlock_time until_us = redlock_now() + i * 500;
    assert_false(rl_sleeper_wait(&sleeper, until_us));
    assert_true(redlock_now() >= until_us);
    assert_true(redlock_now() < until_us + 10 * SECONDS);
  }
  rl_sleeper_free(&sleeper);
}

static atomic_bool sleeps;

static void *sleep_for_a_minute(void *argument) {
  redlock_time until_us = redlock_now() + 60 * SECONDS;
  atomic_store(&sleeps, true);
  return rl_sleeper_wait(&sleeper, until_us) ? argument : NULL;
}

/* A sleep consists of slices of at most a second. */
TEST(sleep_ends_soon_after_a_suspend) {
  pthread_t thread;
  void *posted;
  witness_start();
  assert_true(rl_sleeper_init(&sleeper));
  assert_int_equal(pthread_create(&thread, NULL, sleep_for_a_minute, &sleeper), 0);
  eventually(atomic_load(&sleeps));
  redlock_time resumed_us = suspend_for(100 * SECONDS);
  assert_int_equal(pthread_join(thread, &posted), 0);
  assert_null(posted);
  redlock_duration took_us = redlock_now() - resumed_us;
  assert_true(took_us < 2 * SECONDS + witness_delay_us(resumed_us));
  rl_sleeper_free(&sleeper);
}

/*
 * The thread sanitizer delays a signal until the thread makes a call that it knows; a sleeper makes
 * none.
 */
#if !defined(__SANITIZE_THREAD__)
static atomic_uint handled;
static atomic_bool woken;

static void count(int number) {
  (void)number;
  atomic_fetch_add(&handled, 1);
}

static void *sleep_until_posted(void *argument) {
  redlock_duration patience_us = argument == NULL ? REDLOCK_NEVER : 60 * SECONDS;
  bool posted = rl_sleeper_wait(&sleeper, rl_time_add(redlock_now(), patience_us));
  atomic_store(&woken, posted);
  return NULL;
}

/* With and without a time limit. */
TEST(post_ends_a_sleep_and_a_signal_does_not) {
  struct sigaction action = {.sa_handler = count};
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  for (unsigned timed = 0; timed < 2; timed++) {
    pthread_t thread;
    assert_true(rl_sleeper_init(&sleeper));
    atomic_store(&woken, false);
    atomic_store(&handled, 0);
    assert_int_equal(
        pthread_create(&thread, NULL, sleep_until_posted, timed == 0 ? NULL : &sleeper), 0);
    for (unsigned i = 1; i <= 5; i++) {
      assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
      eventually(atomic_load(&handled) >= i);
    }
    assert_false(atomic_load(&woken));
    rl_sleeper_post(&sleeper);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&woken));
    rl_sleeper_free(&sleeper);
  }
}
#endif

/* Two threads wait for each other in turn: a lost post hangs them. */
static rl_sleeper there, back;

static void *answer(void *argument) {
  for (unsigned i = 0; i < *(unsigned *)argument; i++) {
    (void)rl_sleeper_wait(&there, REDLOCK_NEVER);
    rl_sleeper_post(&back);
  }
  return NULL;
}

TEST(no_post_is_lost_between_two_threads) {
  pthread_t thread;
  unsigned rounds = 2000;
  assert_true(rl_sleeper_init(&there));
  assert_true(rl_sleeper_init(&back));
  assert_int_equal(pthread_create(&thread, NULL, answer, &rounds), 0);
  for (unsigned i = 0; i < rounds; i++) {
    rl_sleeper_post(&there);
    assert_true(rl_sleeper_wait(&back, rl_time_add(redlock_now(), 60 * SECONDS)));
  }
  assert_int_equal(pthread_join(thread, NULL), 0);
  rl_sleeper_free(&there);
  rl_sleeper_free(&back);
}
