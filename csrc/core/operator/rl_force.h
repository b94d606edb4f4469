/*
 * Releasing by force: an operator deletes the key of another client.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_FORCE_H
#define RL_FORCE_H

#include "lock/rl_steps.h"

extern const rl_steps rl_force_steps;

#endif
