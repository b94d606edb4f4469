/*
 * The state of the core, as far as locks and what is above them share it.
 *
 * SPDX-License-Identifier: MIT
 *
 * The modules above keep states of their own, behind pointers: each knows its own only, and this layer none of them.
 */
#ifndef RL_STATE_H
#define RL_STATE_H

#include "rl_lock.h"
#include "rl_node.h"
#include "rl_outbox.h"
#include "rl_quorum.h"

typedef struct rl_core {
  rl_node *nodes[REDLOCK_NODES_MAX];
  unsigned node_count;
  unsigned quorum;  /* how many nodes acquires and extends need; 0: a majority */
  bool active;      /* an operation has been begun: connections are wanted */
  bool finds_twins; /* nodes that deny a lock are tested: rl_twin.h */
  bool keeps; /* the driver's sockets have no keep-alive: idle connections are kept by commands */
  bool closed;
  redlock_time now_us;       /* the latest that was said; it never goes back */
  rl_node_clock wall;        /* the program's own wall clock, if the driver has noted it */
  uint64_t random;           /* stirred by what attempts draw; for delays of connections */
  redlock_time forgotten_us; /* when a node last did not know a script any more */
  size_t lock_count;
  size_t busy_count;          /* locks with an operation, or an automatic extend, in flight */
  size_t lease_count;         /* locks with a lease, which may have run out */
  redlock_time leases_end_us; /* when the last of them has */
  rl_lock *locks;
  rl_launches launches;
  rl_list ended;
  rl_list waited; /* ended, too, of those that a thread waits for */
  rl_timers timers;
  rl_attempt_pool attempts;
  void *prefix;
  size_t prefix_length;
  rl_options options; /* of locks that bring none of their own */
  rl_guards *guards;  /* of the guard (rl_guard.c), or NULL */

  struct rl_lines *lines;         /* of waiters */
  struct rl_calls *calls;         /* of nodes, or NULL */
  struct rl_releases *releases;   /* that are due */
  struct rl_joins *joins;         /* of nodes */
  struct rl_losses *losses;       /* that are to be told */
  struct rl_reentries *reentries; /* of owners */
} rl_core;

/* Returns how many nodes must grant an operation: an acquire and an extend the core's quorum, others a majority. */
static inline unsigned rl_core_quorum(const rl_core *core, rl_operation operation) {
  bool lease = operation == RL_OPERATION_ACQUIRE || operation == RL_OPERATION_EXTEND;
  return lease && core->quorum != 0 ? core->quorum : rl_quorum_majority(core->node_count);
}

#endif
