/*
 * The state of the guard (rl_guard.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_GUARD_STATE_H
#define RL_GUARD_STATE_H

#include "base/rl_reason.h"
#include "base/rl_sha1.h"
#include "node/rl_clock_watch.h"
#include "wire/rl_lineage.h"

struct rl_node;

/* The time for which a confirmed replication history needs no check (GRD-4). */
#define RL_GUARD_TRUST_US (100 * REDLOCK_MILLISECONDS)

/* The state of a node. It votes when KNOWN, from votes_at_us. */
typedef enum rl_guard_state {
  RL_GUARD_UNKNOWN = 0, /* no answer on this connection */
  RL_GUARD_KNOWN,       /* it has a record of these clients */
  RL_GUARD_MISSING,     /* its record must be created */
  RL_GUARD_REFUSED      /* it cannot vote */
} rl_guard_state;

/* The actions of the guard's script (rl_command_guard()), in rl_outstanding.step. */
typedef enum rl_guard_action {
  RL_GUARD_CHECK,
  RL_GUARD_CREATE,
  RL_GUARD_RECREATE,   /* after a step of the clock */
  RL_GUARD_INVALIDATE, /* after a step to a wrong time */
  RL_GUARD_BOOTSTRAP
} rl_guard_action;

/* The guard of a client, for all nodes. */
typedef struct rl_guards {
  struct rl_node *nodes[REDLOCK_NODES_MAX];
  unsigned node_count;
  redlock_duration max_ttl_us;
  redlock_duration quarantine_us;
  redlock_duration skew_us; /* RL_GUARD_SKEW_US; a test may make it larger */
  redlock_time reviewed_us; /* time of the last comparison of clocks */
  char cluster[RL_LINEAGE_CLUSTER_MAX + 1];
  char key[RL_LINEAGE_KEY_MAX + 1];
  char fingerprint[RL_LINEAGE_FINGERPRINT_MAX + 1]; /* empty until all nodes are added */
} rl_guards;

/* The guard of a node. */
typedef struct rl_guard {
  rl_guards *guards;
  rl_guard_state state;
  rl_lineage_why why;  /* MISSING: why the record must be created; KNOWN: why it was */
  bool declined;       /* the node has refused the guard's last write, for |reason| */
  bool asked;          /* a command of the guard is outstanding */
  bool near;           /* the clocks of a majority of all nodes are near its clock */
  bool distant;        /* no majority can be near, whatever the unknown clocks show */
  bool stepped;        /* its clock was stepped at stepped_us, and no record created since */
  unsigned changes;    /* of the record since the last successful acquire (GRD-5) */
  int64_t distance_us; /* its clock minus the median */
  redlock_time votes_at_us;
  redlock_time asked_us;   /* send time of the guard's last command */
  redlock_time history_us; /* send time of the last command that confirmed the history */
  redlock_time stepped_us;
  redlock_time clock_sent_us; /* send time of the last command that returned the clock */
  uint64_t clock_us;          /* that clock */
  uint64_t clock_before_us;   /* the last clock before the step */
  rl_clock_watch watch;       /* of the server |run_id| */
  char run_id[RL_LINEAGE_RUN_ID_MAX + 1];
  char record[RL_LINEAGE_MAX + 1];
  char seal[RL_LINEAGE_SEAL_MAX + 1]; /* the key of the record's seal */
  char sha1[RL_SHA1_LENGTH + 1];      /* of |body| */
  char *body;                     /* the text of TAKE for |record|; NULL if no server is known */
  char reason[RL_REASON_MAX + 1]; /* of REFUSED, and of |declined| */
} rl_guard;

/* Returns the guard of a new node, or NULL if out of memory. */
rl_guard *rl_guard_new(rl_guards *guards);
void rl_guard_free(rl_guard *guard);

/*
 * Returns the replication history that a script must check at |now_us| (GRD-4). NULL if the server
 * has confirmed it recently. REDLOCK_NEVER: always checks.
 */
const char *rl_guard_history(const rl_guard *guard, redlock_time now_us);

/* Notes the end of the connection. */
void rl_guard_disconnected(rl_guard *guard);

#endif
