/*
 * Threads of the library: joined or detached, without signals, on a stack of any size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_thread.h"

#include <signal.h>
#include <stdatomic.h>

#include "rl_test.h"

#define STACK ((size_t)300 * 1024)

typedef struct seen {
  bool detached;
  bool takes_signals;
  size_t stack;
  atomic_bool ready;
} seen;

static void *look(void *argument) {
  seen *self = argument;
  pthread_attr_t attributes;
  sigset_t blocked;
  int state = -1;
  (void)pthread_getattr_np(pthread_self(), &attributes);
  (void)pthread_attr_getdetachstate(&attributes, &state);
  (void)pthread_attr_getstacksize(&attributes, &self->stack);
  (void)pthread_attr_destroy(&attributes);
  (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  self->detached = state == PTHREAD_CREATE_DETACHED;
  self->takes_signals = !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGALRM);
  atomic_store(&self->ready, true);
  return self;
}

TEST(thread_without_a_handle_is_detached) {
  static seen joined, detached; /* A detached thread may still run when the test ends. */
  pthread_t thread;
  void *result = NULL;
  assert_int_equal(rl_thread_start(&thread, STACK, look, &joined), 0);
  assert_int_equal(rl_thread_start(NULL, STACK, look, &detached), 0);
  eventually(atomic_load(&joined.ready) && atomic_load(&detached.ready));
  assert_false(joined.detached);
  assert_true(detached.detached);
  assert_int_equal(pthread_join(thread, &result), 0);
  assert_ptr_equal(result, &joined);
}

TEST(thread_receives_no_signals) {
  static seen one;
  sigset_t before, after;
  pthread_t thread;
  assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
  assert_int_equal(rl_thread_start(&thread, STACK, look, &one), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_false(one.takes_signals);
  assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
  for (int number = 1; number < 32; number++) {
    assert_int_equal(sigismember(&before, number), sigismember(&after, number));
  }
}

TEST(thread_gets_the_default_stack_if_its_own_is_refused) {
  const size_t stacks[] = {STACK, 0, SIZE_MAX / 4};
  for (unsigned i = 0; i < COUNT_OF(stacks); i++) {
    static seen ones[3];
    pthread_t thread;
    assert_int_equal(rl_thread_start(&thread, stacks[i], look, &ones[i]), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(ones[i].stack > 0 && (i > 0 || ones[i].stack >= STACK));
  }
}
