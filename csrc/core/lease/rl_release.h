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
 * Releases that may wait for one node. If there are more, the oldest are forgotten, those of
 * attempts without a lease first: few of these attempts have left a key.
 */
#define RL_RELEASE_NODE_MAX 8192
#define RL_RELEASE_FORGOTTEN 1024 /* releases that are then forgotten together */

/* From so many waiting releases on, further ones allocate, before any must be forgotten. */
#define RL_RELEASE_GROW 1024

/* Delay after an error, before the release is repeated. */
#define RL_RELEASE_RETRY_US (500 * REDLOCK_MILLISECONDS)

/* Longest time for which the release of a failed attempt waits for the answers to its SETs. */
#define RL_RELEASE_ANSWER_US (100 * REDLOCK_MILLISECONDS)

/* Attempts whose release is due on a node, oldest first. */
typedef struct rl_releases {
  rl_list queue;
  size_t count;
  bool again;               /* the next rl_core_send() tries all of them */
  bool reading;             /* replies are being read: the next one may be an awaited answer */
  redlock_time again_at_us; /* next try of the releases that must wait */
} rl_releases;

/*
 * REL-2. Begins to release |attempt| on each node that may hold it: at once on a connection,
 *        otherwise when there is one. The votes go to the round of attempt->lock, if there is a
 *        lock. With |grow| false nothing is allocated.
 */
void rl_release_begin(struct rl_core *core, redlock_time now_us, rl_attempt *attempt, bool grow);

/*
 * Separates |attempt|, which may be NULL, from the lock: releases it, and drops the lock's
 * reference.
 */
void rl_release_and_drop(rl_lock *lock, redlock_time now_us, rl_attempt *attempt, bool grow);

/*
 * ACQ-5. Does the same for a failed attempt. On a node whose reply to the SET is outstanding, the
 *        release waits RL_RELEASE_ANSWER_US for the reply: there may be nothing to release.
 */
void rl_release_begin_failed_attempt(rl_lock *lock, redlock_time now_us, rl_attempt *attempt);

/*
 * Sends the release of the failed attempt now, if it still waits: the next SET would meet its key,
 * or the lock is freed.
 */
void rl_release_hurry_failed_attempt(rl_lock *lock, redlock_time now_us, bool grow);

/* -- the list -- */

/* Sends what can be sent. Drops attempts whose keys have expired. */
void rl_release_send_all(struct rl_core *core, redlock_time now_us);

/* Sends the releases that |node| has not answered: its connection is new. */
void rl_release_node_came_up(struct rl_core *core, redlock_time now_us, const rl_node *node);

/* Lets the next rl_core_send() call rl_release_send_all(), if a try is due. */
void rl_release_advance(struct rl_core *core, redlock_time now_us);

/* A reply has come: does the same if |node| has room again for a release. */
void rl_release_check_room(struct rl_core *core, rl_node *node);

/* Acts on the answer of |node| to |command|. */
void rl_release_answered(struct rl_core *core, rl_node *node, redlock_time now_us,
                         const rl_outstanding *command, const rl_verdict *verdict,
                         const char *error);

/* Makes a release due again: the connection has ended before the answer to |command|. */
void rl_release_unanswered(struct rl_core *core, const rl_node *node, redlock_time now_us,
                           const rl_outstanding *command);

/* Sends the releases that wait for the answer to a SET. */
void rl_release_hurry(struct rl_core *core, redlock_time now_us);

/* Returns the nodes on which a release is due for the first time, or was not answered. */
uint32_t rl_release_due(const struct rl_core *core);

/* Empties the list without releasing anything: a forked child. */
void rl_release_reset(struct rl_core *core);

#endif
