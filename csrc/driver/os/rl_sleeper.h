/*
 * A sleeper: the object on which a thread sleeps, and by which another thread wakes it.
 *
 * SPDX-License-Identifier: MIT
 *
 * Where possible it is no condition variable. A thread that wakes from one marks the mutex as
 * contended, and each later unlock costs a system call.
 */
#ifndef RL_SLEEPER_H
#define RL_SLEEPER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "redlock.h"

/* The C library's semaphore if it can wait on CLOCK_MONOTONIC; else one made of a condition. */
#if !defined(RL_SLEEPER_IS_NATIVE)
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#define RL_SLEEPER_IS_NATIVE __GLIBC_PREREQ(2, 30)
#else
#define RL_SLEEPER_IS_NATIVE 0
#endif
#endif

typedef struct rl_sleeper {
#if RL_SLEEPER_IS_NATIVE
  sem_t native;
#else
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  bool posted;
#endif
} rl_sleeper;

/* Returns false if the system refuses one. A forked child may call it again for the parent's. */
bool rl_sleeper_init(rl_sleeper *sleeper);
void rl_sleeper_free(rl_sleeper *sleeper);

/* Wakes the sleeping thread, or lets the next wait end at once. */
void rl_sleeper_post(rl_sleeper *sleeper);

/* Sleeps until a post. Returns false if |until_us| came first. */
bool rl_sleeper_wait(rl_sleeper *sleeper, redlock_time until_us);

#endif
