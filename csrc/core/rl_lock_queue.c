/*
 * Queues of locks: those to be launched, and those whose operation has ended. A lock is in at most one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <stddef.h>

#include "rl_lock.h"

void rl_lock_enqueue(rl_lock_queue *queue, rl_lock *lock) {
  assert(lock->queue == NULL);
  lock->queue = queue;
  lock->queue_next = NULL;
  lock->queue_previous = queue->last;
  if (queue->last != NULL) {
    queue->last->queue_next = lock;
  } else {
    queue->first = lock;
  }
  queue->last = lock;
}

void rl_lock_dequeue(rl_lock *lock) {
  rl_lock_queue *queue = lock->queue;
  if (queue == NULL) {
    return;
  }
  if (lock->queue_previous != NULL) {
    lock->queue_previous->queue_next = lock->queue_next;
  } else {
    queue->first = lock->queue_next;
  }
  if (lock->queue_next != NULL) {
    lock->queue_next->queue_previous = lock->queue_previous;
  } else {
    queue->last = lock->queue_previous;
  }
  lock->queue = NULL;
  lock->queue_previous = NULL;
  lock->queue_next = NULL;
}
