/*
 * Two nodes that are one server, behind proxies or different addresses.
 *
 * SPDX-License-Identifier: MIT
 *
 * Such a server grants the lock to one node, and calls it taken at the other, for ever.
 *
 *   TWIN-1. If an attempt fails because the key is taken, and another node has granted it, a node that said
 *           "taken" is sent the release of the attempt before the one that has granted it. This happens once
 *           on each connection. No other client has the token, so that a node which deletes the key has
 *           denied the lock because of our own key.
 *   TWIN-2. Such a node is the same server as the one that has granted it. It has no vote, for a reason that
 *           names both, until one of the two connections ends.
 *   TWIN-3. The test that has deleted the key leaves nothing for the others to find. So the nodes that denied the
 *           same attempt have no vote in it, either.
 */
#ifndef RL_TWIN_H
#define RL_TWIN_H

#include "rl_lock.h"

/* TWIN-1. Sends the tests that are due. Returns true if the attempt must wait for an answer. */
bool rl_twin_test(rl_lock *lock, redlock_time now_us);

/* A test was answered, |deleted| tells whether the key was ours; or its connection has ended. */
void rl_twin_tested(rl_core *core, rl_node *node, rl_attempt *attempt, bool deleted);

/* The connection to |node| has ended. */
void rl_twin_forget(rl_core *core, const rl_node *node);

#endif
