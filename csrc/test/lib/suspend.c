/* SPDX-License-Identifier: MIT */
#include "suspend.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

#define NANOSECONDS INT64_C(1000000000)
#define TIMERS_MAX 256 /* by descriptor */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *timer,
                           struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *timer,
                           struct itimerspec *before);

static _Atomic int64_t suspended_ns;
static atomic_uint timer_calls;
static atomic_bool refuses;
/* The thread's last reading, from which it computes the time of its timer. */
static _Thread_local int64_t seen_ns;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t due_ns[TIMERS_MAX]; /* of timers that count suspend; 0: not set */
static bool counts_suspend[TIMERS_MAX];

static int64_t now_ns(void) {
  struct timespec now;
  (void)__real_clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * NANOSECONDS + now.tv_nsec + atomic_load(&suspended_ns);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  if (clock != CLOCK_BOOTTIME) {
    return __real_clock_gettime(clock, now);
  }
  seen_ns = now_ns();
  *now = (struct timespec){(time_t)(seen_ns / NANOSECONDS), (long)(seen_ns % NANOSECONDS)};
  return 0;
}

int __wrap_timerfd_create(int clock, int flags) {
  (void)atomic_fetch_add(&timer_calls, 1);
  if (atomic_load(&refuses)) {
    errno = EMFILE;
    return -1;
  }
  (void)pthread_mutex_lock(&mutex);
  int fd = __real_timerfd_create(clock, flags);
  if (fd >= 0 && fd < TIMERS_MAX) {
    counts_suspend[fd] = clock == CLOCK_BOOTTIME;
    due_ns[fd] = 0;
  }
  (void)pthread_mutex_unlock(&mutex);
  return fd;
}

/* Has the timer fire when its time comes, which may have come. */
static int arm(int fd, int64_t at_ns) {
  int64_t left_ns = at_ns - now_ns();
  left_ns = left_ns < 1 ? 1 : left_ns;
  struct itimerspec timer = {{0, 0},
                             {(time_t)(left_ns / NANOSECONDS), (long)(left_ns % NANOSECONDS)}};
  return __real_timerfd_settime(fd, 0, &timer, NULL);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *timer,
                           struct itimerspec *before) {
  (void)atomic_fetch_add(&timer_calls, 1);
  int64_t wait_ns = timer->it_value.tv_sec * NANOSECONDS + timer->it_value.tv_nsec;
  (void)pthread_mutex_lock(&mutex);
  bool counts = fd < TIMERS_MAX && counts_suspend[fd];
  if (counts) {
    due_ns[fd] = wait_ns == 0 ? 0 : seen_ns + wait_ns;
  }
  int result = counts && wait_ns != 0 ? arm(fd, due_ns[fd])
                                      : __real_timerfd_settime(fd, flags, timer, before);
  (void)pthread_mutex_unlock(&mutex);
  return result;
}

redlock_time suspend_for(redlock_duration length_us) {
  (void)pthread_mutex_lock(&mutex);
  (void)atomic_fetch_add(&suspended_ns, (int64_t)length_us * 1000);
  for (int fd = 0; fd < TIMERS_MAX; fd++) {
    if (due_ns[fd] != 0) {
      (void)arm(fd, due_ns[fd]);
    }
  }
  (void)pthread_mutex_unlock(&mutex);
  return redlock_now();
}

unsigned suspend_timer_calls(void) {
  return atomic_exchange(&timer_calls, 0);
}

void suspend_refuse_timers(bool refuse) {
  atomic_store(&refuses, refuse);
}
