/*
 * Reads each reply, and passes its verdict to the modules that use it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DISPATCH_H
#define RL_DISPATCH_H

#include "lock/rl_lock.h"

/*
 * Handles the reply of a node to |command|. Returns NULL, or why the connection must be given up.
 */
const char *rl_dispatch(rl_core *core, rl_node *node, redlock_time now_us,
                        const rl_outstanding *command);

#endif
