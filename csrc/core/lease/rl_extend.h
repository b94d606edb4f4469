/*
 * Extending a lease.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_EXTEND_H
#define RL_EXTEND_H

#include <stdbool.h>

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"

extern const rl_steps rl_extend_steps;

#endif
