/*
 * The doctor: asks every node what there is to know of it, for rl_finding.c to judge.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DOCTOR_H
#define RL_DOCTOR_H

#include "lock/rl_lock.h"
#include "lock/rl_steps.h"
#include "node/rl_node.h"
#include "operator/rl_finding.h"
#include "wire/rl_reply.h"

/*
 * Notes what |node| has said, and sends what is asked next. Returns whether that was its last answer; if it was because
 * nothing more could be sent, |why| is the reason.
 */
bool rl_doctor_note(rl_lock *lock, redlock_time now_us, rl_node *node, const rl_outstanding *owed,
                    const rl_reply *reply, const char **why);

/* What the nodes have told; NULL when the lock has asked nothing, or not to the end. */
const rl_doctor *rl_doctor_of(const rl_lock *lock);

/* Has all nodes examined (rl_doctor.c); |flags| are REDLOCK_DOCTOR_.... */
int rl_lock_doctor(rl_lock *lock, redlock_time now_us, unsigned flags, bool notify);

extern const rl_steps rl_doctor_steps;

#endif
