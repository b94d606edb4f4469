/*
 * A timerfd: a timer that poll() can wait for, on the clock of leases.
 *
 * SPDX-License-Identifier: MIT
 */
#include "os/rl_timerfd.h"

#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/timerfd.h>
#endif

#include "base/rl_time.h"

void rl_timerfd_init(rl_timerfd *timer) {
  timer->fd = -1;
  timer->at_us = REDLOCK_NEVER;
}

void rl_timerfd_close(rl_timerfd *timer) {
  if (timer->fd >= 0) {
    (void)close(timer->fd);
  }
  rl_timerfd_init(timer);
}

#if defined(__linux__)
bool rl_timerfd_open(rl_timerfd *timer) {
  if (timer->fd >= 0) {
    return true;
  }
#ifdef CLOCK_BOOTTIME
  timer->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
#endif
  if (timer->fd < 0) {
    timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  }
  return timer->fd >= 0;
}

void rl_timerfd_set(rl_timerfd *timer, redlock_time at_us) {
  redlock_time now_us = redlock_now();
  struct itimerspec wait = {{0, 0}, {0, 0}};
  bool expired = timer->at_us <= now_us;
  if (expired ? at_us <= now_us : timer->at_us <= at_us) {
    return;
  }
  if (at_us != REDLOCK_NEVER) {
    redlock_duration wait_us = rl_time_sub(at_us, now_us);
    wait.it_value.tv_sec = (time_t)(wait_us / REDLOCK_SECONDS);
    wait.it_value.tv_nsec = (long)(wait_us % REDLOCK_SECONDS) * 1000 + (wait_us == 0);
  }
  (void)timerfd_settime(timer->fd, 0, &wait, NULL);
  timer->at_us = at_us;
}
#else
bool rl_timerfd_open(rl_timerfd *timer) {
  (void)timer;
  return false;
}

void rl_timerfd_set(rl_timerfd *timer, redlock_time at_us) {
  (void)timer;
  (void)at_us;
}
#endif
