/*
 * A timerfd: a timer that poll() can wait for. It is on the clock of leases, because the time-out
 * of poll() does not count suspend.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TIMERFD_H
#define RL_TIMERFD_H

#include <stdbool.h>

#include "redlock.h"

typedef struct rl_timerfd {
  int fd;             /* -1: not open */
  redlock_time at_us; /* time that it is set to */
} rl_timerfd;

/* Makes a timer without a descriptor. */
void rl_timerfd_init(rl_timerfd *timer);

/* Opens the timer unless it is open. Returns false if the system has no timerfd, or refuses one. */
bool rl_timerfd_open(rl_timerfd *timer);
void rl_timerfd_close(rl_timerfd *timer);

/*
 * Makes the descriptor readable at |at_us| or earlier. A timer that is set to an earlier time keeps
 * it and wakes its caller once for nothing. That is cheaper than a system call for each operation:
 * most end long before their time-out. A readable descriptor stays readable until the timer is set
 * again.
 */
void rl_timerfd_set(rl_timerfd *timer, redlock_time at_us);

#endif
