/*
 * The queue of waiters beside a key on a node, as the scripts of rl_script.c treat it.
 *
 * SPDX-License-Identifier: MIT
 *
 * The simulator, the fake nodes and the load simulation share this model. Each stores the entries
 * in its own way, delivers the notifications, and lets the queue expire.
 */
#ifndef WAIT_QUEUE_H
#define WAIT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#define WAIT_QUEUE_CHANNEL 16 /* digits of the channel in an entry */
#define WAIT_QUEUE_ENTRY 24   /* digits of an entry: the channel, and the id of a ticket */

typedef struct wait_queue {
  char (*entries)[WAIT_QUEUE_ENTRY];
  unsigned count;
  unsigned max; /* entries for which there is room */
  bool evicted; /* wait_queue_enqueue() has evicted the first entry */

  /*
   * Publishes a notification of |entry|. Returns the number of receivers, or -1 if it is forbidden.
   */
  int (*notify)(void *context, const char *entry);
  void *context;
  const char
      *reserved_for; /* entry for which the free key is reserved: it is not evicted; or NULL */
} wait_queue;

/* One of several keys, for wait_queue_enqueue_all(). */
typedef struct wait_queue_key {
  wait_queue *queue;
  unsigned long long left; /* as for wait_queue_enqueue() */
  unsigned before;         /* position of the entry, as last reported for a free key; or 0 */
  bool reserves;           /* result: the free key is reserved for the entry from now on */
} wait_queue_key;

#define WAIT_QUEUE_KEYS_MAX 8

/* Replies of a release. */
typedef enum wait_queue_notified {
  WAIT_QUEUE_EMPTY = 1,
  WAIT_QUEUE_NOTIFIED = 2,
  WAIT_QUEUE_FORBIDDEN = 3
} wait_queue_notified;

/* Removes an entry. Returns false if it is not in the queue. */
bool wait_queue_remove(wait_queue *queue, const char *entry);

/* Appends an entry. Returns its position, from 1, or 0 if there is no room. */
unsigned wait_queue_append(wait_queue *queue, const char *entry);

/* Notifies the first entry. Removes first entries without a receiver. */
wait_queue_notified wait_queue_notify_first(wait_queue *queue);

/*
 * Returns the answer of ENQUEUE in |mode| (rl_command_enqueue), or -1 if a notification is
 * forbidden. |left| is 0 for a free key, 1 for a key that does not expire, else the ms until it
 * expires and two more.
 */
long long wait_queue_enqueue(wait_queue *queue, const char *entry, unsigned mode,
                             unsigned long long left);

/*
 * Returns the answer of ENQUEUE_ALL, or -1 if a notification is forbidden. |notified| and
 * |places|, which receives what follows the number in the answer: rl_command_enqueue_all().
 */
long long wait_queue_enqueue_all(wait_queue_key *keys, unsigned count, const char *entry,
                                 const char *notified, char *places, unsigned size);

#endif
