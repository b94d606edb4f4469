/*
 * A semaphore: one thread sleeps until another posts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_semaphore.h"

#include <time.h>

#include "base/rl_time.h"
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
#if !defined(__APPLE__)
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
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

/* Sleeps until |until_us|, or for a shorter time. */
static void rl_semaphore_sleep(rl_semaphore *semaphore, redlock_time until_us) {
#if defined(__APPLE__)
  /* Its conditions wait on no monotonic clock, but for a time. */
  redlock_duration wait_us = rl_time_sub(until_us, redlock_now());
  wait_us = wait_us < REDLOCK_SECONDS ? wait_us : REDLOCK_SECONDS;
  struct timespec wait = {(time_t)(wait_us / REDLOCK_SECONDS),
                          (long)(wait_us % REDLOCK_SECONDS) * 1000};
  (void)pthread_cond_timedwait_relative_np(&semaphore->condition, &semaphore->mutex, &wait);
#else
  struct timespec until;
  rl_clock_monotonic(until_us, &until);
  (void)pthread_cond_timedwait(&semaphore->condition, &semaphore->mutex, &until);
#endif
}

bool rl_semaphore_wait(rl_semaphore *semaphore, redlock_time until_us) {
  (void)pthread_mutex_lock(&semaphore->mutex);
  while (!semaphore->posted && redlock_now() < until_us) {
    if (until_us == REDLOCK_NEVER) {
      (void)pthread_cond_wait(&semaphore->condition, &semaphore->mutex);
    } else {
      rl_semaphore_sleep(semaphore, until_us);
    }
  }
  bool posted = semaphore->posted;
  semaphore->posted = false;
  (void)pthread_mutex_unlock(&semaphore->mutex);
  return posted;
}

#endif
