/*
 * Bootstrap: an operator says that no node has forgotten anything.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BOOTSTRAP_H
#define RL_BOOTSTRAP_H

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"

/*
 * B2. What has become of it on |node|, which has answered, perhaps too late for
 * its lock: its vote, and in |reason| why it has none.
 */
redlock_vote rl_bootstrap_read(struct rl_core *core, redlock_time now_us, rl_node *node,
                               const rl_outstanding *owed, char reason[RL_REASON_MAX + 1]);

/* Tells all nodes that they may vote (rl_bootstrap.c). */
int rl_lock_bootstrap(rl_lock *lock, redlock_time now_us, bool notify);

extern const rl_steps rl_bootstrap_steps;

#endif
