/*
 * A client: the core, its sockets and its clock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_H
#define RL_CLIENT_H

#include <poll.h>

#include "rl_core.h"
#include "rl_fork.h"
#include "rl_socket.h"

#define RL_CLIENT_DRAIN_US (100 * REDLOCK_MILLISECONDS)
#define RL_CLIENT_MESSAGE_MAX 2048

struct redlock_client {
  rl_core core;
  unsigned references;
  rl_fork mark;
  char *username; /* for nodes that bring none */
  char *password;
  int db;
  int tls;
  bool carried;                /* by connections of another, which carry whatever a node speaks */
  int epoll_fd;                /* -1 until it is asked for */
  int timer_fd;                /* in the epoll set, for what is due later */
  int event_fd;                /* in the epoll set, for what is due at once */
  redlock_time timer_us;       /* what the timer is set to */
  bool woken;                  /* the event is readable */
  bool wake;                   /* operations have ended outside of the caller's loop */
  redlock_time processed_us;   /* when input was looked for last */
  redlock_client *linger_next; /* in an rl_linger */
  bool lingering;
  const char *failure;   /* of the last call on the client, or NULL */
  char unconfirmed[256]; /* close: which nodes */
  char message[RL_CLIENT_MESSAGE_MAX];
  rl_socket sockets[REDLOCK_NODES_MAX];
};

struct redlock_lock {
  redlock_client *client; /* a reference */
  rl_lock *core;
  void *data;
};

/*
 * To be called first in every public function: in a forked child everything inherited is dropped,
 * without a byte reaching a node.
 */
void rl_client_check_fork(redlock_client *client);

/*
 * Notes what a call ended with for redlock_client_message(): |sentence| is static or the client's, or
 * NULL for the error's own. Returns |error|.
 */
int rl_client_note(redlock_client *client, int error, const char *sentence);

/* Sends what is left and waits for the replies, at most until |deadline_us|. */
void rl_client_drain(redlock_client *client, redlock_time deadline_us);

/* The memory of a client without its locks and what is being sent, about. */
size_t rl_client_size(const redlock_client *client);

/* Frees a client that nobody refers to; what has not been sent is lost. */
void rl_client_destroy(redlock_client *client);

#endif
