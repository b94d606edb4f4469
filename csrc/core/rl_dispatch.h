/*
 * Dispatch: what a reply means, and whom it concerns.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DISPATCH_H
#define RL_DISPATCH_H

#include "lock/rl_lock.h"

/* A node has answered |command|. Returns NULL, or why its connection must be given up. */
const char *rl_dispatch(rl_core *core, rl_node *node, redlock_time now_us,
                        const rl_outstanding *command);

#endif
