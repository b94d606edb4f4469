/*
 * Detaching a lease: H1 and H2 of rl_attach.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_DETACH_H
#define RL_DETACH_H

#include "lock/rl_lock.h"
#include "wire/rl_handover.h"

/* What tells the nodes of |core| apart from those of other clients: rl_handover_nodes(). */
uint64_t rl_detach_nodes(const rl_core *core);

/*
 * What |handover| says of the lease, which must last. It points into the lock. H1, H2.
 * Errors: BUSY, LOST, NOT_HELD, CLOSED.
 */
int rl_lock_detachable(rl_lock *lock, redlock_time now_us, rl_handover *handover);

/* H1. The lease is not the lock's any more, and is not released. */
void rl_lock_detach(rl_lock *lock);

#endif
