/*
 * A mutex that is free in every forked child.
 *
 * SPDX-License-Identifier: MIT
 *
 * fork() waits until no thread holds one of them, and holds them all while the process is copied: a child
 * finds what a mutex guards whole, and the mutex free. So a mutex is held for short steps only, never while
 * its holder waits for a node.
 */
#ifndef RL_MUTEX_H
#define RL_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef struct rl_mutex {
  pthread_mutex_t mutex;
  bool held_to_fork;                /* by the thread that forks */
  struct rl_mutex *previous, *next; /* among all of the process */
} rl_mutex;

/* False when out of memory. The mutex must not move. */
bool rl_mutex_init(rl_mutex *mutex);

/* Nobody holds it. */
void rl_mutex_free(rl_mutex *mutex);

/* How often to ask before sleeping: its holder gives it back within microseconds, and a sleep costs more. */
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
