/*
 * The callers of a client, and the state that they share. rl_caller.c has the words and the rules.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CALLERS_H
#define RL_CALLERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/rl_list.h"
#include "os/rl_eventfd.h"
#include "os/rl_mutex.h"
#include "os/rl_sleeper.h"
#include "os/rl_timerfd.h"
#include "redlock.h"

/* Longest time that bytes are left to arriving callers. */
#define RL_CALLERS_UNSENT_US REDLOCK_MILLISECONDS

/* A thread in a blocking call, or the watchdog. */
typedef struct rl_caller {
  rl_list list;       /* in |asleep|, |unposted| or |spare| */
  rl_sleeper sleeper; /* on which the caller sleeps */
  rl_eventfd *event;  /* ends its poll while it is the poller */
  unsigned number;    /* among all callers of the client, from 1 */
  redlock_lock *lock; /* the caller waits for its operation; NULL: for any turn */
  bool each_turn;     /* the caller is woken after each turn */
  bool in_use;
  bool sleeps;      /* it is asleep, unposted or posted */
  bool woken;       /* taken out of |asleep|, in order to check its operation or to poll */
  bool unposted;    /* woken, but its sleeper is not set yet */
  unsigned wakeups; /* redlock_client_wakeup() calls before the call of this thread */
} rl_caller;

/* Events and the time for which a client polls. */
typedef struct rl_callers_wants {
  unsigned changes;  /* number of changes of descriptors so far */
  uint32_t writable; /* nodes whose descriptor is polled for writing */
  redlock_time deadline_us;
  size_t count; /* number of descriptors */
} rl_callers_wants;

typedef struct rl_callers {
  rl_caller *poller;      /* polls for all, or is woken to poll; or NULL */
  bool polling;           /* the poller has unlocked the mutex and polls */
  bool event_is_set;      /* the poller's event was set while it polls */
  rl_callers_wants wants; /* events and time for which it polls */
  bool turned;            /* a turn was taken since the mutex was locked */
  unsigned turn_checkers; /* callers with |each_turn| */
  bool unsent;            /* bytes are left to arriving callers ... */
  redlock_time send_us;   /* ... until this time */
  bool unsent_operations; /* operations that have begun are left to them, too */
  unsigned arriving;      /* number of arriving callers */
  unsigned missed;        /* arriving callers for which the poller has waited in vain */
  unsigned posted;        /* posted callers, except stuck ones */
  bool polls_briefly;     /* the poller polls for 1 ms at most, because callers are unposted */
  bool post_all;          /* post all unposted callers now */
  rl_caller *sender;      /* wakes to send if no arriving caller does; or NULL */
  rl_list asleep;
  rl_list unposted;
  rl_list spare;
  rl_caller **all; /* by their numbers */
  size_t count;
  size_t capacity;
  atomic_uint wakeups;   /* redlock_client_wakeup() calls */
  unsigned wakeups_seen; /* the count at which sleeping callers were last woken */
  rl_eventfd event;      /* of the poller; open after the first wait */
  rl_timerfd timer;      /* of the poller; open after the first long wait */
} rl_callers;

void rl_callers_init(rl_callers *callers);
void rl_callers_free(rl_callers *callers);

/* Drops all callers in a forked child, which has none of the threads. */
void rl_callers_reset(rl_callers *callers);

/* ---- below: the caller has entered the client ---- */

/* Returns the first caller of |list|, or NULL. */
static inline rl_caller *rl_callers_first(const rl_list *list) {
  return RL_LIST_FIRST(list, rl_caller, list);
}

/*
 * Returns a caller without a thread. NULL if out of memory, or if RL_LOCK_CALLERS_MAX threads wait.
 */
rl_caller *rl_callers_take_spare(rl_callers *callers);

/* Leaves bytes to arriving callers, for at most RL_CALLERS_UNSENT_US. */
void rl_callers_leave_unsent(rl_callers *callers);

#endif
