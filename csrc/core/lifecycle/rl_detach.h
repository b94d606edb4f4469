/*
 * Detaching a lease: ATT-1 and ATT-2 of rl_attach.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DETACH_H
#define RL_DETACH_H

#include "lock/rl_lock.h"
#include "wire/rl_handover.h"

/* Returns the hash of the core's nodes: rl_handover_nodes(). */
uint64_t rl_detach_nodes(const rl_core *core);

/*
 * Describes the lease, which must last, in |handover|, whose pointers refer to the lock. Errors:
 * BUSY, LOST, NOT_HELD, HELD, CLOSED.
 */
int rl_lock_describe_lease(rl_lock *lock, redlock_time now_us, rl_handover *handover);

/* ATT-1. Separates the lease from the lock, without releasing it. */
void rl_lock_detach(rl_lock *lock);

#endif
