/*
 * The queue of waiters beside a key on a node, as the scripts of rl_script.c treat it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wait_queue.h"

#include <stdio.h>
#include <string.h>

#include "wire/rl_command.h"

#define WAIT_QUEUE_TRIES 1024 /* entries that a script notifies one after the other */

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

wait_queue_notified wait_queue_notify_first(wait_queue *queue) {
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
 * The key is free. Returns 1 if no other entry stands before |entry|, 0 if the first one was
 * notified, -1 if that is forbidden. Evicts the first entry if |entry| has not moved up to |before|
 * since its last query.
 */
static int wait_queue_is_first(wait_queue *queue, const char *entry, unsigned before) {
  bool reserved = queue->reserved_for != NULL && queue->count > 0 &&
                  memcmp(queue->reserved_for, queue->entries[0], WAIT_QUEUE_ENTRY) == 0;
  queue->evicted = before > 1 && wait_queue_find(queue, entry) == before && !reserved;
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
    int first = wait_queue_is_first(queue, entry, appends ? 0 : mode);
    if (first != 0) {
      return first < 0 ? -1 : 0;
    }
  }
  unsigned position = mode == RL_COMMAND_ENQUEUE_NEW ? 0 : wait_queue_find(queue, entry);
  position = position > 0 ? position : wait_queue_append(queue, entry);
  left = position == 0 && left == 0 ? 1 : left;
  return (long long)(left * RL_COMMAND_ENQUEUE_UNIT + position);
}

/* An entry that one queue lacks goes to the end of all. Returns false if one is full. */
static bool wait_queue_enter_all(wait_queue_key *keys, unsigned count, const char *entry) {
  bool all = true, room = true;
  for (unsigned i = 0; i < count; i++) {
    all = all && wait_queue_find(keys[i].queue, entry) > 0;
  }
  for (unsigned i = 0; i < count && !all; i++) {
    (void)wait_queue_remove(keys[i].queue, entry);
    room = wait_queue_append(keys[i].queue, entry) > 0 && room;
  }
  for (unsigned i = 0; i < count && !room; i++) {
    (void)wait_queue_remove(keys[i].queue, entry);
  }
  return room;
}

/* Lets the waiters behind |entry| take the free key. Returns false if that is forbidden. */
static bool wait_queue_pass(wait_queue *queue, const char *entry) {
  unsigned at = wait_queue_find(queue, entry) + 1;
  while (at <= queue->count) {
    int receivers = queue->notify(queue->context, queue->entries[at - 1]);
    if (receivers != 0) {
      return receivers > 0;
    }
    wait_queue_remove_at(queue, at);
  }
  return true;
}

long long wait_queue_enqueue_all(wait_queue_key *keys, unsigned count, const char *entry,
                                 const char *notified, char *places, unsigned size) {
  bool called = notified[0] != '\0', yields = strcmp(notified, RL_COMMAND_YIELDS) == 0;
  bool ready = true, first = !yields;
  unsigned long long left = 0;
  unsigned most = 1, reserved = 0;
  bool mine[WAIT_QUEUE_KEYS_MAX];
  places[0] = '\0';
  if (!wait_queue_enter_all(keys, count, entry)) {
    return RL_COMMAND_ENQUEUE_UNIT;
  }
  for (unsigned i = 0; i < count; i++) {
    wait_queue_key *key = &keys[i];
    key->queue->evicted = false;
    if (key->left == 0 && !called && wait_queue_is_first(key->queue, entry, key->before) < 0) {
      return -1;
    }
    unsigned position = wait_queue_find(key->queue, entry);
    mine[i] = key->left == 0 && (position == 1 || (called && !yields && notified[i] == '1'));
    ready = ready && mine[i];
    first = first && position == 1;
    most = position > most ? position : most;
    left = key->left == 1 || left == 1 ? 1 : key->left > left ? key->left : left;
  }
  for (unsigned i = 0; i < count; i++) {
    keys[i].reserves = mine[i] && !ready && first;
    reserved |= (unsigned)keys[i].reserves << i;
    if (mine[i] && !ready && !first && !wait_queue_pass(keys[i].queue, entry)) {
      return -1;
    }
  }
  int used = snprintf(places, size, "%u", reserved);
  for (unsigned i = 0; i < count; i++) {
    unsigned position = wait_queue_find(keys[i].queue, entry);
    used += snprintf(places + used, size - (unsigned)used, ",%u",
                     keys[i].left == 0 && position > 1 ? position : 0);
  }
  return ready ? 0 : (long long)(left * RL_COMMAND_ENQUEUE_UNIT + most);
}
