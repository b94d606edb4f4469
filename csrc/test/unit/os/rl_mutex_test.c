/*
 * Mutexes and forks in signal handlers, in a program with one thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_mutex.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "rl_test.h"

static rl_mutex mutex;
static bool no_attributes;
static bool no_mutex;

int __real_pthread_mutexattr_init(pthread_mutexattr_t *attributes);
int __wrap_pthread_mutexattr_init(pthread_mutexattr_t *attributes);
int __real_pthread_mutex_init(pthread_mutex_t *made, const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_init(pthread_mutex_t *made, const pthread_mutexattr_t *attributes);

int __wrap_pthread_mutexattr_init(pthread_mutexattr_t *attributes) {
  return no_attributes ? ENOMEM : __real_pthread_mutexattr_init(attributes);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *made, const pthread_mutexattr_t *attributes) {
  return no_mutex ? EAGAIN : __real_pthread_mutex_init(made, attributes);
}
static volatile pid_t forked;

static void fork_in_a_handler(int number) {
  (void)number;
  forked = fork();
}

/* Returns true if a thread holds it, also this one. */
static bool is_held(void) {
  if (pthread_mutex_trylock(&mutex.mutex) != 0) {
    return true;
  }
  rl_mutex_unlock(&mutex);
  return false;
}

TEST(fork_keeps_the_mutex_and_frees_it_in_the_child) {
  assert_true(rl_mutex_init(&mutex));
  for (unsigned held = 0; held < 2; held++) {
    if (held == 1) {
      rl_mutex_lock(&mutex);
    }
    pid_t child = fork();
    if (child == 0) {
      _exit(is_held() ? 1 : 0);
    }
    assert_true(is_held() == (held == 1));
    assert_int_equal(exit_status(child), 0);
  }
  rl_mutex_unlock(&mutex);
  assert_false(is_held());
  rl_mutex_free(&mutex);
}

/* A signal handler forks while its thread holds a mutex. */
TEST(handler_may_fork_while_its_thread_holds_a_mutex) {
  struct sigaction action = {.sa_handler = fork_in_a_handler};
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  assert_true(rl_mutex_init(&mutex));
  (void)alarm(10);
  rl_mutex_lock(&mutex);
  assert_int_equal(raise(SIGUSR1), 0);
  rl_mutex_unlock(&mutex);
  rl_mutex_lock(&mutex);
  rl_mutex_unlock(&mutex);
  if (forked == 0) {
    _exit(0);
  }
  (void)alarm(0);
  assert_int_equal(exit_status(forked), 0);
  rl_mutex_free(&mutex);
}

TEST(init_reports_what_cannot_be_made) {
  rl_mutex one;
  no_attributes = true;
  assert_false(rl_mutex_init(&one));
  no_attributes = false;
  no_mutex = true;
  assert_false(rl_mutex_init(&one));
  no_mutex = false;
  assert_true(rl_mutex_init(&one));
  rl_mutex_free(&one);
}
