/*
 * A mutex that is free in every forked child.
 *
 * SPDX-License-Identifier: MIT
 *
 * Only handlers of pthread_atfork() can do this. They have no argument, so the mutexes are in a
 * list that is static: one of the library's two mutable statics (rl_resolver.c has the other). The
 * handlers cannot be removed. The library is linked with -z nodelete and stays; the C library drops
 * the handlers of a statically linked copy that is unloaded.
 *
 *   FORK-1. Before the fork: lock the list, so that no mutex comes or goes, then each mutex. No
 *           thread holds two of them, and none waits for the list while it holds one, so this ends.
 *   FORK-2. In the parent: unlock them.
 *   FORK-3. In the child: make them anew, because their noted owner is a thread of the parent.
 *
 * In a program with one thread a signal handler may fork while the thread holds a mutex. The parent
 * then keeps it locked. The child, where the same thread goes on, makes it anew: the child has one
 * thread, so its mutex guards nothing. In a program with several threads no handler may fork,
 * because the C library has locks of its own.
 */
#include "os/rl_mutex.h"

static struct {
  pthread_once_t once;
  int error; /* of pthread_atfork() */
  pthread_mutex_t mutex;
  rl_list list;
} rl_mutexes = {
    PTHREAD_ONCE_INIT, 0, PTHREAD_MUTEX_INITIALIZER, {&rl_mutexes.list, &rl_mutexes.list}};

/* Makes a mutex that returns an error to a holder that locks it twice. */
static bool rl_mutex_create(rl_mutex *mutex) {
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
  RL_LIST_EACH(&rl_mutexes.list, mutex, rl_mutex, list) {
    mutex->held_to_fork = pthread_mutex_lock(&mutex->mutex) == 0;
  }
}

static void rl_mutex_in_parent(void) {
  RL_LIST_EACH(&rl_mutexes.list, mutex, rl_mutex, list) {
    if (mutex->held_to_fork) {
      (void)pthread_mutex_unlock(&mutex->mutex);
    }
  }
  (void)pthread_mutex_unlock(&rl_mutexes.mutex);
}

static void rl_mutex_in_child(void) {
  RL_LIST_EACH(&rl_mutexes.list, mutex, rl_mutex, list) {
    (void)rl_mutex_create(mutex);
  }
  (void)pthread_mutex_init(&rl_mutexes.mutex, NULL);
}

static void rl_mutex_watch_forks(void) {
  rl_mutexes.error = pthread_atfork(rl_mutex_before_fork, rl_mutex_in_parent, rl_mutex_in_child);
}

bool rl_mutex_init(rl_mutex *mutex) {
  (void)pthread_once(&rl_mutexes.once, rl_mutex_watch_forks);
  if (rl_mutexes.error != 0 || !rl_mutex_create(mutex)) {
    return false;
  }
  (void)pthread_mutex_lock(&rl_mutexes.mutex);
  rl_list_append(&rl_mutexes.list, &mutex->list);
  (void)pthread_mutex_unlock(&rl_mutexes.mutex);
  return true;
}

void rl_mutex_free(rl_mutex *mutex) {
  (void)pthread_mutex_lock(&rl_mutexes.mutex);
  rl_list_remove(&mutex->list);
  (void)pthread_mutex_unlock(&rl_mutexes.mutex);
  (void)pthread_mutex_destroy(&mutex->mutex);
}
