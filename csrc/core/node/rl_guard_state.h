/*
 * What the guard knows of the nodes: rl_guard.c.
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

/* For so long it need not be asked once more whether the server is a master, with the past that it has told: G4. */
#define RL_GUARD_TRUST_US (100 * REDLOCK_MILLISECONDS)

/* What is known of a node; it votes when KNOWN, and not before votes_at_us. */
typedef enum rl_guard_state {
  RL_GUARD_UNKNOWN = 0, /* it has not told yet */
  RL_GUARD_KNOWN,       /* it has a record, which is ours */
  RL_GUARD_MISSING,     /* its record is still to be made */
  RL_GUARD_REFUSED      /* it is none that could vote for us */
} rl_guard_state;

/* What the nodes are asked to do (rl_command_guard()), as it stands in rl_outstanding.step. */
typedef enum rl_guard_action {
  RL_GUARD_CHECK,
  RL_GUARD_CREATE,
  RL_GUARD_RECREATE,
  RL_GUARD_INVALIDATE,
  RL_GUARD_BOOTSTRAP
} rl_guard_action;

/* Of a client: one for all of its nodes. */
typedef struct rl_guards {
  struct rl_node *nodes[REDLOCK_NODES_MAX];
  unsigned node_count;
  redlock_duration max_ttl_us;
  redlock_duration quarantine_us;
  redlock_duration skew_us; /* RL_GUARD_SKEW_US, but where a test measures time in larger pieces */
  redlock_time reviewed_us; /* when the clocks were compared last */
  char cluster[RL_LINEAGE_CLUSTER_MAX + 1];
  char key[RL_LINEAGE_KEY_MAX + 1];
  char fingerprint[RL_LINEAGE_FINGERPRINT_MAX + 1]; /* empty until all nodes have been added */
} rl_guards;

/* Of a node. */
typedef struct rl_guard {
  rl_guards *guards;
  rl_guard_state state;
  rl_lineage_why why; /* FORGOT: why it is to be made; KNOWN: why it was */
  bool asked;         /* an answer is owed */
  bool near;          /* the clocks of a majority of all nodes are near its own */
  bool distant;       /* they cannot be, whatever those show that are not known yet */
  bool stepped;     /* its clock was seen to be stepped, at stepped_us, and no record made since */
  unsigned changes; /* since it has last taken a lock: G5 */
  int64_t distance_us; /* its clock less the median */
  redlock_time votes_at_us;
  redlock_time asked_us;   /* when it was asked last */
  redlock_time history_us; /* when that was sent to which it has last told of its past */
  redlock_time stepped_us;
  redlock_time clock_sent_us; /* when that was sent to which it has last told its clock */
  uint64_t clock_us;          /* what that clock showed */
  uint64_t clock_before_us;   /* what it showed last before it was stepped */
  rl_clock_watch watch;       /* of the server |run_id| */
  char run_id[RL_LINEAGE_RUN_ID_MAX + 1];
  char record[RL_LINEAGE_MAX + 1];
  char seal[RL_LINEAGE_SEAL_MAX + 1]; /* the key of its seal */
  char sha1[RL_SHA1_LENGTH + 1];      /* of |body| */
  char *body;                     /* the text of TAKE for |record|; NULL before a server is known */
  char reason[RL_REASON_MAX + 1]; /* REFUSED: why */
} rl_guard;

/* Of a node that is being added; NULL when out of memory. */
rl_guard *rl_guard_new(rl_guards *guards);
void rl_guard_free(rl_guard *guard);

/*
 * What a script must be told of the server though its name is of this record: what stands behind its |run_id|; NULL
 * where the server has told it so shortly before |now_us| that nothing can have happened which the seal would not
 * show (G4); never at REDLOCK_NEVER.
 */
const char *rl_guard_history(const rl_guard *guard, redlock_time now_us);

/* The connection has ended. */
void rl_guard_disconnected(rl_guard *guard);

#endif
