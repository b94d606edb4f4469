/*
 * A sleeper: the object on which a thread sleeps, and by which another thread wakes it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_sleeper.h"

#include <time.h>

#include "base/rl_time.h"
#include "os/rl_clock.h"

#if RL_SLEEPER_IS_NATIVE

bool rl_sleeper_init(rl_sleeper *sleeper) {
  return sem_init(&sleeper->native, 0, 0) == 0;
}

void rl_sleeper_free(rl_sleeper *sleeper) {
  (void)sem_destroy(&sleeper->native);
}

void rl_sleeper_post(rl_sleeper *sleeper) {
  (void)sem_post(&sleeper->native);
}

bool rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us) {
  struct timespec until;
  int error;
  do { /* Repeat after a signal handler, and after each slice. */
    if (until_us == REDLOCK_NEVER) {
      error = sem_wait(&sleeper->native);
    } else {
      rl_clock_monotonic(until_us, &until);
      error = sem_clockwait(&sleeper->native, CLOCK_MONOTONIC, &until);
    }
  } while (error != 0 && redlock_now() < until_us);
  return error == 0;
}

#else

bool rl_sleeper_init(rl_sleeper *sleeper) {
  pthread_condattr_t attributes;
  sleeper->posted = false;
  if (pthread_condattr_init(&attributes) != 0) {
    return false;
  }
#if !defined(__APPLE__)
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
  int error = pthread_cond_init(&sleeper->condition, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  if (error == 0) {
    error = pthread_mutex_init(&sleeper->mutex, NULL);
  }
  return error == 0;
}

void rl_sleeper_free(rl_sleeper *sleeper) {
  (void)pthread_cond_destroy(&sleeper->condition);
  (void)pthread_mutex_destroy(&sleeper->mutex);
}

void rl_sleeper_post(rl_sleeper *sleeper) {
  (void)pthread_mutex_lock(&sleeper->mutex);
  sleeper->posted = true;
  (void)pthread_cond_signal(&sleeper->condition);
  (void)pthread_mutex_unlock(&sleeper->mutex);
}

/* Sleeps until |until_us|, or for a shorter time. */
static void rl_sleeper_sleep(rl_sleeper *sleeper, redlock_time until_us) {
#if defined(__APPLE__)
  /* Its conditions wait on no monotonic clock, but for a time. */
  redlock_duration wait_us = rl_time_sub(until_us, redlock_now());
  wait_us = wait_us < REDLOCK_SECONDS ? wait_us : REDLOCK_SECONDS;
  struct timespec wait = {(time_t)(wait_us / REDLOCK_SECONDS),
                          (long)(wait_us % REDLOCK_SECONDS) * 1000};
  (void)pthread_cond_timedwait_relative_np(&sleeper->condition, &sleeper->mutex, &wait);
#else
  struct timespec until;
  rl_clock_monotonic(until_us, &until);
  (void)pthread_cond_timedwait(&sleeper->condition, &sleeper->mutex, &until);
#endif
}

bool rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us) {
  (void)pthread_mutex_lock(&sleeper->mutex);
  while (!sleeper->posted && redlock_now() < until_us) {
    if (until_us == REDLOCK_NEVER) {
      (void)pthread_cond_wait(&sleeper->condition, &sleeper->mutex);
    } else {
      rl_sleeper_sleep(sleeper, until_us);
    }
  }
  bool posted = sleeper->posted;
  sleeper->posted = false;
  (void)pthread_mutex_unlock(&sleeper->mutex);
  return posted;
}

#endif
