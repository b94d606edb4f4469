/*
 * Queues of locks: those to be launched, those that stand in a line, and those whose operation has ended. A lock is in
 * at most one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <stddef.h>

#include "rl_core.h"

static rl_lock_queue *rl_lock_queue_of(const rl_lock *lock) {
  rl_core *core = lock->core;
  return lock->queued == RL_LOCK_IN_ACQUIRES ? &core->launches.acquires
         : lock->queued == RL_LOCK_IN_ENDED  ? &core->ended
         : lock->queued == RL_LOCK_IN_LINE   ? &lock->line->behind
                                             : &core->waited;
}

void rl_lock_enqueue(rl_lock *lock, rl_lock_queued queued) {
  assert(lock->queued == RL_LOCK_IN_NONE);
  lock->queued = queued;
  rl_lock_queue *queue = rl_lock_queue_of(lock);
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
  if (lock->queued == RL_LOCK_IN_NONE) {
    return;
  }
  rl_lock_queue *queue = rl_lock_queue_of(lock);
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
  lock->queued = RL_LOCK_IN_NONE;
  lock->queue_previous = NULL;
  lock->queue_next = NULL;
}
