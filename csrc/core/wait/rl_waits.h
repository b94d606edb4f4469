/*
 * The state of waiters: lines of locks, their places in the queues of nodes, and the listeners that are called.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WAITS_H
#define RL_WAITS_H

#include "lock/rl_lock.h"
#include "node/rl_node.h"

#define RL_TICKETS_MAX 65536 /* of one client at once; the others poll */

/* A place in the queues of the nodes. Sets of nodes are bits. */
typedef struct rl_ticket {
  struct rl_ticket *next;   /* among those with something to send; or that are free */
  struct rl_waitlist *line; /* whose front waits; NULL: it is to be left, and goes then */
  rl_resource *resource;    /* a reference */
  uint32_t id;              /* by which calls name it */
  uint32_t wanted;          /* nodes that are to be asked to let it stand */
  uint32_t leaving;         /* nodes that are to be told that it leaves */
  uint32_t asked;           /* nodes that owe the answer */
  uint32_t standing;        /* nodes where it stands, or may */
  uint32_t held;            /* nodes that have said that somebody has the key */
  uint32_t behind;          /* nodes that have said that it is free, but others come first */
  uint32_t called;          /* nodes that have said that it is free for us, or have called */
  uint32_t alone;           /* nodes where nobody before it takes out who does not come */
  uint32_t unsure;          /* nodes where it has joined a queue, and was not told of the key */
  bool granted;   /* the front has got a lease, whose release leaves: calls are for nobody now */
  bool joins;     /* others have waited lately: there are queues */
  bool contended; /* a node has said that the key is held, or that another waiter comes first */
  bool listed;    /* something is to be sent for it */
  bool looks;     /* its front's timer is for looking again, not for an attempt */
  bool hurried;   /* one call has come, and an attempt is to follow */
  redlock_time begun_us; /* when its front has begun to wait, after its last attempt */
  redlock_time since_us; /* the same, or when it has looked last */
  uint64_t random;       /* drawn then */
  struct {
    redlock_time ends_us; /* when the key ends there, where it is held */
    uint32_t position;    /* in the queue, where it stands */
  } at[];                 /* of each node, as it has said last */
} rl_ticket;

typedef struct rl_waitlist {
  struct rl_waitlist *next; /* of its bucket; or among those that are free */
  rl_resource *resource;
  uint64_t hash;
  rl_lock *front;   /* the one that asks the nodes */
  rl_list behind;   /* the others, in the order in which they came */
  rl_ticket *place; /* of the front in the queues of the nodes (rl_notify.h); or NULL */
  redlock_time
      ours_us; /* since when locks of this line have had it, one after the other; 0: they have not */
  redlock_time behind_us; /* when a front has last tried behind a release of ours (W4); or 0 */
  redlock_time last_us;   /* when the front's last attempt was begun; 0 before the first */
  bool has_waited;        /* the front has waited, if not in a queue (C2 of rl_notify.c) */
} rl_waitlist;

typedef struct rl_waitlists {
  rl_waitlist **buckets;
  size_t bucket_count; /* a power of 2, or 0 */
  size_t count;        /* of lines */
  size_t parked;       /* locks that stand behind another */
  uint64_t seed;       /* so that nobody can choose names that meet in one bucket */
  uint64_t random;     /* for delays and channels; not core->random, which connections draw from */
  rl_waitlist *free;
} rl_waitlists;

#define RL_NOTIFY_CLIENT_LENGTH 16 /* hexadecimal digits of a client's channel */
#define RL_NOTIFY_CHANNEL_SIZE (sizeof RL_COMMAND_CHANNEL + RL_NOTIFY_CLIENT_LENGTH)
#define RL_NOTIFY_POLITE 256
#define RL_NOTIFY_NODES_MAX                                                                        \
  16 /* with more nodes everybody polls: each would have two connections */

typedef struct rl_notifications {
  bool listening;       /* there are listeners */
  bool wanted;          /* somebody has had to wait: there are to be connections for calls */
  redlock_time used_us; /* when somebody has begun to wait last */
  char channel[RL_NOTIFY_CHANNEL_SIZE];
  rl_node *listeners[RL_NOTIFY_NODES_MAX]; /* rl_subscriber.c; NULL before they are wanted */
  uint32_t ready;                          /* nodes whose calls arrive */
  uint32_t probed;                         /* nodes that owe the answer to the probe */
  uint32_t to_probe;                       /* nodes to which it is to be sent */
  uint32_t
      unheard; /* nodes whose probe nobody has received: there is to be another, of a new listener */
  uint32_t refused; /* nodes that do not let us, for what their listener's error says */
  redlock_time refused_until_us[RL_NOTIFY_NODES_MAX];
  rl_ticket **places; /* by the lower half of their ids */
  uint32_t place_count, place_capacity, used_count;
  rl_ticket *free;
  rl_ticket *first, *last; /* with something to send */
  struct {
    uint32_t hash;
    redlock_time until_us;
  } polite[RL_NOTIFY_POLITE]; /* resources for which others have waited lately */
} rl_notifications;

/* Returns the hash by which the lines of a resource are found. */
uint64_t rl_waits_hash(const rl_core *core, const rl_resource *resource);

/* Returns a number that nobody can foresee, for delays. */
uint64_t rl_waits_random(rl_core *core);

#endif
