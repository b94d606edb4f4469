/*
 * Notifications: a node notifies the waiter at the head of its queue of a free key.
 *
 * SPDX-License-Identifier: MIT
 *
 * A notification is a hint. It only shortens the delay before the next attempt, and never decides
 * who holds the lock. rl_notify.c has the rules.
 */
#ifndef RL_NOTIFY_H
#define RL_NOTIFY_H

#include <stdbool.h>

#include "node/rl_node.h"
#include "wait/rl_subscriber.h"
#include "wait/rl_ticket.h"
#include "wait/rl_waits.h"

/* Turns notifications on. Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY. */
int rl_notify_open(struct rl_core *core);
void rl_notify_close(struct rl_core *core);

/*
 * NTF-1. The waiter begins to wait. Its timer is already set for an attempt without notifications.
 */
void rl_notify_wait(rl_lock *lock, redlock_time now_us);

/*
 * NTF-2. Returns true if the acquire now waits in the queues instead of making its first attempt.
 */
bool rl_notify_waits_first(rl_lock *lock, redlock_time now_us);

/* NTF-5. The head begins an attempt. */
void rl_notify_attempt(rl_waitlist *waitlist, redlock_time now_us);

/* Handles the timer of a waiting head. Returns false if the caller should start an attempt. */
bool rl_notify_timer(rl_lock *lock, redlock_time now_us);

/* NTF-6. The head has acquired |lease|, whose release dequeues the ticket. */
void rl_notify_granted(rl_waitlist *waitlist, rl_attempt *lease, redlock_time now_us);

/*
 * NTF-6. |lease| is being released. With |dequeues| another process takes it over, so the ticket is
 * dequeued now.
 */
void rl_notify_released(struct rl_core *core, const rl_attempt *lease, bool dequeues);

/* NTF-7. No lock of the wait list waits any longer. */
void rl_notify_give_up(struct rl_core *core, rl_waitlist *waitlist);

/* Returns true if a majority of the nodes will notify the wait list. */
bool rl_notify_is_awaited(const struct rl_core *core, const rl_waitlist *waitlist);

/* NTF-2. Another client waits for the resource: it is recently contended from now on. */
void rl_notify_note_contention(struct rl_core *core, const rl_resource *resource,
                               redlock_time now_us);

/* Returns true if the reply answers ENQUEUE, DEQUEUE or the probe. */
bool rl_notify_is_for(const rl_outstanding *outstanding);

/* The node answered such a command; or its connection ended first. */
void rl_notify_answered(struct rl_core *core, rl_node *node, redlock_time now_us,
                        const rl_outstanding *outstanding);
void rl_notify_unanswered(struct rl_core *core, const rl_node *node,
                          const rl_outstanding *outstanding);

/* A message of |node| has arrived. */
void rl_notify_message(struct rl_core *core, unsigned node, redlock_time now_us,
                       const rl_reply *reply);

/* Acts on what a function of rl_subscriber.h returned. */
void rl_notify_changed(struct rl_core *core, rl_subscriber_change change, redlock_time now_us);

/* The connection of |node| has ended. */
void rl_notify_node_down(struct rl_core *core, const rl_node *node, redlock_time now_us);

/* Sends what is to be sent. rl_notify_has_news() returns true if there is anything. */
void rl_notify_continue(struct rl_core *core, redlock_time now_us);
bool rl_notify_has_news(const struct rl_core *core);

/* Drops all tickets and connections without sending anything (a forked child). */
void rl_notify_reset(struct rl_core *core);

#endif
