/*
 * A client: the core, its sockets and its clock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_H
#define RL_CLIENT_H

#include <poll.h>

#include "rl_client_wait.h"
#include "rl_core.h"
#include "rl_fork.h"
#include "rl_keeper.h"
#include "rl_mutex.h"
#include "rl_socket.h"
#include "rl_timer.h"

#define RL_CLIENT_DRAIN_US (100 * REDLOCK_MILLISECONDS)
#define RL_CLIENT_MESSAGE_MAX 2048

/*
 * The mutex guards all of it, and the client's locks, but for what never changes once it is made:
 * settings, nodes' addresses, locks' resources and options.
 */
struct redlock_client {
  rl_core core; /* the first: rl_client_of() */
  rl_mutex mutex;
  rl_wait wait; /* who waits for the nodes */
  rl_keeper keeper;
  unsigned references;
  rl_fork mark;
  redlock_settings settings;   /* a copy, without |options|: those are in the core */
  bool carried;                /* by connections of another, which carry whatever a node speaks */
  int epoll_fd;                /* -1 until it is asked for */
  int event_fd;                /* in the epoll set, for what is due at once */
  rl_timer timer;              /* in the epoll set, for what is due later */
  redlock_time alarm_us;       /* when the driver wants a turn, whatever is due; 0 = it does not */
  bool woken;                  /* the event is readable */
  bool wake;                   /* operations have ended outside of the caller's loop */
  redlock_time processed_us;   /* when input was looked for last */
  redlock_client *linger_next; /* in an rl_linger */
  bool lingering;
  uint32_t asks;         /* nodes for which Lua code is to be asked (rl_lua_credentials.c) ... */
  bool asking;           /* and is being asked ... */
  bool asked_by_driver;  /* by its driver, not while a call waits */
  bool tells;            /* Lua code is to be told of losses (rl_lua_loss.c) ... */
  bool told_by_driver;   /* ... by its driver, not by the next call */
  bool telling;          /* and is being told */
  const char *failure;   /* of the last call on the client, or NULL */
  char unconfirmed[256]; /* close: which nodes */
  char unready[1024];    /* bootstrap: likewise */
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

/*
 * To be called first in every public function: takes the mutex. In a forked child everything inherited
 * is dropped then, without a byte reaching a node.
 */
void rl_client_enter(redlock_client *client);

/*
 * To be called last: what has changed is told to the threads that wait (rl_client_wait.c), and the mutex
 * is free.
 */
void rl_client_leave(redlock_client *client);

/* The same, and gives up a reference: the client may be gone. It is not drained. */
void rl_client_leave_for_good(redlock_client *client);

/*
 * Frees a client that nobody refers to; what has not been sent is lost. Called by its keeper, it ends when that
 * does.
 */
void rl_client_destroy(redlock_client *client);

/* The part of rl_client_enter() for forks, for drivers whose clients belong to one thread. */
void rl_client_check_fork(redlock_client *client);

/*
 * Notes what a call ended with for redlock_client_message(): |sentence| is static or the client's, or
 * NULL for the error's own. Returns |error|.
 */
int rl_client_note(redlock_client *client, int error, const char *sentence);

/* What is wrong with the client's quorum for as many nodes as it has, as a static sentence, or NULL. */
const char *rl_client_wrong_quorum(const redlock_client *client);

/*
 * Sends what is left and waits for the replies, at most until |deadline_us| or redlock_client_wakeup().
 * The caller has entered; others may come while it waits.
 */
void rl_client_drain(redlock_client *client, redlock_time deadline_us);

/*
 * redlock_client_close() in steps, for a caller that has to look at something else while it waits: waits until
 * |until_us|, and returns whether it is of use to wait on. In the end redlock_client_close() without time.
 * |patience_us| is what all steps together may take.
 */
bool rl_client_closing(redlock_client *client, redlock_time until_us, redlock_duration patience_us);

/*
 * |*text|, unless it is NULL, is copied into |room|, of REDLOCK_TEXT_MAX bytes in a struct of the caller's, and
 * is there from now on: ours may be changed by another thread as soon as the mutex is free.
 */
void rl_client_lend(const char **text, char *room);

/* The memory of a client without its locks and what is being sent, about. */
size_t rl_client_size(const redlock_client *client);

#endif
