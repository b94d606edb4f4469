/*
 * One node: its address, its connection, and when to try the next one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_NODE_H
#define RL_NODE_H

#include "base/rl_reason.h"
#include "node/rl_link.h"

/* X(state, its name). */
#define RL_NODE_STATES(X)                                                                          \
  X(REDLOCK_NODE_DOWN, down)                                                                       \
  X(REDLOCK_NODE_CONNECTING, connecting)                                                           \
  X(REDLOCK_NODE_UP, up)

#define RL_NODE_ERROR_MAX RL_REASON_MAX

typedef struct rl_node {
  rl_address address;
  unsigned index;
  unsigned failures;          /* connections in a row that were of no use */
  redlock_time connect_at_us; /* no connection is tried before */
  redlock_time needed_at_us;  /* nor before this, when an operation needs the node */
  redlock_time tried_us;      /* when the last one was begun */
  uint64_t random;            /* for the next delay */
  bool lacks_keys;            /* some lease may not have its key there (rl_backfill.c) */
  unsigned due_count;         /* attempts whose release is still to be sent to it */
  bool read_only;             /* it has refused to write, for |error|, and has not written since */
  uint32_t twins;             /* nodes one of which is the same server (rl_twin.h); or 0 */
  bool release_blocked;       /* a release found no room: try again when replies have come */
  redlock_time certificate_ends_us; /* of its TLS connection; 0: not known */
  rl_link link;
  rl_reason *reason; /* what locks have quoted last, or NULL */
  char error[RL_NODE_ERROR_MAX +
             1]; /* why it is not up; empty when it is, unless |read_only| or |twins| */
} rl_node;

/* The node in a set of nodes. */
static inline uint32_t rl_node_bit(const rl_node *node) {
  return (uint32_t)1 << node->index;
}

/* Takes |address| by value. The node must not move. Cannot fail. */
void rl_node_init(rl_node *node, unsigned index, const rl_address *address);
void rl_node_free(rl_node *node, rl_attempt_pool *pool);

/* An operation needs the node: the next connection is tried as soon as that costs little. */
void rl_node_needed(rl_node *node);

/* Returns true if a connection may be tried now. */
bool rl_node_wants_connection(const rl_node *node, redlock_time now_us);

/* The connection was made: its handshake begins, or it is given up when memory is short. */
void rl_node_connected(rl_node *node, redlock_time now_us);

/*
 * The connection has ended, or was not made, for |reason|, which is kept in node->error. What it
 * owed is left for the caller to take, by rl_link_take(), before the node is connected again.
 */
void rl_node_disconnected(rl_node *node, redlock_time now_us, const char *reason);

/*
 * Returns true if the reply that came last says that the node is a read-only replica. After a fail-over its
 * name may lead to another server by now, while this connection stays up.
 */
bool rl_node_refuses_to_write(const rl_node *node);

/*
 * The same as rl_node_disconnected() for |refusal|, the words of the node: a new connection is no success before
 * the node has written.
 */
void rl_node_read_only(rl_node *node, redlock_time now_us, const char *refusal);

/* The node has written: it is no replica. */
void rl_node_wrote(rl_node *node);

/* For how long the certificate of the connection is valid yet; REDLOCK_NEVER when that is not known. */
redlock_duration rl_node_certificate(const rl_node *node, redlock_time now_us);

/* When the connection is overdue, or the next one may be tried; REDLOCK_NEVER if neither is known. */
static inline redlock_time rl_node_deadline(const rl_node *node) {
  return node->link.phase == RL_LINK_DOWN ? node->connect_at_us : rl_link_deadline(&node->link);
}

#endif
