/*
 * The guard: which nodes may vote, because they remember what they have granted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_GUARD_H
#define RL_GUARD_H

#include "rl_clock_watch.h"
#include "rl_reason.h"
#include "rl_record.h"
#include "rl_sha1.h"

struct rl_attempt;
struct rl_core;
struct rl_link;
struct rl_node;
struct rl_owed;
struct rl_reply;

/*
 * A node that may have forgotten a lease does not vote for as long as the longest may last, a tenth more, and these
 * 2 ms and RL_GUARD_SKEW_US.
 */
#define RL_GUARD_MARGIN_US (2 * REDLOCK_MILLISECONDS)
#define RL_GUARD_QUARANTINE_MIN_US (6 * REDLOCK_SECONDS)
#define RL_GUARD_MAX_TTL_US (30 * REDLOCK_SECONDS)

/* Clocks that are no further apart are near. */
#define RL_GUARD_SKEW_US (2 * REDLOCK_SECONDS)

/* For so long it need not be asked once more whether the server is a master, with the past that it has told: G4. */
#define RL_GUARD_TRUST_US (100 * REDLOCK_MILLISECONDS)

/* A node whose record is another one so often, without a lock taken in between, is refused. */
#define RL_GUARD_DOUBTS_MAX 3

/* A node that does not vote is asked again so often at most, when an acquire wants it. */
#define RL_GUARD_ASK_EVERY_US (1 * REDLOCK_SECONDS)

/* What is known of a node; it votes when KNOWN, and not before votes_at_us. */
typedef enum rl_guard_standing {
  RL_GUARD_UNSEEN = 0, /* it has not told yet */
  RL_GUARD_KNOWN,      /* it has a record, which is ours */
  RL_GUARD_FORGOT,     /* its record is still to be made */
  RL_GUARD_REFUSED     /* it is none that could vote for us */
} rl_guard_standing;

/* What the nodes are asked to do (rl_command_guard()), as it stands in rl_owed.step. */
typedef enum rl_guard_make {
  RL_GUARD_LOOK,
  RL_GUARD_MAKE,
  RL_GUARD_CLOCK,
  RL_GUARD_SPOIL,
  RL_GUARD_READY
} rl_guard_make;

/* Of a client: one for all of its nodes. */
typedef struct rl_guards {
  redlock_duration max_ttl_us;
  redlock_duration quarantine_us;
  redlock_duration skew_us; /* RL_GUARD_SKEW_US, but where a test measures time in larger pieces */
  redlock_time reviewed_us; /* when the clocks were compared last */
  char cluster[RL_RECORD_CLUSTER_MAX + 1];
  char key[RL_RECORD_KEY_MAX + 1];
  char fingerprint[RL_RECORD_FINGERPRINT_MAX + 1]; /* empty until all nodes have been added */
} rl_guards;

/* Of a node. */
typedef struct rl_guard {
  const rl_guards *guards;
  rl_guard_standing standing;
  rl_record_why why; /* FORGOT: why it is to be made; KNOWN: why it was */
  bool asked;        /* an answer is owed */
  bool near;         /* the clocks of a majority of all nodes are near its own */
  bool distant;      /* they cannot be, whatever those show that are not known yet */
  bool stepped;      /* its clock was seen to be stepped, at stepped_us, and no record made since */
  unsigned doubts;   /* since it has last taken a lock: G5 */
  int64_t distance_us; /* its clock less the median */
  redlock_time votes_at_us;
  redlock_time asked_us; /* when it was asked last */
  redlock_time past_us;  /* when that was sent to which it has last told of its past */
  redlock_time stepped_us;
  redlock_time heard_us; /* when that was sent to which it has last told its clock */
  uint64_t shown_us;     /* what that clock showed */
  uint64_t before_us;    /* what it showed last before it was stepped */
  rl_clock_watch watch;  /* of the server |run_id| */
  char run_id[RL_RECORD_RUN_ID_MAX + 1];
  char record[RL_RECORD_MAX + 1];
  char seal[RL_RECORD_SEAL_MAX + 1]; /* the key of its seal */
  char sha1[RL_SHA1_LENGTH + 1];     /* of |body| */
  char *body;                     /* the text of TAKE for |record|; NULL before a server is known */
  char reason[RL_REASON_MAX + 1]; /* REFUSED: why */
} rl_guard;

/*
 * Turns the guard on, before nodes are added. |cluster| may be NULL. Returns REDLOCK_OK or
 * REDLOCK_E_NO_MEMORY.
 */
int rl_guard_open(struct rl_core *core, redlock_duration max_ttl_us, const char *cluster);
void rl_guard_close(struct rl_core *core);

/* Of a node that is being added; NULL when out of memory. */
rl_guard *rl_guard_new(const rl_guards *guards);
void rl_guard_free(rl_guard *guard);

/*
 * What a script must be told of the server though its name is of this record: what stands behind its |run_id|; NULL
 * where the server has told it so shortly before |now_us| that nothing can have happened which the seal would not
 * show (G4); never at REDLOCK_NEVER.
 */
const char *rl_guard_past(const rl_guard *guard, redlock_time now_us);

/* The script of |owed| has found that the server is who it was; owed.step says whether it has compared its past. */
void rl_guard_recognised(rl_guard *guard, const struct rl_owed *owed);

/* The longest life of a key, of which a client has said |max_ttl_us|, or 0 for nothing. */
static inline redlock_duration rl_guard_longest(redlock_duration max_ttl_us) {
  return max_ttl_us != 0 ? max_ttl_us : RL_GUARD_MAX_TTL_US;
}

/* Why keys that live for so long are none for the guard, or NULL. */
#define RL_GUARD_TOO_LONG "ttl and lock_delay together are more than the guard's max_ttl"
const char *rl_guard_too_long(const struct rl_core *core, redlock_duration ttl_us,
                              redlock_duration lock_delay_us);

/* G1. All nodes have been added: what the connections are asked with. */
void rl_guard_prepare(struct rl_core *core);

/* The connection has ended. */
void rl_guard_disconnected(rl_guard *guard);

/*
 * G2. What the node has answered; with |came_up| the last step of its handshake, else who has waited for it is
 * told. Returns whether it was an answer that could be read.
 */
bool rl_guard_answered(struct rl_core *core, struct rl_node *node, redlock_time now_us,
                       const struct rl_owed *owed, bool came_up);

/* G3, G6. What is known of the clocks has changed, or a node has gone. */
void rl_guard_review(struct rl_core *core, redlock_time now_us);

/* G4. Whether an acquire may be sent to the node: */
typedef enum rl_guard_verdict {
  RL_GUARD_MAY_VOTE,
  RL_GUARD_MUST_WAIT, /* until it has told who it is */
  RL_GUARD_MUST_NOT   /* for |*reason|, with the vote |*vote| */
} rl_guard_verdict;

rl_guard_verdict rl_guard_judge(struct rl_node *node, redlock_time now_us, redlock_vote *vote,
                                char reason[RL_REASON_MAX + 1]);

/* What the vote of a node is that does not vote. */
redlock_vote rl_guard_vote(const rl_guard *guard);

/* G5. The node is not the one that was asked: it is asked who it is. Whether that may be waited for. */
bool rl_guard_doubt(struct rl_node *node, redlock_time now_us);

/*
 * G6. A reply to |owed| says that the node's clock showed |node_us|. Returns whether it was stepped forward: what is
 * known of leases has changed, which rl_renew_doubt_all() tells when the reply has been looked at.
 */
bool rl_guard_heard(struct rl_core *core, struct rl_node *node, redlock_time now_us,
                    const struct rl_owed *owed, uint64_t node_us);

/* Whether a vote of the node counts. */
bool rl_guard_votes(const rl_guard *guard, redlock_time now_us);

/* For how long it does not vote; REDLOCK_NEVER until something happens. NULL votes. */
redlock_duration rl_guard_quarantined(const rl_guard *guard, redlock_time now_us);

/* Why it does not vote, "" when it does. Returns |text|. */
const char *rl_guard_reason(const rl_guard *guard, redlock_time now_us, char *text, size_t size);

#endif
