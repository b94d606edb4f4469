/*
 * Wait lists: locks of one client that wait for the same resource. Only the head asks the nodes.
 *
 * SPDX-License-Identifier: MIT
 *
 * The queued waiters cost the nodes nothing. Each keeps its own budget. rl_waitlist.c has WAIT-1 to
 * WAIT-4.
 */
#ifndef RL_WAITLIST_H
#define RL_WAITLIST_H

#include <stdbool.h>

#include "wait/rl_wait_state.h"

void rl_waitlists_free(struct rl_core *core);

/*
 * WAIT-1. Puts |lock| into the wait list of its resource before its commands are sent. Returns true
 *         if it is queued behind the head: then nothing is sent. A queued lock does not use
 *         |entropy|.
 */
bool rl_waitlist_enter(rl_lock *lock, redlock_time now_us, const unsigned char *entropy);

/*
 * WAIT-1. An attempt of a semaphore has failed. Puts |lock| into the wait list, unless it is in
 *         one. Returns true if it is queued behind the head.
 */
bool rl_waitlist_enter_after_attempt(rl_lock *lock, redlock_time now_us);

/*
 * WAIT-3. Takes |lock| out of its wait list; the next waiter becomes the head. The acquire of
 *         |lock| has ended with |result|.
 */
void rl_waitlist_leave(rl_lock *lock, redlock_time now_us, int result);

/* Ends a queued waiter whose budget has expired. */
void rl_waitlist_give_up(rl_lock *lock, redlock_time now_us);

/* WAIT-4. Lets one waiting head try right behind this client's release. */
void rl_waitlist_released(struct rl_core *core, const rl_resource *resource, redlock_time now_us);

/*
 * WAIT-4. Notes that another client holds the resource, so this client has not kept it for itself.
 */
void rl_waitlist_note_other_holder(const struct rl_core *core, const rl_resource *resource);

/* Returns the first wait list of the resource (it may have several: WAIT-1), or NULL. */
rl_waitlist *rl_waitlist_find(const struct rl_core *core, const rl_resource *resource);

#endif
