/*
 * Wait lists: locks of one client that wait for the same resource. Only the head asks the nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * The queued waiters cost the nodes nothing. Each keeps a budget of its own.
 */
#ifndef RL_WAITLIST_H
#define RL_WAITLIST_H

#include <stdbool.h>

#include "wait/rl_waits.h"

void rl_waitlists_free(struct rl_core *core);

/*
 * WAIT-1. The commands of |lock| are about to be sent. Returns true if the lock is queued behind
 * another lock instead. |entropy| is that of its attempt, which then remains unused.
 */
bool rl_waitlist_enter(rl_lock *lock, redlock_time now_us, const unsigned char *entropy);

/* WAIT-3. The acquire of |lock|, which is in a wait list, has ended with |result|. */
void rl_waitlist_leave(rl_lock *lock, redlock_time now_us, int result);

/* The budget of a queued waiter has expired. */
void rl_waitlist_give_up(rl_lock *lock, redlock_time now_us);

/* WAIT-4. This client is releasing a lease on the resource. */
void rl_waitlist_released(struct rl_core *core, const rl_resource *resource, redlock_time now_us);

/* WAIT-4. Another client holds the resource: the time that this client may keep it starts anew. */
void rl_waitlist_held_elsewhere(const struct rl_core *core, const rl_resource *resource);

/* Returns a wait list of the resource, or NULL. */
rl_waitlist *rl_waitlist_find(const struct rl_core *core, const rl_resource *resource);

#endif
