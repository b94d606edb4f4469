/*
 * Starts threads of the library.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_thread.h"

#include <signal.h>
#include <unistd.h>

static int rl_thread_create(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t detached;
  int error = pthread_attr_init(&attributes);
  if (error != 0) {
    return error;
  }
  if (thread == NULL) {
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  }
  if (stack > 0) {
    (void)pthread_attr_setstacksize(&attributes, stack);
  }
  error = pthread_create(thread != NULL ? thread : &detached, &attributes, run, argument);
  (void)pthread_attr_destroy(&attributes);
  return error;
}

/*
 * The C library puts the program's thread-local memory into the stack. _SC_THREAD_STACK_MIN
 * includes it (glibc since 2.34). If that was too little, the system's default size is used.
 */
int rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument) {
  sigset_t all;
  sigset_t before;
  long minimum = sysconf(_SC_THREAD_STACK_MIN);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = rl_thread_create(thread, stack + (minimum > 0 ? (size_t)minimum : 0), run, argument);
  if (error != 0) {
    error = rl_thread_create(thread, 0, run, argument);
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}
