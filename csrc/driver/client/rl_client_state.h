/*
 * A client: the core, its sockets and its clock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_STATE_H
#define RL_CLIENT_STATE_H

#include <poll.h>

#include "client/rl_waiters.h"
#include "client/rl_watchdog_state.h"
#include "net/rl_socket.h"
#include "os/rl_fork.h"
#include "os/rl_mutex.h"
#include "os/rl_timer.h"
#include "rl_core.h"

/*
 * The mutex guards all of it, and the client's locks, but for what never changes once it is made:
 * settings, nodes' addresses, locks' resources and options.
 */
struct redlock_client {
  rl_core core; /* the first: rl_client_of() */
  rl_mutex mutex;
  rl_wait wait; /* who waits for the nodes */
  rl_watchdog watchdog;
  unsigned references;
  rl_fork mark;
  redlock_settings settings;   /* a copy, without |options|: those are in the core */
  bool external;               /* by connections of another, which carry whatever a node speaks */
  int epoll_fd;                /* -1 until it is asked for */
  int event_fd;                /* in the epoll set, for what is due at once */
  rl_timer timer;              /* in the epoll set, for what is due later */
  redlock_time driver_due_us;  /* when the driver wants a turn, whatever is due; 0 = it does not */
  bool event_is_set;           /* the event is readable */
  bool wake;                   /* operations have ended outside of the caller's loop */
  redlock_time processed_us;   /* when input was looked for last */
  redlock_client *linger_next; /* in an rl_linger */
  bool lingering;
  uint32_t asks;        /* nodes for which Lua code is to be asked (rl_lua_credentials.c) ... */
  bool asking;          /* and is being asked ... */
  bool asked_by_driver; /* by its driver, not while a call waits */
  bool has_on_lost;     /* Lua code is to be told of losses (rl_lua_loss.c) ... */
  bool driver_reports_losses; /* ... by its driver, not by the next call */
  bool reports_losses;        /* and is being told */
  const char *failure;        /* of the last call on the client, or NULL */
  char unconfirmed[256];      /* close: which nodes */
  char unready[1024];         /* bootstrap: likewise */
  rl_socket sockets[REDLOCK_NODES_MAX];
  rl_route routes[REDLOCK_NODES_MAX]; /* how each node is reached */
};

/*
 * The caller's lock is the core's by another name: a struct of its own would cost 32 bytes for each. It has a
 * reference to its client. What the caller keeps with it is lock->data.
 */
static inline rl_lock *rl_lock_of(const redlock_lock *lock) {
  return (rl_lock *)(uintptr_t)lock;
}

/* NULL for NULL. */
static inline redlock_lock *rl_handle_of(rl_lock *lock) {
  return (redlock_lock *)lock;
}

static inline redlock_client *rl_client_of(const redlock_lock *lock) {
  return (redlock_client *)rl_lock_of(lock)->core;
}

#endif
