/*
 * The end of a lease: it is given up, or lost.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LEASE_H
#define RL_LEASE_H

#include "lock/rl_lock.h"

/* The lease is lost: it ends, and what is left of it is released. */
void rl_lease_lose(rl_lock *lock, redlock_time now_us);

/* The lock gives up its lease, and what was not confirmed of the last one: both are released. */
void rl_lease_drop_own(rl_lock *lock, redlock_time now_us, bool grow);

/* The same; but a lease on which other locks count goes to one of them (O5 of rl_reentry.c). */
void rl_lease_drop(rl_lock *lock, redlock_time now_us, bool grow);

#endif
