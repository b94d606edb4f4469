/*
 * The doctor: asks every node for all that rl_finding.c judges.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DOCTOR_H
#define RL_DOCTOR_H

#include "lock/rl_steps.h"
#include "operator/rl_finding.h"

/* Returns the answers of the nodes; NULL if no examination of the lock has ended. */
const rl_doctor *rl_doctor_of(const rl_lock *lock);

#endif
