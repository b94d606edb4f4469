/*
 * One node: its connection's state, the commands for it and the replies that it owes.
 *
 * SPDX-License-Identifier: MIT
 *
 * A node has one connection, on which the commands of all operations are pipelined. Replies come in
 * the order of the commands, so a queue of what is owed tells what each reply answers. Nothing is
 * ever waited for to be drained: a reply for an attempt that is over is taken off and dropped.
 */
#ifndef RL_NODE_H
#define RL_NODE_H

#include <stdbool.h>

#include "rl_address.h"
#include "rl_attempt.h"
#include "rl_buffer.h"
#include "rl_reply.h"
#include "rl_time.h"

/*
 * Bounds. New acquires stop well before the others do, so that what was acquired can be released
 * even when a node has stopped answering.
 */
#define RL_NODE_OWED_ACQUIRE_MAX 16384
#define RL_NODE_OWED_MAX 65536
#define RL_NODE_OUTPUT_ACQUIRE_MAX ((size_t)4 << 20)
#define RL_NODE_OUTPUT_MAX ((size_t)16 << 20)
#define RL_NODE_ERROR_MAX 191

#define RL_NODE_CONNECT_TIMEOUT_US (3 * REDLOCK_SECONDS)
#define RL_NODE_SILENCE_US (3 * REDLOCK_SECONDS)
#define RL_NODE_BACKOFF_MIN_US (50 * REDLOCK_MILLISECONDS)
#define RL_NODE_BACKOFF_MAX_US REDLOCK_SECONDS

typedef enum rl_node_phase {
  RL_NODE_DOWN = 0,   /* no connection */
  RL_NODE_CONNECTING, /* the driver resolves the name and connects */
  RL_NODE_HANDSHAKE,  /* connected; logging in */
  RL_NODE_UP
} rl_node_phase;

typedef enum rl_owed_kind {
  RL_OWED_HANDSHAKE,
  RL_OWED_ACQUIRE,
  RL_OWED_EXTEND,
  RL_OWED_HEAL,
  RL_OWED_RELEASE
} rl_owed_kind;

/* A reply that the node owes: for which attempt, in which round of its lock. */
typedef struct rl_owed {
  rl_attempt *attempt; /* a reference; NULL for the handshake */
  redlock_time sent_us;
  uint32_t round;
  uint8_t kind;
  uint8_t by_text; /* EVAL: there is nothing to fall back to */
  uint8_t step;    /* of the handshake */
} rl_owed;

typedef struct rl_node {
  rl_address address;
  unsigned index;
  rl_node_phase phase;
  unsigned failures;              /* connections in a row that were of no use */
  bool useful;                    /* this one has answered an operation */
  redlock_time up_us;             /* since when it is up */
  redlock_time connect_at_us;     /* DOWN: not before */
  redlock_time phase_deadline_us; /* CONNECTING, HANDSHAKE: not after */
  redlock_time heard_us;          /* the last byte, or since when something is owed */
  redlock_duration silence_us;    /* how long the node may owe without a byte */
  redlock_duration latency_us;    /* of the last reply; REDLOCK_NEVER before the first */
  rl_reply_reader reader;
  rl_buffer output;
  rl_owed *owed; /* a ring */
  unsigned owed_capacity;
  unsigned owed_head;
  unsigned owed_count;
  bool knows[2];                     /* by rl_script: it has run the script on this connection */
  bool release_blocked;              /* a release found no room: try again when replies have come */
  char error[RL_NODE_ERROR_MAX + 1]; /* why it is not up; empty when it is */
} rl_node;

/* Takes |address| by value. Cannot fail. */
void rl_node_init(rl_node *node, unsigned index, const rl_address *address);
void rl_node_free(rl_node *node, rl_attempt_pool *pool);

/* Whether a connection may be tried now. */
bool rl_node_wants_connection(const rl_node *node, redlock_time now_us);

/* DOWN -> CONNECTING */
void rl_node_connecting(rl_node *node, redlock_time now_us);

/* CONNECTING -> HANDSHAKE, or DOWN when out of memory. */
void rl_node_connected(rl_node *node, redlock_time now_us);

/*
 * Any phase -> DOWN, with |reason| kept in node->error. What is owed is left for the caller to take,
 * by rl_node_take(), before the node is connected again.
 */
void rl_node_disconnected(rl_node *node, redlock_time now_us, const char *reason);

/* The instant at which rl_node_overdue() will answer; REDLOCK_NEVER if none is known. */
redlock_time rl_node_deadline(const rl_node *node);

/* Why the connection must be given up by now, or NULL. */
const char *rl_node_overdue(const rl_node *node, redlock_time now_us);

/* For how long the oldest reply has been owed; 0 when none is. */
redlock_duration rl_node_behind(const rl_node *node, redlock_time now_us);

/* Whether a command of |kind| may be queued: the node is up and below its bounds. */
bool rl_node_has_room(const rl_node *node, rl_owed_kind kind);

/*
 * Queue a command of an attempt. Each takes a reference of the attempt and returns true, or returns
 * false, having done nothing, when out of memory. With |grow| false nothing is allocated. A script
 * goes by its text with |by_text|, and until the node has shown that it knows it.
 */
bool rl_node_queue_set(rl_node *node, redlock_time now_us, rl_owed_kind kind, rl_attempt *attempt,
                       uint32_t round, uint64_t ttl_ms);
bool rl_node_queue_extend(rl_node *node, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                          bool by_text, uint64_t ttl_ms);
bool rl_node_queue_release(rl_node *node, redlock_time now_us, rl_attempt *attempt, uint32_t round,
                           bool by_text, bool grow);

/* Bytes from the node. Returns NULL, or why the connection must be given up. */
const char *rl_node_feed(rl_node *node, redlock_time now_us, const void *bytes, size_t length);

/*
 * The next complete reply of an operation, in node->reader.reply, with what it answers moved to
 * |*owed|, whose reference is the caller's: 1; 0 when there is none yet; -1 when the connection must
 * be given up, for |*reason|. Replies of the handshake are dealt with inside; *came_up is set when
 * the last of them has come.
 */
int rl_node_next(rl_node *node, redlock_time now_us, rl_owed *owed, bool *came_up,
                 const char **reason);

/* The text of the error in node->reader.reply, without what may be the password. */
const char *rl_node_said(rl_node *node);

/* Takes the oldest debt off without a reply: false when nothing is owed. */
bool rl_node_take(rl_node *node, rl_owed *owed);

#endif
