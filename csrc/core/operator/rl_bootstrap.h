/*
 * Bootstrap: an operator vouches that no node has lost a lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_BOOTSTRAP_H
#define RL_BOOTSTRAP_H

#include "lock/rl_steps.h"

extern const rl_steps rl_bootstrap_steps;

#endif
