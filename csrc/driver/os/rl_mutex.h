/*
 * A mutex that is free in every forked child.
 *
 * SPDX-License-Identifier: MIT
 *
 * fork() waits until no thread holds such a mutex, and holds them all while it copies the process.
 * So a child finds each mutex free, and the data that it guards consistent. Hold one for short
 * steps only, never while waiting for a node.
 */
#ifndef RL_MUTEX_H
#define RL_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "base/rl_list.h"

typedef struct rl_mutex {
  rl_list list; /* in the list of all mutexes of the process */
  pthread_mutex_t mutex;
  bool held_to_fork; /* by the thread that forks */
} rl_mutex;

/* Returns false if out of memory. The mutex must not move. */
bool rl_mutex_init(rl_mutex *mutex);

/* No thread may hold it. */
void rl_mutex_free(rl_mutex *mutex);

/* Attempts before sleeping: a holder unlocks within microseconds, and a sleep costs more. */
#define RL_MUTEX_TRIES 50

static inline void rl_mutex_lock(rl_mutex *mutex) {
  for (unsigned i = 0; i < RL_MUTEX_TRIES; i++) {
    if (pthread_mutex_trylock(&mutex->mutex) == 0) {
      return;
    }
  }
  (void)pthread_mutex_lock(&mutex->mutex);
}

static inline void rl_mutex_unlock(rl_mutex *mutex) {
  (void)pthread_mutex_unlock(&mutex->mutex);
}

#endif
