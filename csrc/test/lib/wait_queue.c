/*
 * The queue of waiters beside a key on a node, as the scripts of rl_command.c treat it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait_queue.h"

#include <string.h>

#include "wire/rl_command.h"

#define WAIT_QUEUE_TRIES 1024 /* heads that a script notifies one after the other */

/* Returns the position of the entry, from 1; 0 if it is not in the queue. */
static unsigned wait_queue_find(const wait_queue *queue, const char *entry) {
  for (unsigned i = 0; i < queue->count; i++) {
    if (memcmp(queue->entries[i], entry, WAIT_QUEUE_ENTRY) == 0) {
      return i + 1;
    }
  }
  return 0;
}

static void wait_queue_remove_at(wait_queue *queue, unsigned position) {
  queue->count--;
  memmove(queue->entries[position - 1], queue->entries[position],
          (queue->count + 1 - position) * sizeof queue->entries[0]);
}

bool wait_queue_remove(wait_queue *queue, const char *entry) {
  unsigned position = wait_queue_find(queue, entry);
  if (position > 0) {
    wait_queue_remove_at(queue, position);
  }
  return position > 0;
}

unsigned wait_queue_append(wait_queue *queue, const char *entry) {
  if (queue->count >= queue->max) {
    return 0;
  }
  memcpy(queue->entries[queue->count], entry, WAIT_QUEUE_ENTRY);
  return ++queue->count;
}

wait_queue_notified wait_queue_notify_head(wait_queue *queue) {
  for (unsigned i = 0; i < WAIT_QUEUE_TRIES && queue->count > 0; i++) {
    int receivers = queue->notify(queue->context, queue->entries[0]);
    if (receivers != 0) {
      return receivers < 0 ? WAIT_QUEUE_FORBIDDEN : WAIT_QUEUE_NOTIFIED;
    }
    wait_queue_remove_at(queue, 1);
  }
  return WAIT_QUEUE_EMPTY;
}

/*
 * The key is free. Returns 1 if no other entry stands before |entry|, 0 if the head was notified, -1
 * if that is forbidden. Evicts the head first if |entry| has not moved up to |before| since its last
 * query.
 */
static int wait_queue_is_head(wait_queue *queue, const char *entry, unsigned before) {
  queue->evicted = before > 1 && wait_queue_find(queue, entry) == before;
  for (unsigned i = 0; i < WAIT_QUEUE_TRIES; i++) {
    if (queue->count == 0 || memcmp(queue->entries[0], entry, WAIT_QUEUE_ENTRY) == 0) {
      return 1;
    }
    int receivers = queue->evicted && i == 0 ? 0 : queue->notify(queue->context, queue->entries[0]);
    if (receivers != 0) {
      return receivers < 0 ? -1 : 0;
    }
    wait_queue_remove_at(queue, 1);
  }
  return 0;
}

long long wait_queue_enqueue(wait_queue *queue, const char *entry, unsigned mode,
                             unsigned long long left) {
  bool appends = mode == RL_COMMAND_ENQUEUE_APPEND;
  queue->evicted = false;
  if (appends && wait_queue_append(queue, entry) > 1) {
    return RL_COMMAND_ENQUEUE_UNIT + (long long)queue->count;
  }
  if (left == 0) {
    int head = wait_queue_is_head(queue, entry, appends ? 0 : mode);
    if (head != 0) {
      return head < 0 ? -1 : 0;
    }
  }
  unsigned position = mode == RL_COMMAND_ENQUEUE_NEW ? 0 : wait_queue_find(queue, entry);
  position = position > 0 ? position : wait_queue_append(queue, entry);
  left = position == 0 && left == 0 ? 1 : left;
  return (long long)(left * RL_COMMAND_ENQUEUE_UNIT + position);
}
