/*
 * Two nodes that are one server, behind proxies or different addresses.
 *
 * SPDX-License-Identifier: MIT
 *
 * Such a server grants a lock through one node, and calls it taken through the other, for ever. Nothing that is sent
 * anyway shows this to a client that tries once: its token is compared only where its SET was granted.
 *
 *   TWIN-1. If an attempt fails because the key is taken, and a node has granted it, each node that refused it is
 *           sent the release of the attempt, before the nodes that granted it: once on each connection. The attempt
 *           waits for the answers, at most until its deadline.
 *   TWIN-2. A node that refused to set the key, or was not asked to, and then confirms our token to a release or an
 *           extend, is the same server as one of those that have set it: no other client has the token. It has no vote in acquires and
 *           extends until its connection ends, or that of a node that may be the other. So a server that is two
 *           nodes has one vote: the other one of the two keeps its vote, whatever another lease shows.
 *   TWIN-3. The test that has deleted the key leaves nothing for the others to find. So the nodes that refused the
 *           same attempt have no vote in it, either.
 *
 * Any two majorities of nodes have a node in common, and so a server. Twins never let two clients hold a lock. But
 * the server that is two nodes is a denial for each lock that it grants, and if it fails two votes are lost.
 */
#ifndef RL_TWIN_H
#define RL_TWIN_H

#include "lock/rl_lock.h"
#include "node/rl_verdict.h"

/* TWIN-1. Sends the tests that are due. Returns true if the attempt must wait for an answer. */
bool rl_twin_test(rl_lock *lock, redlock_time now_us);

/* Returns true if the node owes the answer to a test of an attempt that is over: its key is released elsewhere. */
bool rl_twin_test_is_over(const rl_node *node, const rl_attempt *attempt);

/*
 * TWIN-2. A command of an attempt was answered. An extend that a twin confirms becomes an error, for node->error: then it
 * returns true.
 */
bool rl_twin_answered(rl_core *core, rl_node *node, const rl_outstanding *command,
                      rl_verdict *verdict);

/* TWIN-3. A release was answered, or never will be: |node| owes no test of its attempt any more. */
void rl_twin_tested(rl_core *core, const rl_node *node, const rl_outstanding *command);

/* The connection to |node| has ended. */
void rl_twin_forget(rl_core *core, const rl_node *node);

#endif
