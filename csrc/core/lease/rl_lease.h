/*
 * The end of a lease that is lost, or of no use any more.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LEASE_H
#define RL_LEASE_H

#include "lock/rl_lock.h"

/* The lease is lost: ends it, and releases its keys. */
void rl_lease_lose(rl_lock *lock, redlock_time now_us);

/*
 * Ends the lease of the lock, and releases it and the previous one, if its release was not
 * confirmed.
 */
void rl_lease_drop_own(rl_lock *lock, redlock_time now_us, bool grow);

/*
 * The same, unless other locks share the lease: then one of them becomes the lease owner (OWN-5).
 */
void rl_lease_drop(rl_lock *lock, redlock_time now_us, bool grow);

#endif
