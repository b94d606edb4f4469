/*
 * A machine that is suspended, as far as this process can tell: CLOCK_BOOTTIME has gone on, CLOCK_MONOTONIC has not.
 *
 * SPDX-License-Identifier: MIT
 *
 * What the kernel times by CLOCK_MONOTONIC sleeps on: poll(), sem_clockwait(). A timer on CLOCK_BOOTTIME fires if its
 * time has come. The Makefile looks here for the names of the wrappers: __wrap_clock_gettime, __wrap_timerfd_create,
 * __wrap_timerfd_settime.
 */
#ifndef SUSPEND_H
#define SUSPEND_H

#include <stdbool.h>

#include "redlock.h"

/* Returns the time right after the resume, by redlock_now(). */
redlock_time suspend_for(redlock_duration length_us);

/* Returns how often a timer was created or set since this was called last. */
unsigned suspend_timer_calls(void);

/* From now on the system refuses timers, or has some again. */
void suspend_refuse_timers(bool refuse);

#endif
