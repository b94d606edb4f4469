/*
 * A node: its address, its connection, and the time of the next connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_NODE_H
#define RL_NODE_H

#include "base/rl_reason.h"
#include "base/rl_stats.h"
#include "node/rl_link.h"

/* X(state, name). */
#define RL_NODE_STATES(X)                                                                          \
  X(REDLOCK_NODE_DOWN, down)                                                                       \
  X(REDLOCK_NODE_CONNECTING, connecting)                                                           \
  X(REDLOCK_NODE_UP, up)

#define RL_NODE_ERROR_MAX RL_REASON_MAX

typedef struct rl_node {
  rl_address address;
  unsigned index;
  unsigned failures;          /* useless connections in a row */
  redlock_time connect_at_us; /* earliest time of the next connection */
  redlock_time needed_at_us;  /* the same for an operation that needs the node, if earlier */
  redlock_time tried_us;      /* begin of the last connection */
  uint64_t random;            /* for the next delay */
  bool lacks_keys;            /* some lease may not have its key there (rl_backfill.c) */
  unsigned due_count;         /* attempts whose release must still be sent */
  bool read_only;       /* the node refused to write, for |error|, and has not written since */
  uint32_t twins;       /* set of nodes of which one is the same server (rl_twin.h) */
  bool release_blocked; /* a release found no room: repeat it after the next replies */
  redlock_time certificate_ends_us; /* of its TLS connection; 0: unknown */
  bool reported_up;                 /* the last event of the node was "up" ... */
  bool reported_down;               /* ... or "down"; neither: there was none */
  redlock_time quarantine_ends_us;  /* of the counted quarantine; 0: there is none */
  rl_node_stats stats;
  rl_link link;
  rl_reason *reason; /* the last one that locks copied; or NULL */
  char
      error[RL_NODE_ERROR_MAX + 1]; /* why it is not up, read-only, a twin or without scripts; "" */
} rl_node;

/* Returns the set that has only this node. */
static inline uint32_t rl_node_bit(const rl_node *node) {
  return (uint32_t)1 << node->index;
}

/* Copies |address|. The node must not move. */
void rl_node_init(rl_node *node, unsigned index, const rl_address *address);
void rl_node_free(rl_node *node, rl_attempt_pool *pool);

/* Notes that an operation needs the node: the next connection begins earlier. */
void rl_node_shorten_delay(rl_node *node);

/* Returns true if a connection may begin. */
bool rl_node_wants_connection(const rl_node *node, redlock_time now_us);

/* Begins the handshake. Ends the connection if out of memory. */
void rl_node_connected(rl_node *node, redlock_time now_us);

/*
 * Ends the connection, or the try, for |reason|. The caller must take the outstanding commands
 * (rl_link_take()) before the next connection.
 */
void rl_node_disconnected(rl_node *node, redlock_time now_us, const char *reason);

/*
 * Returns true if the last reply says that the node is a read-only replica, or a master without its
 * replicas. After a fail-over its name may lead to another server, while this connection stays up.
 */
bool rl_node_refuses_to_write(const rl_node *node);

/* Ends the connection for |refusal|. The node then counts as down until it has written. */
void rl_node_disconnect_read_only(rl_node *node, redlock_time now_us, const char *refusal);

/* Notes that the node has written: it is no replica. */
void rl_node_note_write(rl_node *node);

/* Returns true if the node can be asked for votes. */
bool rl_node_is_up(const rl_node *node);

/*
 * Returns true if the node cannot be asked, and that will last: not while it connects, nor right
 * after the end of a useful connection, which is repeated at once.
 */
bool rl_node_is_down(const rl_node *node, redlock_time now_us);

/* Returns the remaining validity of the TLS certificate; REDLOCK_NEVER if it is unknown. */
redlock_duration rl_node_certificate(const rl_node *node, redlock_time now_us);

/* Returns when the connection is overdue, or when the next one may begin. */
static inline redlock_time rl_node_deadline(const rl_node *node) {
  return node->link.phase == RL_LINK_DOWN ? node->connect_at_us : rl_link_deadline(&node->link);
}

#endif
