/*
 * A semaphore: one thread sleeps until another posts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_semaphore.h"

#include <time.h>

#include "os/rl_clock.h"

#if RL_SEMAPHORE_IS_NATIVE

bool rl_semaphore_init(rl_semaphore *semaphore) {
  return sem_init(&semaphore->native, 0, 0) == 0;
}

void rl_semaphore_free(rl_semaphore *semaphore) {
  (void)sem_destroy(&semaphore->native);
}

void rl_semaphore_post(rl_semaphore *semaphore) {
  (void)sem_post(&semaphore->native);
}

bool rl_semaphore_wait(rl_semaphore *semaphore, redlock_time until_us) {
  struct timespec until;
  int error;
  do { /* Repeat after a signal handler, and after each slice. */
    if (until_us == REDLOCK_NEVER) {
      error = sem_wait(&semaphore->native);
    } else {
      rl_clock_monotonic(until_us, &until);
      error = sem_clockwait(&semaphore->native, CLOCK_MONOTONIC, &until);
    }
  } while (error != 0 && redlock_now() < until_us);
  return error == 0;
}

#else

bool rl_semaphore_init(rl_semaphore *semaphore) {
  pthread_condattr_t attributes;
  semaphore->posted = false;
  if (pthread_condattr_init(&attributes) != 0) {
    return false;
  }
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  int error = pthread_cond_init(&semaphore->condition, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  if (error == 0) {
    error = pthread_mutex_init(&semaphore->mutex, NULL);
  }
  return error == 0;
}

void rl_semaphore_free(rl_semaphore *semaphore) {
  (void)pthread_cond_destroy(&semaphore->condition);
  (void)pthread_mutex_destroy(&semaphore->mutex);
}

void rl_semaphore_post(rl_semaphore *semaphore) {
  (void)pthread_mutex_lock(&semaphore->mutex);
  semaphore->posted = true;
  (void)pthread_cond_signal(&semaphore->condition);
  (void)pthread_mutex_unlock(&semaphore->mutex);
}

bool rl_semaphore_wait(rl_semaphore *semaphore, redlock_time until_us) {
  struct timespec until;
  (void)pthread_mutex_lock(&semaphore->mutex);
  while (!semaphore->posted && redlock_now() < until_us) {
    if (until_us == REDLOCK_NEVER) {
      (void)pthread_cond_wait(&semaphore->condition, &semaphore->mutex);
    } else {
      rl_clock_monotonic(until_us, &until);
      (void)pthread_cond_timedwait(&semaphore->condition, &semaphore->mutex, &until);
    }
  }
  bool posted = semaphore->posted;
  semaphore->posted = false;
  (void)pthread_mutex_unlock(&semaphore->mutex);
  return posted;
}

#endif
