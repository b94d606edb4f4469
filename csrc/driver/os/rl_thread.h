/*
 * Threads of the library's own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_THREAD_H
#define RL_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * Starts a thread with all signals blocked: the host's handlers must not run in it. |stack| bytes are
 * for what it does, beside the host's thread-local memory. Without |thread| it is detached. Returns 0 or
 * an errno.
 */
int rl_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *argument);

#endif
