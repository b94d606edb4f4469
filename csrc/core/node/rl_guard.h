/*
 * The guard: lets a node vote only after a time Q in which it has certainly lost no key.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_GUARD_H
#define RL_GUARD_H

#include "node/rl_node.h"
#include "options/rl_options.h"

/* The quarantine: the longest life of a key, a tenth more, this margin and the skew. */
#define RL_GUARD_MARGIN_US (2 * REDLOCK_MILLISECONDS)
#define RL_GUARD_QUARANTINE_MIN_US (6 * REDLOCK_SECONDS)
#define RL_GUARD_MAX_TTL_DEFAULT_US (30 * REDLOCK_SECONDS)

/* The largest distance of near clocks. */
#define RL_GUARD_SKEW_US (2 * REDLOCK_SECONDS)

/* Permitted changes of a node's record since TAKE last found the known record (GRD-5). */
#define RL_GUARD_CHANGES_MAX 3

/* The shortest interval between two checks of a node that does not vote. */
#define RL_GUARD_ASK_EVERY_US (1 * REDLOCK_SECONDS)

/*
 * Creates the guard of a client, before nodes are added. |cluster| may be NULL. Returns REDLOCK_OK
 * or REDLOCK_E_NO_MEMORY.
 */
int rl_guard_open(rl_guards **guards, redlock_duration max_ttl_us, const char *cluster);
void rl_guard_close(rl_guards *guards);

/* Gives a new node its guard, or NULL. */
void rl_guard_add_node(rl_node *node, rl_guard *guard);

/*
 * Notes that the script of |command| has found the known record. If the script compared the
 * replication history (command->step), the history is confirmed, too.
 */
void rl_guard_note_confirmation(rl_guard *guard, const rl_outstanding *command);

/* Returns the longest life of a key; |max_ttl_us| 0 means the default. */
static inline redlock_duration rl_guard_longest(redlock_duration max_ttl_us) {
  return max_ttl_us != 0 ? max_ttl_us : RL_GUARD_MAX_TTL_DEFAULT_US;
}

/* Returns why keys of a lock with |options| may live too long, or NULL. */
#define RL_GUARD_TOO_LONG "ttl and lock_delay together are more than the guard's max_ttl"
#define RL_GUARD_TOO_LONG_TO_HOLD                                                                  \
  "hold_at_least, its drift and lock_delay together are more than the guard's max_ttl"
const char *rl_guard_too_long(const rl_guards *guards, const rl_options *options);

/* Returns why a release may not keep a key for |hold_us|, or NULL. */
const char *rl_guard_too_long_to_hold(const rl_guards *guards, redlock_duration hold_us);

/* GRD-1. Computes the fingerprint after all nodes are added. Idempotent. */
void rl_guard_prepare(rl_guards *guards, unsigned quorum, const void *prefix, size_t prefix_length);

/* Consequences of a reply, for rl_guard_effects.c. */
typedef struct rl_guard_news {
  bool lost_keys; /* the node may have lost keys that it had: MAR-5 */
  bool review;    /* rl_guard_effects.c must examine the leases: REN-6 */
  uint32_t near;  /* nodes whose clocks have just become known as near or distant */
} rl_guard_news;

/* GRD-2. Reads the answer of a node. The caller acts on the news, then calls rl_guard_review(). */
rl_guard_news rl_guard_answered(rl_node *node, redlock_time now_us, const rl_outstanding *command);

/*
 * GRD-3, GRD-6. Compares the clocks of the nodes, after a change or the end of a connection. Then
 * checks nodes, and creates or deletes records. Returns the nodes whose clocks have become known.
 */
uint32_t rl_guard_review(rl_guards *guards, redlock_time now_us);

/* GRD-4. Tells if an acquire may be sent to a node. */
typedef enum rl_guard_permission {
  RL_GUARD_MAY_VOTE,
  RL_GUARD_MUST_WAIT, /* for the answer of the node to the guard */
  RL_GUARD_MUST_NOT   /* the vote is |*vote|, because of |*reason| */
} rl_guard_permission;

/* GRD-4, GRD-7. Judges a node, and checks it if it is unknown or its last check is long ago. */
rl_guard_permission rl_guard_judge(rl_node *node, redlock_time now_us, redlock_vote *vote,
                                   char reason[RL_REASON_MAX + 1]);

/* Returns true if waiting does not help: the guard refuses the node, or the node its record. */
bool rl_guard_refuses(const rl_guard *guard);

/* Returns what counts as the vote of a node that may not vote. */
redlock_vote rl_guard_missing_vote(const rl_guard *guard);

/*
 * GRD-5. Checks a node whose script was unknown or found another record. Returns true if the
 *        acquire may wait for the answer.
 */
bool rl_guard_recheck(rl_node *node, redlock_time now_us);

/* GRD-6. Notes that the node's clock showed |node_us| in the reply to |command|. */
rl_guard_news rl_guard_note_clock(rl_node *node, redlock_time now_us, const rl_outstanding *command,
                                  uint64_t node_us);

/* Returns true if a vote of the node counts. */
bool rl_guard_may_vote(const rl_guard *guard, redlock_time now_us);

/* Returns the remaining quarantine; 0 without a guard; REDLOCK_NEVER if its end is unknown. */
redlock_duration rl_guard_quarantined(const rl_guard *guard, redlock_time now_us);

/*
 * Returns true if a node whose identity is known does not vote, and that will last: not while
 * clocks are still unknown.
 */
bool rl_guard_excludes(const rl_guard *guard, redlock_time now_us);

/* Writes why the node does not vote, or "". Returns |text|. */
const char *rl_guard_reason(const rl_guard *guard, redlock_time now_us, char *text, size_t size);

#endif
