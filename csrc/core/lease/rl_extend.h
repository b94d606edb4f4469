/*
 * Extending a lease.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_EXTEND_H
#define RL_EXTEND_H

#include "lock/rl_steps.h"

extern const rl_steps rl_extend_steps;

#endif
