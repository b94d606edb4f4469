/*
 * A waitlist: the locks of one client that wait for the same resource. Only the first of them talks to the nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * Who stands behind the first costs the nodes nothing, and keeps a budget of its own.
 */
#ifndef RL_WAITLIST_H
#define RL_WAITLIST_H

#include <stdbool.h>

#include "wait/rl_waits.h"

void rl_waitlists_free(struct rl_core *core);

/*
 * W1. A lock is to be launched. Returns whether it stands in waitlist behind another now, and is not launched. |entropy| is
 * that of its attempt, which is not used up then.
 */
bool rl_waitlist_enter(rl_lock *lock, redlock_time now_us, const unsigned char *entropy);

/* The acquire of |lock|, which is in a waitlist, has ended with |result|: it makes way. */
void rl_waitlist_leave(rl_lock *lock, redlock_time now_us, int result);

/* The budget of a lock that stands behind another is over. */
void rl_waitlist_give_up(rl_lock *lock, redlock_time now_us);

/* W4. A lease on the resource is being released by this client. */
void rl_waitlist_released(struct rl_core *core, const rl_resource *resource, redlock_time now_us);

/* W4. Somebody else has it: what this client keeps to itself is counted anew. */
void rl_waitlist_held_elsewhere(const struct rl_core *core, const rl_resource *resource);

/* A waitlist of the resource, or NULL. */
rl_waitlist *rl_waitlist_find(const struct rl_core *core, const rl_resource *resource);

#endif
