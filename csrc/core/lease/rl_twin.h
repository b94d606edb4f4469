/*
 * Two nodes that are one server, behind proxies or different addresses.
 *
 * SPDX-License-Identifier: MIT
 *
 * Such a server grants a lock through one node, and calls it taken through the other, for ever. A
 * client that tries once would not notice: it compares its token only where its SET was granted.
 *   TWIN-1. If an attempt fails because the key is taken, and a node has granted it, its release
 *           goes first to each node that refused. The nodes that granted come second. On each
 *           connection, a node that refuses gets at most one such release for each node that
 *           granted. The attempt waits for the answers, at most until its deadline.
 *   TWIN-2. A node refused the key, or was not asked, and then confirms the token to a release or
 *           an extend. It is the same server as a node that has set the token, because no other
 *           client has it. It has no vote in acquires and extends until its connection ends, or
 *           that of a node that may be the other one. So a server that is two nodes has one vote:
 *           the other node keeps its vote, except in a round that has counted the vote of the
 *           first.
 *   TWIN-3. The first test that finds the key deletes it. After that, no node that refused this
 *           attempt has a vote in it.
 * Any two majorities of nodes share a node, and so a server. Twins never let two clients hold a
 * lock. But the server that is two nodes denies each lock that it grants, and if it fails two votes
 * are lost.
 */
#ifndef RL_TWIN_H
#define RL_TWIN_H

#include "lock/rl_lock.h"
#include "node/rl_verdict.h"

/* TWIN-1. Sends the tests. Returns true if the attempt must wait for an answer. */
bool rl_twin_test(rl_lock *lock, redlock_time now_us);

/*
 * Returns true if the test of an attempt that has ended is outstanding: its release follows anyway.
 */
bool rl_twin_test_is_over(const rl_node *node, const rl_attempt *attempt);

/*
 * TWIN-2. Checks an answer for a twin. If the answer must not count, makes the vote an error in
 *         |verdict|, and returns the reason. Otherwise returns NULL.
 */
const char *rl_twin_answered(rl_core *core, rl_node *node, const rl_outstanding *command,
                             rl_verdict *verdict);

/*
 * TWIN-3. A release was answered, or never will be. After the last test of an attempt, takes the
 *         votes of the tested nodes if a twin was found.
 */
void rl_twin_tested(rl_core *core, const rl_node *node, const rl_outstanding *command);

/* TWIN-2. The connection to |node| has ended: nodes that may be its twins vote again. */
void rl_twin_forget(rl_core *core, const rl_node *node);

#endif
