/*
 * What one thread sleeps on until another posts.
 *
 * SPDX-License-Identifier: MIT
 *
 * A condition would do, but who wakes from one takes the mutex as if others waited for it, and each
 * that gives it back after that calls the kernel for nothing: at 64 threads two calls of seven for each pair.
 */
#ifndef RL_SEMAPHORE_H
#define RL_SEMAPHORE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "redlock.h"

/* The C library's, where it can wait by a clock that nobody sets; else one made of a condition. */
#if !defined(RL_SEMAPHORE_IS_NATIVE)
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#define RL_SEMAPHORE_IS_NATIVE __GLIBC_PREREQ(2, 30)
#else
#define RL_SEMAPHORE_IS_NATIVE 0
#endif
#endif

typedef struct rl_semaphore {
#if RL_SEMAPHORE_IS_NATIVE
  sem_t native;
#else
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  bool posted;
#endif
} rl_semaphore;

/* False when the system refuses one. In a forked child it may be made anew over what the parent had. */
bool rl_semaphore_init(rl_semaphore *semaphore);
void rl_semaphore_free(rl_semaphore *semaphore);

/* Wakes the one that sleeps, or lets the next one that would sleep go on. */
void rl_semaphore_post(rl_semaphore *semaphore);

/* Sleeps until somebody has posted; false when |until_us| has come before. */
bool rl_semaphore_wait(rl_semaphore *semaphore, redlock_time until_us);

#endif
