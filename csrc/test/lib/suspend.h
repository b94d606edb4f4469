/*
 * A machine that is suspended, as far as this process can see: CLOCK_BOOTTIME has gone on,
 * CLOCK_MONOTONIC has not.
 *
 * SPDX-License-Identifier: MIT
 *
 * Waits that the kernel times by CLOCK_MONOTONIC sleep on: poll(), sem_clockwait(). A due timer on
 * CLOCK_BOOTTIME fires. The Makefile finds the names of the wrappers here: __wrap_clock_gettime,
 * __wrap_timerfd_create, __wrap_timerfd_settime.
 */
#ifndef SUSPEND_H
#define SUSPEND_H

#include <stdbool.h>

#include "redlock.h"

/* Returns the time right after the resume, by redlock_now(). */
redlock_time suspend_for(redlock_duration length_us);

/* Returns how often timers were created or set since the last call. */
unsigned suspend_timer_calls(void);

/* From now on the system refuses timers, or has some again. */
void suspend_refuse_timers(bool refuse);

#endif
