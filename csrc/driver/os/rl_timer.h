/*
 * A timer that poll() can wait for, on the clock of leases: the time-out of poll() does not count
 * suspend.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TIMER_H
#define RL_TIMER_H

#include <stdbool.h>

#include "redlock.h"

typedef struct rl_timer {
  int fd;             /* -1: not open */
  redlock_time at_us; /* time that it is set to */
} rl_timer;

/* Makes a timer without a descriptor. */
void rl_timer_init(rl_timer *timer);

/* Opens the timer unless it is open. Returns false if the system has no timerfd, or refuses one. */
bool rl_timer_open(rl_timer *timer);
void rl_timer_close(rl_timer *timer);

/*
 * Makes the descriptor readable at |at_us| or earlier. A timer that is set to an earlier time keeps
 * it and wakes its caller once for nothing. That is cheaper than a system call for each operation:
 * most end long before their time-out. A readable descriptor stays readable until the timer is set
 * again.
 */
void rl_timer_set(rl_timer *timer, redlock_time at_us);

#endif
