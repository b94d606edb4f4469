/*
 * Statistics: counters and histograms of a client and of its nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * They have a fixed size, no floating point, and one writer at a time: the thread that is in the
 * client. Readers enter the client, too. A counter has 64 bits, and never wraps or goes back.
 */
#ifndef RL_STATS_H
#define RL_STATS_H

#include "base/rl_operation.h"
#include "base/rl_vote.h"
#include "redlock.h"

/* X(result): how an operation can end, as in redlock_outcomes. Other results are errors. */
#define RL_OUTCOMES(X)                                                                             \
  X(ok, REDLOCK_OK)                                                                                \
  X(taken, REDLOCK_E_TAKEN)                                                                        \
  X(unavailable, REDLOCK_E_UNAVAILABLE)                                                            \
  X(expired, REDLOCK_E_EXPIRED)                                                                    \
  X(lost, REDLOCK_E_LOST)                                                                          \
  X(held, REDLOCK_E_HELD)                                                                          \
  X(not_held, REDLOCK_E_NOT_HELD)                                                                  \
  X(closed, REDLOCK_E_CLOSED)                                                                      \
  X(cancelled, REDLOCK_E_CANCELLED)

/* Operations are counted by kind; automatic extends apart from those of the caller. */
typedef enum rl_stats_kind {
  RL_STATS_ACQUIRE,
  RL_STATS_EXTEND,
  RL_STATS_AUTO_EXTEND,
  RL_STATS_RELEASE,
  RL_STATS_KINDS,
  RL_STATS_NONE /* not counted: the operations that ask the nodes */
} rl_stats_kind;

typedef struct rl_histogram {
  uint64_t sum_us;
  uint64_t counts[REDLOCK_BUCKETS]; /* not cumulative */
} rl_histogram;

typedef struct rl_stats {
  redlock_outcomes operations[RL_STATS_KINDS];
  uint64_t attempts;
  uint64_t lost_expired, lost_denied, lost_max_hold; /* leases that are lost, by reason */
  uint64_t warned_unavailable, warned_clock;         /* warnings, by reason */
  rl_histogram acquire_time;                         /* of acquires that succeeded */
  rl_histogram wait_time;                            /* of acquires that had to wait */
} rl_stats;

#define RL_STATS_VOTE(vote, name, count) RL_STATS_##vote,
enum { RL_VOTES(RL_STATS_VOTE) RL_STATS_VOTES };

typedef struct rl_node_stats {
  uint64_t votes[RL_STATS_VOTES]; /* by redlock_vote */
  uint64_t late;                  /* replies that came too late to be a vote */
  uint64_t connections;           /* that came up */
  uint64_t failures;              /* connections that ended or could not be made */
  uint64_t heals;
  uint64_t quarantines;
  rl_histogram latency; /* of commands other than those of handshake, guard and queues */
} rl_node_stats;

/* Notes a duration. The sum saturates. */
void rl_histogram_note(rl_histogram *histogram, redlock_duration duration_us);

/* Fills |info|, whose buckets are cumulative. */
void rl_histogram_read(const rl_histogram *histogram, redlock_histogram *info);

/* Counts the end of an operation. */
void rl_stats_ended(rl_stats *stats, rl_stats_kind kind, int result);

/* Returns the kind of an operation. */
rl_stats_kind rl_stats_kind_of(rl_operation operation);

/* Counts a loss or a warning (rl_loss.h). */
void rl_stats_lost(rl_stats *stats, int reason);

#endif
