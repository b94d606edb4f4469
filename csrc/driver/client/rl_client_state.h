/*
 * A client: the core, its sockets, its threads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_STATE_H
#define RL_CLIENT_STATE_H

#include <poll.h>

#include "client/rl_callers.h"
#include "net/rl_socket.h"
#include "os/rl_fork.h"
#include "os/rl_mutex.h"
#include "os/rl_timerfd.h"
#include "rl_core.h"

/* The watchdog: the thread that extends the leases of a client between calls (rl_watchdog.c). */
typedef struct rl_watchdog {
  bool forbidden; /* this client must not have one: inside nginx */
  bool runs;
  bool stops;
  void (*ends_client)(redlock_client *); /* frees the client at its end; NULL: the client stays */
  bool loop_is_absent; /* the program's loop was not there when something was due */
  pthread_t thread;
  redlock_time until_us; /* time when it wakes by itself; 0 while it is awake */
  rl_caller self;
  rl_eventfd event;
  redlock_lost_function *on_lost; /* receives losses, or NULL */
  void *on_lost_data;
  uint32_t reported_count;          /* losses before its last report */
  redlock_event_function *on_event; /* receives events, or NULL */
  void *on_event_data;
  uint32_t reported_events; /* events before its last report */
} rl_watchdog;

/*
 * The mutex guards all of it, and the client's locks, except what never changes: settings,
 * addresses of nodes, resources and options of locks.
 */
struct redlock_client {
  rl_core core; /* the first: rl_client_of() */
  rl_mutex mutex;
  rl_callers callers;
  rl_watchdog watchdog;
  unsigned references;
  rl_fork mark;
  redlock_settings settings; /* a copy; |options| are in the core */
  bool external;             /* its connections are another program's (nginx) */
  int epoll_fd;              /* -1 until the program asks for it */
  rl_eventfd event;          /* in the epoll set, for what is due at once */
  bool event_is_set;
  rl_timerfd timer;            /* in the epoll set, for what is due later */
  redlock_time driver_due_us;  /* time when the driver needs a turn; 0 = never */
  bool wake;                   /* operations have ended outside of the program's loop */
  redlock_time processed_us;   /* time of the last turn */
  redlock_client *linger_next; /* in an rl_linger */
  bool lingering;
  uint32_t wants_credentials; /* nodes for which Lua code must supply credentials ... */
  bool asking;                /* ... and does so now ... */
  bool asked_by_driver;       /* ... when its driver asks, not during a call */
  bool has_on_event;          /* Lua code receives events, where it would receive losses */
  bool has_on_lost;           /* Lua code receives losses ... */
  bool driver_reports_losses; /* ... from its driver, not from its next call ... */
  bool reports_losses;        /* ... and does so now */
  const char *failure;        /* reason of the last call's failure, or NULL */
  char failure_text[1024];    /* holds it if it names nodes */
  rl_socket sockets[REDLOCK_NODES_MAX];
  rl_route routes[REDLOCK_NODES_MAX];
};

/*
 * The program's lock is the core's under another name, because a struct of its own would cost 32
 * bytes for each. It has a reference to its client; lock->data is the program's.
 */
static inline rl_lock *rl_lock_of(const redlock_lock *lock) {
  return (rl_lock *)(uintptr_t)lock;
}

/* Returns NULL for NULL. */
static inline redlock_lock *rl_handle_of(rl_lock *lock) {
  return (redlock_lock *)lock;
}

static inline redlock_client *rl_client_of(const redlock_lock *lock) {
  return (redlock_client *)rl_lock_of(lock)->core;
}

#endif
