/*
 * A mutex that is free in every forked child.
 *
 * SPDX-License-Identifier: MIT
 *
 * Only handlers of pthread_atfork() can do this, and they take no argument, so that the mutexes stand in a list
 * that is one of the library's two mutable statics (the other counts look-ups, rl_resolver.c). The handlers
 * cannot be taken back: they go with the library, which is linked with -z nodelete; where the static one is part
 * of something that is unloaded, the C library drops them.
 *
 *   1. before: take the list, so that no mutex comes or goes, then each mutex. Nobody holds two of them,
 *      and nobody wants the list while holding one, so this comes to an end.
 *   2. in the parent: give them back.
 *   3. in the child: make them anew. The holder that the C library has noted is a thread of the parent.
 *
 * In a program with one thread a signal handler may fork while the thread holds a mutex. That one is left
 * alone in the parent, and in the child, where the same thread goes on, made anew: it guards nothing any more,
 * for there is no other thread. (With several threads no handler may fork: the C library has locks of its own.)
 */
#include "os/rl_mutex.h"

#include <stddef.h>

static struct {
  pthread_once_t once;
  int error; /* of pthread_atfork() */
  pthread_mutex_t mutex;
  rl_mutex *first;
} rl_mutexes = {PTHREAD_ONCE_INIT, 0, PTHREAD_MUTEX_INITIALIZER, NULL};

/* One that tells its holder when it is taken twice. */
static bool rl_mutex_make(rl_mutex *mutex) {
  pthread_mutexattr_t attributes;
  if (pthread_mutexattr_init(&attributes) != 0) {
    return false;
  }
  (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  int error = pthread_mutex_init(&mutex->mutex, &attributes);
  (void)pthread_mutexattr_destroy(&attributes);
  return error == 0;
}

static void rl_mutex_before_fork(void) {
  (void)pthread_mutex_lock(&rl_mutexes.mutex);
  for (rl_mutex *mutex = rl_mutexes.first; mutex != NULL; mutex = mutex->next) {
    mutex->held_to_fork = pthread_mutex_lock(&mutex->mutex) == 0;
  }
}

static void rl_mutex_in_parent(void) {
  for (rl_mutex *mutex = rl_mutexes.first; mutex != NULL; mutex = mutex->next) {
    if (mutex->held_to_fork) {
      (void)pthread_mutex_unlock(&mutex->mutex);
    }
  }
  (void)pthread_mutex_unlock(&rl_mutexes.mutex);
}

static void rl_mutex_in_child(void) {
  for (rl_mutex *mutex = rl_mutexes.first; mutex != NULL; mutex = mutex->next) {
    (void)rl_mutex_make(mutex);
  }
  (void)pthread_mutex_init(&rl_mutexes.mutex, NULL);
}

static void rl_mutex_watch_forks(void) {
  rl_mutexes.error = pthread_atfork(rl_mutex_before_fork, rl_mutex_in_parent, rl_mutex_in_child);
}

bool rl_mutex_init(rl_mutex *mutex) {
  (void)pthread_once(&rl_mutexes.once, rl_mutex_watch_forks);
  if (rl_mutexes.error != 0 || !rl_mutex_make(mutex)) {
    return false;
  }
  (void)pthread_mutex_lock(&rl_mutexes.mutex);
  mutex->previous = NULL;
  mutex->next = rl_mutexes.first;
  if (mutex->next != NULL) {
    mutex->next->previous = mutex;
  }
  rl_mutexes.first = mutex;
  (void)pthread_mutex_unlock(&rl_mutexes.mutex);
  return true;
}

void rl_mutex_free(rl_mutex *mutex) {
  (void)pthread_mutex_lock(&rl_mutexes.mutex);
  if (mutex->previous != NULL) {
    mutex->previous->next = mutex->next;
  } else {
    rl_mutexes.first = mutex->next;
  }
  if (mutex->next != NULL) {
    mutex->next->previous = mutex->previous;
  }
  (void)pthread_mutex_unlock(&rl_mutexes.mutex);
  (void)pthread_mutex_destroy(&mutex->mutex);
}
