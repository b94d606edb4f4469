/*
 * Calls: a node tells the first of those who wait for a resource that it is free.
 *
 * SPDX-License-Identifier: MIT
 *
 * They are hints, and only shorten the delay between two attempts of an acquire: what makes a lock held is as it is
 * without them. rl_notify.c has the rules.
 */
#ifndef RL_NOTIFY_H
#define RL_NOTIFY_H

#include <stdbool.h>

#include "node/rl_node.h"
#include "wait/rl_subscriber.h"
#include "wait/rl_ticket.h"
#include "wait/rl_waits.h"

/* Turns notify on. Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY. */
int rl_notify_open(struct rl_core *core);
void rl_notify_close(struct rl_core *core);

/* C1. The head of a waitlist waits from now on. Its timer is set for an attempt without calls. */
void rl_notify_wait(rl_lock *lock, redlock_time now_us);

/* C2. Whether the acquire begins by waiting for its turn, in ticket of an attempt. */
bool rl_notify_waits_first(rl_lock *lock, redlock_time now_us);

/* C5. An attempt of the head begins. */
void rl_notify_attempt(rl_waitlist *waitlist, redlock_time now_us);

/* The timer of a head that waits is due. Whether that was all: else an attempt is to be made. */
bool rl_notify_timer(rl_lock *lock, redlock_time now_us);

/* C6. The head has got |lease|, whose release leaves the queues. */
void rl_notify_granted(rl_waitlist *waitlist, rl_attempt *lease, redlock_time now_us);

/* C6. |lease| is being released; or, with |leaves|, goes to another process, and the queues are left now. */
void rl_notify_released(struct rl_core *core, const rl_attempt *lease, bool leaves);

/* C7. Nobody of the waitlist waits any more. */
void rl_notify_give_up(struct rl_core *core, rl_waitlist *waitlist);

/* Returns true if a majority of the nodes is to call the waitlist. */
bool rl_notify_is_awaited(const struct rl_core *core, const rl_waitlist *waitlist);

/* A release was answered: others were called by it. */
void rl_notify_note_contention(struct rl_core *core, const rl_resource *resource,
                               redlock_time now_us);

/* What a node has answered, or never will; a message of it. */
bool rl_notify_is_for(const rl_outstanding *owed);
void rl_notify_answered(struct rl_core *core, rl_node *node, redlock_time now_us,
                        const rl_outstanding *owed);
void rl_notify_unanswered(struct rl_core *core, const rl_node *node, const rl_outstanding *owed);
void rl_notify_message(struct rl_core *core, unsigned node, redlock_time now_us,
                       const rl_reply *reply);

/* The notify of nodes arrive from now on, or do not any more: what a function of rl_subscriber.h has returned. */
void rl_notify_changed(struct rl_core *core, rl_subscriber_change change, redlock_time now_us);

/* The connection of a node has ended. */
void rl_notify_node_down(struct rl_core *core, const rl_node *node, redlock_time now_us);

/* Sends what is to be sent. Whether there is anything. */
void rl_notify_continue(struct rl_core *core, redlock_time now_us);
bool rl_notify_has_news(const struct rl_core *core);

/* Forgets all tickets and connections without sending anything. */
void rl_notify_reset(struct rl_core *core);

#endif
