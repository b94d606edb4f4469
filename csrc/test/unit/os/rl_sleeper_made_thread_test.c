/*
 * The tests of sleepers, for C libraries whose semaphores cannot wait on CLOCK_MONOTONIC.
 *
 * SPDX-License-Identifier: MIT
 *
 * They use __wrap_clock_gettime, __wrap_timerfd_create and __wrap_timerfd_settime.
 */
#define RL_SLEEPER_IS_NATIVE 0

#include "../../../driver/os/rl_sleeper.c"

#include "rl_sleeper_thread_test.c"
