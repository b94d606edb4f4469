/*
 * The threads that wait in blocking calls on one client, as rl_client_wait.c finds them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WAITERS_H
#define RL_WAITERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "os/rl_event.h"
#include "os/rl_mutex.h"
#include "os/rl_semaphore.h"
#include "os/rl_timer.h"
#include "redlock.h"

/* How long bytes may be left to the threads that are coming. */
#define RL_WAIT_UNSENT_US REDLOCK_MILLISECONDS

/* A thread in a blocking call. */
typedef struct rl_waiter {
  struct rl_waiter *previous, *next; /* among those that sleep, are due, or are spare */
  rl_semaphore semaphore;            /* it sleeps on this */
  rl_event *event;                   /* ends its wait when it leads */
  unsigned number;                   /* its place among all of the client, from 1 */
  redlock_lock *lock; /* whose operation it waits for; NULL: for whatever a turn brings */
  bool each_turn;     /* it wants to look after each turn */
  bool in_use;
  bool sleeps;
  bool woken;       /* out of its sleep: it is to look, or to lead */
  bool unposted;    /* it has been called, and its semaphore is still to be posted */
  unsigned wakeups; /* how many there had been when its call began */
} rl_waiter;

typedef struct rl_waiters_list {
  rl_waiter *first;
  rl_waiter *last;
} rl_waiters_list;

/* What a thread that waits for the nodes has to wait for. */
typedef struct rl_wait_wants {
  unsigned changes;  /* of descriptors, so far */
  uint32_t writable; /* nodes whose descriptor is waited for to take bytes */
  redlock_time deadline_us;
} rl_wait_wants;

typedef struct rl_wait {
  rl_waiter *leader;    /* who waits for the nodes, or has been called to; or NULL */
  bool polls;           /* the leader has left the mutex, and waits */
  bool poked;           /* its event has been set since */
  rl_wait_wants wants;  /* what it waits for */
  bool turned;          /* input was looked for, since the mutex was taken */
  unsigned watchers;    /* waiters with |each_turn| */
  bool unsent;          /* bytes were left to the threads that are coming ... */
  redlock_time send_us; /* ... until then */
  bool unstarted;       /* what has been begun was, too: it has not been launched yet */
  unsigned arriving;    /* threads that have been called, and do not run yet */
  unsigned missed;      /* as many of them a leader has waited for in vain */
  unsigned posted;      /* those of them whose semaphore has been posted, as far as is known */
  bool brief;           /* the leader polls for a moment only, since threads are due */
  bool hurried;         /* all that are due are to be woken, however many are on their way */
  rl_waiter *sender;    /* sends them when nobody has come in time, or NULL */
  rl_waiters_list asleep;
  rl_waiters_list unposted; /* called, and to be woken by the next that leaves */
  rl_waiter *spare;
  rl_waiter **made;
  size_t made_count;
  size_t made_capacity;
  atomic_uint wakeups;
  unsigned wakeups_seen; /* how many of them the sleepers know of */
  rl_event event;        /* of whichever thread leads; open after the first wait */
  rl_timer timer;        /* likewise; open after the first long wait */
} rl_wait;

void rl_wait_init(rl_wait *wait);
void rl_wait_free(rl_wait *wait);

/* In a forked child: none of the threads is there. */
void rl_wait_forget(rl_wait *wait);

/* ---- all below: the caller has entered the client ---- */

/* A waiter that no thread uses. NULL when out of memory, or when RL_LOCK_WAITED_MAX threads wait. */
rl_waiter *rl_wait_take_spare(rl_wait *wait);

/* Leaves what is to be sent to the threads that are coming, for 1 ms at most. */
void rl_wait_leave_unsent(rl_wait *wait);

/* The list is linked through the waiters themselves: a waiter is in one list at a time. */
void rl_waiters_append(rl_waiters_list *list, rl_waiter *waiter);
void rl_waiters_remove(rl_waiters_list *list, rl_waiter *waiter);

#endif
