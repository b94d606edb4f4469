/*
 * The threads in blocking calls on one client, and the state that they share (rl_client_wait.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WAITERS_H
#define RL_WAITERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/rl_list.h"
#include "os/rl_event.h"
#include "os/rl_mutex.h"
#include "os/rl_semaphore.h"
#include "os/rl_timer.h"
#include "redlock.h"

/* Longest time that bytes are left to arriving threads. */
#define RL_WAIT_UNSENT_US REDLOCK_MILLISECONDS

/* A thread in a blocking call. */
typedef struct rl_waiter {
  rl_list list;           /* in |asleep|, |unposted| or |spare| */
  rl_semaphore semaphore; /* on which the thread sleeps */
  rl_event *event;        /* ends the thread's poll while the thread leads */
  unsigned number;        /* among all waiters of the client, from 1 */
  redlock_lock *lock;     /* whose operation the thread waits for; NULL: for any turn */
  bool each_turn;         /* the thread is woken after each turn */
  bool in_use;
  bool sleeps;
  bool woken;       /* taken out of |asleep|, in order to check its operation or to lead */
  bool unposted;    /* woken, but its semaphore is not posted yet */
  unsigned wakeups; /* redlock_client_wakeup() calls before the thread's own call */
} rl_waiter;

/* Reasons for the polling thread to wake. */
typedef struct rl_wait_wants {
  unsigned changes;  /* number of changes of descriptors so far */
  uint32_t writable; /* nodes whose descriptor is polled for writing */
  redlock_time deadline_us;
} rl_wait_wants;

typedef struct rl_wait {
  rl_waiter *leader;    /* the thread that polls, or is woken to poll; or NULL */
  bool polls;           /* the leader has unlocked the mutex and polls */
  bool poked;           /* the leader's event has been set since */
  rl_wait_wants wants;  /* what the leader polls for */
  bool turned;          /* input was read since the mutex was taken */
  unsigned watchers;    /* waiters with |each_turn| */
  bool unsent;          /* bytes are left to arriving threads ... */
  redlock_time send_us; /* ... until this time */
  bool unstarted;       /* operations that have begun are left to them, too */
  unsigned arriving;    /* woken threads that have not locked the mutex yet */
  unsigned missed;      /* arriving threads that a leader has waited for in vain */
  unsigned posted;      /* arriving threads with a set semaphore, except stuck ones */
  bool brief;           /* the leader polls for 1 ms at most: unposted threads wait */
  bool hurried;         /* post all unposted threads now */
  rl_waiter *sender;    /* wakes to send if no arriving thread does; or NULL */
  rl_list asleep;
  rl_list unposted; /* woken threads; threads that unlock the mutex post them */
  rl_list spare;
  rl_waiter **made; /* all waiters, by their numbers */
  size_t made_count;
  size_t made_capacity;
  atomic_uint wakeups;   /* redlock_client_wakeup() calls */
  unsigned wakeups_seen; /* the count at which the sleepers were last woken */
  rl_event event;        /* of the leader; open after the first wait */
  rl_timer timer;        /* of the leader; open after the first long wait */
} rl_wait;

void rl_wait_init(rl_wait *wait);
void rl_wait_free(rl_wait *wait);

/* Drops all waiters in a forked child, which has none of the threads. */
void rl_wait_forget(rl_wait *wait);

/* ---- below: the caller has entered the client ---- */

/* Returns the first waiter of |list|, or NULL. */
static inline rl_waiter *rl_wait_first(const rl_list *list) {
  return RL_LIST_FIRST(list, rl_waiter, list);
}

/*
 * Returns a waiter without a thread. NULL if out of memory, or if RL_LOCK_WAITED_MAX threads wait.
 */
rl_waiter *rl_wait_take_spare(rl_wait *wait);

/* Leaves bytes to arriving threads, for at most RL_WAIT_UNSENT_US. */
void rl_wait_leave_unsent(rl_wait *wait);

#endif
