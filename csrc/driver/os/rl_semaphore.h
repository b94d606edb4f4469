/*
 * A semaphore: one thread sleeps until another posts.
 *
 * SPDX-License-Identifier: MIT
 *
 * Where possible it is no condition variable. A thread that wakes from one marks the mutex as
 * contended, and each later unlock costs a system call.
 */
#ifndef RL_SEMAPHORE_H
#define RL_SEMAPHORE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "redlock.h"

/* The C library's semaphore if it can wait on CLOCK_MONOTONIC; else one made of a condition. */
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

/* Returns false if the system refuses one. A forked child may call it again for the parent's. */
bool rl_semaphore_init(rl_semaphore *semaphore);
void rl_semaphore_free(rl_semaphore *semaphore);

/* Wakes the sleeping thread, or lets the next wait end at once. */
void rl_semaphore_post(rl_semaphore *semaphore);

/* Sleeps until a post. Returns false if |until_us| came first. */
bool rl_semaphore_wait(rl_semaphore *semaphore, redlock_time until_us);

#endif
