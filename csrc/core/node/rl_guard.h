/*
 * The guard: which nodes may vote, because they remember what they have granted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_GUARD_H
#define RL_GUARD_H

#include "node/rl_node.h"

/*
 * A node that may have forgotten a lease does not vote for as long as the longest may last, a tenth more, and these
 * 2 ms and RL_GUARD_SKEW_US.
 */
#define RL_GUARD_MARGIN_US (2 * REDLOCK_MILLISECONDS)
#define RL_GUARD_QUARANTINE_MIN_US (6 * REDLOCK_SECONDS)
#define RL_GUARD_MAX_TTL_US (30 * REDLOCK_SECONDS)

/* Clocks that are no further apart are near. */
#define RL_GUARD_SKEW_US (2 * REDLOCK_SECONDS)

/* A node whose record is another one so often, without a lock taken in between, is refused. */
#define RL_GUARD_CHANGES_MAX 3

/* A node that does not vote is asked again so often at most, when an acquire wants it. */
#define RL_GUARD_ASK_EVERY_US (1 * REDLOCK_SECONDS)

/*
 * Turns the guard on, before nodes are added. |cluster| may be NULL. Returns REDLOCK_OK or
 * REDLOCK_E_NO_MEMORY.
 */
int rl_guard_open(rl_guards **guards, redlock_duration max_ttl_us, const char *cluster);
void rl_guard_close(rl_guards *guards);

/* A node has been added, whose guard is |guard|. */
void rl_guard_add_node(rl_node *node, rl_guard *guard);

/* The script of |command| has found that the server is who it was; owed.step says whether it has compared its past. */
void rl_guard_confirmed(rl_guard *guard, const rl_outstanding *command);

/* The longest life of a key, of which a client has said |max_ttl_us|, or 0 for nothing. */
static inline redlock_duration rl_guard_longest(redlock_duration max_ttl_us) {
  return max_ttl_us != 0 ? max_ttl_us : RL_GUARD_MAX_TTL_US;
}

/* Why keys that live for so long are none for the guard, or NULL. */
#define RL_GUARD_TOO_LONG "ttl and lock_delay together are more than the guard's max_ttl"
const char *rl_guard_too_long(const rl_guards *guards, redlock_duration ttl_us,
                              redlock_duration lock_delay_us);

/* G1. All nodes have been added: what the connections are asked with. Idempotent. */
void rl_guard_prepare(rl_guards *guards, unsigned quorum, const void *prefix, size_t prefix_length);

/* What a reply has shown, for rl_guarding.c to act on. */
typedef struct rl_guard_news {
  bool suspect;  /* the node may have lost the keys that it had: MAR-5 */
  bool review;   /* leases are to be looked at: REN-6 */
  uint32_t near; /* nodes of which it is known since if their clocks are near */
} rl_guard_news;

/* G2. What the node has answered. rl_guard_review() is to follow when the news has been acted on. */
rl_guard_news rl_guard_answered(rl_node *node, redlock_time now_us, const rl_outstanding *command);

/*
 * G3, G6. What is known of the clocks has changed, or a node has gone. Returns the nodes of which it is known since if
 * their clocks are near.
 */
uint32_t rl_guard_review(rl_guards *guards, redlock_time now_us);

/* G4. Whether an acquire may be sent to the node: */
typedef enum rl_guard_verdict {
  RL_GUARD_MAY_VOTE,
  RL_GUARD_MUST_WAIT, /* until it has told who it is */
  RL_GUARD_MUST_NOT   /* for |*reason|, with the vote |*vote| */
} rl_guard_verdict;

rl_guard_verdict rl_guard_judge(rl_node *node, redlock_time now_us, redlock_vote *vote,
                                char reason[RL_REASON_MAX + 1]);

/* What the vote of a node is that does not vote. */
redlock_vote rl_guard_vote(const rl_guard *guard);

/* G5. The node is not the one that was asked: it is asked who it is. Whether that may be waited for. */
bool rl_guard_suspect(rl_node *node, redlock_time now_us);

/* G6. A reply to |command| says that the node's clock showed |node_us|. */
rl_guard_news rl_guard_note_clock(rl_node *node, redlock_time now_us, const rl_outstanding *command,
                                  uint64_t node_us);

/* Returns true if a vote of the node counts. */
bool rl_guard_votes(const rl_guard *guard, redlock_time now_us);

/* For how long it does not vote; REDLOCK_NEVER until something happens. NULL votes. */
redlock_duration rl_guard_quarantined(const rl_guard *guard, redlock_time now_us);

/* Why it does not vote, "" when it does. Returns |text|. */
const char *rl_guard_reason(const rl_guard *guard, redlock_time now_us, char *text, size_t size);

#endif
