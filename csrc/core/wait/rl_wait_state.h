/*
 * The state of waiters: wait lists, tickets in the queues of the nodes, and subscribers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WAIT_STATE_H
#define RL_WAIT_STATE_H

#include "base/rl_hash.h"
#include "lock/rl_lock.h"
#include "node/rl_node.h"

#define RL_TICKETS_MAX 65536 /* of one client at once; waiters without a ticket poll */

/* The state of each node for a ticket of several keys. Sets of keys are bits. */
typedef struct rl_ticket_places {
  uint8_t notified;                    /* keys for which the node has notified the ticket */
  uint8_t reserved;                    /* free keys that the node reserves for the ticket */
  char before[RL_COMMAND_PLACES_SIZE]; /* places in the queues, as last reported */
} rl_ticket_places;

/* The entry of the head of a wait list in the queues of the nodes. Sets of nodes are bits. */
typedef struct rl_ticket {
  rl_list queue;                /* of tickets to send, or of free tickets */
  struct rl_waitlist *waitlist; /* of the head; NULL: the ticket is dequeued, then freed */
  rl_resource *base;            /* a reference: its keys name the queues; NULL: a free ticket */
  uint16_t permits;             /* of a semaphore, or 0 */
  uint16_t slot;                /* of a semaphore, that nodes have notified; 0: none */
  uint32_t slot_nodes;          /* nodes that have notified that slot */
  rl_ticket_places *places;     /* of each node, if |base| has several keys; else NULL */
  uint32_t id;                  /* names the ticket in notifications */
  uint32_t to_enqueue;          /* nodes to which ENQUEUE is still to be sent */
  uint32_t to_dequeue;          /* nodes to which DEQUEUE is still to be sent */
  uint32_t outstanding;         /* nodes whose reply to ENQUEUE is outstanding */
  uint32_t enqueued;            /* nodes whose queue has the ticket, or may have it */
  uint32_t held;                /* nodes that reported a key with a holder */
  uint32_t outranked;           /* nodes that reported a free key, and another first ticket */
  uint32_t notified;            /* nodes that reported a free key, or notified the ticket */
  uint32_t evicted;         /* nodes where our own query evicted the unresponsive first ticket */
  uint32_t unqueried;       /* nodes that appended the ticket without a report of the key */
  uint32_t reserved;        /* nodes that reserve some of several keys for the ticket */
  redlock_time reserved_us; /* when a node last answered that it reserves some; 0: never */
  redlock_time reserved_since_us; /* since when nodes have reserved some without a break */
  uint32_t again;                 /* nodes that get one more ENQUEUE after their reply */
  uint32_t prompted;              /* nodes whose outstanding ENQUEUE_ALL follows a notification */
  uint32_t labelled;              /* nodes that last reported the label |holder| */
  rl_label holder;
  bool granted;           /* the head has a lease, whose release dequeues: ignore notifications */
  bool appends;           /* the resource was recently contended: append to existing queues */
  bool contended;         /* a node reported a holder or another first ticket */
  bool polls;             /* the timer of the head is for a poll, not for an attempt */
  bool attempt_due;       /* a notification has come, and an attempt follows */
  redlock_time begun_us;  /* when the head began to wait after its last attempt */
  redlock_time polled_us; /* time of the last poll; begun_us before the first */
  uint64_t random;        /* drawn at polled_us */
  struct {
    redlock_time ends_us; /* expiry of the key on the node, as last reported */
    uint32_t position;    /* of the ticket in the queue of the node, from 1, as last reported */
  } at[];                 /* of each node */
} rl_ticket;

/* The locks of one client that wait for the same resource. */
typedef struct rl_waitlist {
  rl_hash_entry entry; /* by resource */
  rl_resource *resource;
  rl_lock *head;             /* the only waiter that sends commands to the nodes */
  rl_list queued;            /* the other waiters, in order of arrival */
  rl_ticket *ticket;         /* of the head, or NULL */
  redlock_time own_since_us; /* since when only this client has held the resource; 0: it does not */
  redlock_time
      followed_us;         /* time of the last attempt right behind an own release (WAIT-4), or 0 */
  redlock_time attempt_us; /* start of the head's last attempt; 0 before the first */
  bool has_waited;         /* the head has paused between attempts, with a ticket or without */
} rl_waitlist;

typedef struct rl_waitlists {
  rl_hash table;
  size_t queued_count; /* of waiters behind a head */
  uint64_t seed;       /* of the hash: callers cannot choose names that share a bucket */
  uint64_t random;     /* for delays and channels; core->random is for connections */
  rl_list *free;       /* wait lists, by |queued| */
} rl_waitlists;

#define RL_NOTIFY_CLIENT_LENGTH 16 /* hexadecimal digits of a client's channel */
#define RL_NOTIFY_CHANNEL_SIZE (sizeof RL_COMMAND_CHANNEL + RL_NOTIFY_CLIENT_LENGTH)
#define RL_NOTIFY_CONTENDED_SIZE 256
#define RL_NOTIFY_NODES_MAX 16 /* with more nodes waiters poll: each node has two connections */

typedef struct rl_notify_state {
  bool subscribing;     /* the subscribers exist */
  bool wanted;          /* a waiter needs connections for notifications */
  redlock_time used_us; /* when a waiter last began or ended to use a ticket */
  char channel[RL_NOTIFY_CHANNEL_SIZE];
  uint32_t ready;       /* nodes whose notifications arrive */
  uint32_t probed;      /* nodes whose reply to the probe is outstanding */
  uint32_t to_probe;    /* nodes to which the probe is still to be sent */
  uint32_t undelivered; /* nodes whose probe reached no subscriber: reconnect, and probe again */
  uint32_t refused;     /* nodes that refuse notifications; the subscriber has the reason */
  redlock_time refused_until_us[RL_NOTIFY_NODES_MAX];
  rl_ticket **tickets; /* by the lower half of their ids */
  uint32_t ticket_count, ticket_capacity;
  uint32_t used_count; /* tickets of a wait list */
  rl_list *free;       /* tickets, by |queue| */
  rl_list queue;       /* tickets to send */
  struct {
    uint32_t hash;
    redlock_time until_us;
  } contended[RL_NOTIFY_CONTENDED_SIZE]; /* resources that were recently contended, by hash */
} rl_notify_state;

/* Returns the hash of the resource in the table of wait lists. */
static inline uint64_t rl_wait_state_hash(const rl_core *core, const rl_resource *resource) {
  return rl_hash_bytes(core->waitlists->seed, resource->key, rl_resource_base_length(resource));
}

/* Returns an unpredictable number for delays and channels. */
static inline uint64_t rl_wait_state_random(rl_core *core) {
  core->waitlists->random += 0x9e3779b97f4a7c15u; /* splitmix64 */
  /* core->random differs in a forked child. */
  uint64_t mixed = core->waitlists->random ^ core->random;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  return mixed ^ mixed >> 31;
}

#endif
