/*
 * The tests of semaphores, for C libraries whose semaphores cannot wait on CLOCK_MONOTONIC.
 *
 * SPDX-License-Identifier: MIT
 *
 * They use __wrap_clock_gettime, __wrap_timerfd_create and __wrap_timerfd_settime.
 */
#define RL_SEMAPHORE_IS_NATIVE 0

#include "../../../driver/os/rl_semaphore.c"

#include "rl_semaphore_thread_test.c"
