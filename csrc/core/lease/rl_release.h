/*
 * Releasing: the operation, and what attempts have left on nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_RELEASE_H
#define RL_RELEASE_H

#include <stdbool.h>

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"
#include "node/rl_verdict.h"

/*
 * Attempts whose release may wait for one node. When there are more, so many of the oldest are forgotten
 * there: those that were never a lease first, for few of them have left a key.
 */
#define RL_RELEASE_NODE_MAX 8192
#define RL_RELEASE_FORGOTTEN 1024

/* When to try a release again that a node answered with an error. */
#define RL_RELEASE_RETRY_US (500 * REDLOCK_MILLISECONDS)

/* For how long the release of an attempt that failed waits for the answers to its SETs. */
#define RL_RELEASE_ANSWER_US (100 * REDLOCK_MILLISECONDS)

/* Attempts whose release is still due somewhere, oldest first. */
typedef struct rl_releases {
  rl_list queue;
  size_t count;
  bool again;   /* they are to be tried with the next launch */
  bool reading; /* replies are being read: the next may be the answer that one waits for */
  redlock_time again_at_us; /* when some of them are to be tried that had to wait */
} rl_releases;

/*
 * R2. Begins to release |attempt| on every node that may hold it: at once where there is a
 * connection, else when there is one again. The votes go to attempt->lock, if there is one, for its
 * round. With |grow| false nothing is allocated.
 */
void rl_release_begin(struct rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow);

/*
 * The lock has nothing to do with |attempt| any more, which may be NULL. What it may have set is
 * released, and the lock's reference given up.
 */
void rl_release_let_go(rl_lock *lock, redlock_time now_us, rl_attempt *attempt, bool grow);

/*
 * A5. The same for an attempt that failed; but where its SET is not answered yet, the release waits for
 * that a moment: there may be nothing to release.
 */
void rl_release_failed(rl_lock *lock, redlock_time now_us, rl_attempt *attempt);

/* The lock is about to send a SET, or goes: its release must not wait, or the SET would meet the key. */
void rl_release_settle_failed(rl_lock *lock, redlock_time now_us, bool grow);

/* -- the list -- */

/* Goes through all releases that are due somewhere. What has expired by itself is dropped. */
void rl_release_continue(struct rl_core *core, redlock_time now_us);

/* The connection to |node| is new: what was to be tried again there later is tried now. */
void rl_release_node_came_up(struct rl_core *core, redlock_time now_us, const rl_node *node);

/* Marks the list to be gone through when it is time to try again. */
void rl_release_advance(struct rl_core *core, redlock_time now_us);

/* A reply of |node| has come: releases that found no room may find some now. */
void rl_release_room(struct rl_core *core, rl_node *node);

/* What |node| answered to a command means for the release of its attempt. */
void rl_release_answered(struct rl_core *core, const rl_node *node, redlock_time now_us,
                         const rl_outstanding *command, rl_verdict verdict, const char *error);

/* The connection on which a command was sent has ended without an answer. */
void rl_release_unanswered(struct rl_core *core, const rl_node *node, redlock_time now_us,
                           const rl_outstanding *command);

/* What waits for the answer to a SET is sent now. */
void rl_release_hurry(struct rl_core *core, redlock_time now_us);

/* The nodes on which a release of the list is due. */
uint32_t rl_release_due(const struct rl_core *core);

/* Empties the list without releasing anything. */
void rl_release_reset(struct rl_core *core);

extern const rl_steps rl_release_steps;

#endif
