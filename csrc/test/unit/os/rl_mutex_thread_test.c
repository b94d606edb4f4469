/*
 * Mutexes and forks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_mutex.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "rl_test.h"

static rl_mutex first, second;
static unsigned long left, right; /* equal while no thread holds |first| */
static atomic_bool stop;

/* Valgrind runs one thread at a time, and a thread that never waits for seconds. */
static bool under_valgrind(void) {
  return getenv("REDLOCK_TEST_VALGRIND") != NULL;
}

static void *work(void *argument) {
  bool yields = under_valgrind();
  (void)argument;
  while (!atomic_load(&stop)) {
    if (yields) {
      (void)sched_yield();
    }
    rl_mutex_lock(&first);
    left++;
    for (volatile unsigned i = 0; i < 50; i++) {
    }
    right++;
    rl_mutex_unlock(&first);
  }
  return NULL;
}

/* A child hangs if a mutex is locked in it; SIGALRM ends it. */
TEST(child_finds_free_mutexes_and_consistent_data) {
  pthread_t thread;
  atomic_store(&stop, false);
  assert_true(rl_mutex_init(&first));
  assert_true(rl_mutex_init(&second));
  assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
  unsigned forks = under_valgrind() ? 30 : 300;
  for (unsigned i = 0; i < forks; i++) {
    pid_t child = fork();
    if (child == 0) {
      (void)alarm(10);
      rl_mutex_lock(&second);
      rl_mutex_lock(&first);
      _exit(left == right ? 0 : 1);
    }
    assert_int_equal(exit_status(child), 0);
  }
  atomic_store(&stop, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  rl_mutex_lock(&second); /* The parent has unlocked them. */
  rl_mutex_unlock(&second);
  rl_mutex_lock(&first);
  rl_mutex_unlock(&first);
  rl_mutex_free(&first);
  rl_mutex_free(&second);
}

/* In any order, because they are in a list. */
TEST(mutexes_come_and_go_during_forks) {
  static rl_mutex some[3];
  static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
  for (size_t i = 0; i < COUNT_OF(orders); i++) {
    for (unsigned k = 0; k < 3; k++) {
      assert_true(rl_mutex_init(&some[k]));
    }
    for (unsigned k = 0; k < 3; k++) {
      rl_mutex_free(&some[orders[i][k]]);
      pid_t child = fork();
      if (child == 0) {
        _exit(0);
      }
      assert_int_equal(exit_status(child), 0);
    }
  }
}
