/*
 * A clock that moves while the program waits, and by 1 us with each reading. Included by one file
 * of a program: it defines the wrappers, and the rule |wraps| of build-aux/test.mk passes their
 * names to the linker.
 *
 * SPDX-License-Identifier: MIT
 *
 * redlock_now() returns a time that no machine can delay. poll() and ppoll() first serve all farms
 * that loopback_run() has started. If no descriptor is ready, the wrapper advances the clock to the
 * earlier of the time-out and the client's timer, and returns at once.
 *
 * The program must have one thread. Its farms must be of LOOPBACK_UNIX: bytes have arrived there
 * when send() returns.
 */
#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/rl_time.h"
#include "loopback.h"
#include "rl_test.h"

#define FAKE_CLOCK_START_US (1000 * REDLOCK_SECONDS)
#define FAKE_CLOCK_TIMERS 8
#define FAKE_CLOCK_TURNS 8 /* A reply may have been sent by a farm that was served before. */

static struct fake_clock {
  redlock_time now_us;
  void (*at_reading)(void); /* runs before each reading of the clock, unless it is NULL */
  struct {
    int fd;
    redlock_time at_us; /* 0: it is not set */
  } timers[FAKE_CLOCK_TIMERS];
  unsigned timer_calls; /* how often a timer was set */
  bool interrupts;      /* a signal arrives in the middle of every other wait */
  unsigned waits;
  bool serving; /* the farms are served: they wait for nothing */
} fake_clock = {.now_us = FAKE_CLOCK_START_US};

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
                           struct itimerspec *old_value);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
                           struct itimerspec *old_value);
redlock_time __wrap_redlock_now(void);
void __wrap_loopback_run(loopback *farm);

redlock_time __wrap_redlock_now(void) {
  if (fake_clock.at_reading != NULL) {
    fake_clock.at_reading();
  }
  return ++fake_clock.now_us;
}

/* The farm is served while the program waits, and needs no thread. */
void __wrap_loopback_run(loopback *farm) {
  farm->served = true;
}

static void fake_clock_set_timer(int fd, redlock_time at_us) {
  unsigned place = FAKE_CLOCK_TIMERS;
  for (unsigned i = 0; i < FAKE_CLOCK_TIMERS; i++) {
    bool mine = fake_clock.timers[i].fd == fd && fake_clock.timers[i].at_us != 0;
    if (mine || (place == FAKE_CLOCK_TIMERS && fake_clock.timers[i].at_us == 0)) {
      place = i;
    }
  }
  assert_true(place < FAKE_CLOCK_TIMERS);
  fake_clock.timers[place].fd = fd;
  fake_clock.timers[place].at_us = at_us;
}

/* Records the time, and sets nothing. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
                           struct itimerspec *old_value) {
  const struct itimerspec never = {{0, 0}, {0, 0}};
  redlock_duration wait_us = (redlock_duration)new_value->it_value.tv_sec * REDLOCK_SECONDS +
                             (redlock_duration)(new_value->it_value.tv_nsec + 999) / 1000;
  (void)flags;
  fake_clock.timer_calls++;
  fake_clock_set_timer(fd, wait_us == 0 ? 0 : rl_time_add(fake_clock.now_us, wait_us));
  return __real_timerfd_settime(fd, 0, &never, old_value);
}

/* Makes the due timers readable. Returns the time of the next one. */
static redlock_time fake_clock_fire(void) {
  const struct itimerspec at_once = {{0, 0}, {0, 1}};
  redlock_time next_us = REDLOCK_NEVER;
  for (unsigned i = 0; i < FAKE_CLOCK_TIMERS; i++) {
    struct pollfd fired = {fake_clock.timers[i].fd, POLLIN, 0};
    redlock_time at_us = fake_clock.timers[i].at_us;
    if (at_us == 0 || at_us > fake_clock.now_us) {
      next_us = at_us == 0 ? next_us : rl_time_min(next_us, at_us);
      continue;
    }
    fake_clock.timers[i].at_us = 0;
    if (__real_timerfd_settime(fired.fd, 0, &at_once, NULL) == 0) {
      (void)__real_poll(&fired, 1, -1);
    }
  }
  return next_us;
}

/* Returns the number of descriptors that are ready without any time passing. */
static int fake_clock_look(struct pollfd *fds, nfds_t count) {
  int ready = 0;
  fake_clock.serving = true;
  for (unsigned i = 0; i < FAKE_CLOCK_TURNS && ready == 0; i++) {
    loopback_serve();
    ready = __real_poll(fds, count, 0);
  }
  fake_clock.serving = false;
  return ready;
}

/* Waits until |until_us|. Fails the test if nothing can end the wait. */
static int fake_clock_wait(struct pollfd *fds, nfds_t count, redlock_time until_us) {
  if (fake_clock.serving) {
    return __real_poll(fds, count, 0);
  }
  redlock_time timer_us = fake_clock_fire();
  int ready = fake_clock_look(fds, count);
  if (fake_clock.interrupts && ++fake_clock.waits % 2 == 0) {
    fake_clock.now_us += ready == 0 ? rl_time_sub(until_us, fake_clock.now_us) / 2 : 0;
    errno = EINTR;
    return -1;
  }
  while (ready == 0 && fake_clock.now_us < until_us) {
    redlock_time next_us = rl_time_min(until_us, timer_us);
    if (next_us == REDLOCK_NEVER) {
      fail_msg("a wait without an end");
    }
    fake_clock.now_us = rl_time_max(next_us, fake_clock.now_us);
    timer_us = fake_clock_fire();
    ready = fake_clock_look(fds, count);
  }
  return ready;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
  redlock_duration wait_us =
      REDLOCK_MILLISECONDS * (redlock_duration)(timeout_ms < 0 ? 0 : timeout_ms);
  return fake_clock_wait(fds, count,
                         timeout_ms < 0 ? REDLOCK_NEVER : rl_time_add(fake_clock.now_us, wait_us));
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask) {
  (void)mask;
  redlock_time until_us = REDLOCK_NEVER;
  if (timeout != NULL) {
    until_us =
        rl_time_add(fake_clock.now_us, (redlock_duration)timeout->tv_sec * REDLOCK_SECONDS +
                                           (redlock_duration)(timeout->tv_nsec + 999) / 1000);
  }
  return fake_clock_wait(fds, count, until_us);
}

#endif
