/*
 * Acquiring a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ACQUIRE_H
#define RL_ACQUIRE_H

#include "lock/rl_steps.h"

extern const rl_steps rl_acquire_steps;

#endif
