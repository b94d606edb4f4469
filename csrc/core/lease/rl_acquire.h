/*
 * Acquiring a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ACQUIRE_H
#define RL_ACQUIRE_H

#include <stdbool.h>

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"

extern const rl_steps rl_acquire_steps;

#endif
