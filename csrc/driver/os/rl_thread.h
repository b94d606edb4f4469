/*
 * Starts threads of the library.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_THREAD_H
#define RL_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * Starts a thread with all signals blocked, so that the program's handlers never run in it. |stack|
 * is the size of its stack in bytes, without the program's thread-local memory. If |thread| is
 * NULL, it is detached. Returns 0 or an errno.
 */
int rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument);

#endif
