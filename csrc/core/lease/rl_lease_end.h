/*
 * The end of a lease that is lost, or that its lock no longer needs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LEASE_END_H
#define RL_LEASE_END_H

#include "lock/rl_lock.h"

/* The lease is lost: ends it, and releases its keys. */
void rl_lease_end_lost(rl_lock *lock, redlock_time now_us);

/*
 * Ends the lease of the lock, and releases its keys. A release that was not confirmed can then no
 * longer be repeated by the caller.
 */
void rl_lease_end_own(rl_lock *lock, redlock_time now_us, bool grow);

/*
 * Does the same. If other locks share the lease, one of them becomes the lease owner instead
 * (OWN-5).
 */
void rl_lease_end(rl_lock *lock, redlock_time now_us, bool grow);

#endif
