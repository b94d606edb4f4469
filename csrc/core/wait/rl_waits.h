/*
 * The state of waiters: waitlists of locks, their tickets in the queues of nodes, and the subscribers that are called.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WAITS_H
#define RL_WAITS_H

#include "base/rl_hash.h"
#include "lock/rl_lock.h"
#include "node/rl_node.h"

#define RL_TICKETS_MAX 65536 /* of one client at once; the others poll */

/* A ticket in the queues of the nodes. Sets of nodes are bits. */
typedef struct rl_ticket {
  rl_list queue;                /* of tickets with something to send; or of free ones */
  struct rl_waitlist *waitlist; /* whose head waits; NULL: it is to be left, and goes then */
  rl_resource *resource;        /* a reference */
  uint32_t id;                  /* by which notify name it */
  uint32_t to_enqueue;          /* nodes that are to be asked to let it stand */
  uint32_t to_dequeue;          /* nodes that are to be told that it leaves */
  uint32_t outstanding;         /* nodes that owe the answer */
  uint32_t enqueued;            /* nodes where it stands, or may */
  uint32_t held;                /* nodes that have said that somebody has the key */
  uint32_t outranked;           /* nodes that have said that it is free, but others come first */
  uint32_t notified;            /* nodes that have said that it is free for us, or have called */
  uint32_t evicted;             /* nodes where nobody before it takes out who does not come */
  uint32_t unqueried;           /* nodes where it has joined a queue, and was not told of the key */
  bool granted;     /* the head has got a lease, whose release leaves: notify are for nobody now */
  bool appends;     /* others have waited lately: there are queues */
  bool contended;   /* a node has said that the key is held, or that another waiter comes first */
  bool polls;       /* its head's timer is for looking again, not for an attempt */
  bool attempt_due; /* one call has come, and an attempt is to follow */
  redlock_time begun_us;  /* when its head has begun to wait, after its last attempt */
  redlock_time polled_us; /* the same, or when it has looked last */
  uint64_t random;        /* drawn then */
  struct {
    redlock_time ends_us; /* when the key ends there, where it is held */
    uint32_t position;    /* in the queue, where it stands */
  } at[];                 /* of each node, as it has said last */
} rl_ticket;

typedef struct rl_waitlist {
  rl_hash_entry entry;
  rl_resource *resource;
  rl_lock *head;     /* the one that asks the nodes */
  rl_list queued;    /* the others, in the order in which they came */
  rl_ticket *ticket; /* of the head in the queues of the nodes (rl_notify.h); or NULL */
  redlock_time
      own_since_us; /* since when locks of this waitlist have had it, one after the other; 0: they have not */
  redlock_time followed_us; /* when a head has last tried behind a release of ours (W4); or 0 */
  redlock_time attempt_us;  /* when the head's last attempt was begun; 0 before the first */
  bool has_waited;          /* the head has waited, if not in a queue (C2 of rl_notify.c) */
} rl_waitlist;

typedef struct rl_waitlists {
  rl_hash table;       /* of wait lists, by their resources */
  size_t queued_count; /* locks that stand behind another */
  uint64_t seed;       /* so that nobody can choose names that meet in one bucket */
  uint64_t random;     /* for delays and channels; not core->random, which connections draw from */
  rl_list *free;
} rl_waitlists;

#define RL_NOTIFY_CLIENT_LENGTH 16 /* hexadecimal digits of a client's channel */
#define RL_NOTIFY_CHANNEL_SIZE (sizeof RL_COMMAND_CHANNEL + RL_NOTIFY_CLIENT_LENGTH)
#define RL_NOTIFY_CONTENDED_SIZE 256
#define RL_NOTIFY_NODES_MAX                                                                        \
  16 /* with more nodes everybody polls: each would have two connections */

typedef struct rl_notify_state {
  bool subscribing;     /* there are subscribers */
  bool wanted;          /* somebody has had to wait: there are to be connections for notify */
  redlock_time used_us; /* when somebody has begun to wait last */
  char channel[RL_NOTIFY_CHANNEL_SIZE];
  rl_node *subscribers[RL_NOTIFY_NODES_MAX]; /* rl_subscriber.c; NULL before they are wanted */
  uint32_t ready;                            /* nodes whose notify arrive */
  uint32_t probed;                           /* nodes that owe the answer to the probe */
  uint32_t to_probe;                         /* nodes to which it is to be sent */
  uint32_t
      undelivered; /* nodes whose probe nobody has received: there is to be another, of a new subscriber */
  uint32_t refused; /* nodes that do not let us, for what their subscriber's error says */
  redlock_time refused_until_us[RL_NOTIFY_NODES_MAX];
  rl_ticket **tickets; /* by the lower half of their ids */
  uint32_t ticket_count, ticket_capacity, used_count;
  rl_list *free;
  rl_list queue; /* of tickets with something to send */
  struct {
    uint32_t hash;
    redlock_time until_us;
  } contended[RL_NOTIFY_CONTENDED_SIZE]; /* resources for which others have waited lately */
} rl_notify_state;

/* Returns the hash by which the waitlists of a resource are found. */
uint64_t rl_waits_hash(const rl_core *core, const rl_resource *resource);

/* Returns a number that nobody can foresee, for delays. */
uint64_t rl_waits_random(rl_core *core);

#endif
