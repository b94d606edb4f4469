/*
 * Notifications: when the head of a wait list tries or polls, by what the nodes reported.
 *
 * SPDX-License-Identifier: MIT
 *
 * A notification is a hint. It only shortens the delay before the next attempt, and never decides
 * which client holds the lock. rl_notify.c has the rules.
 */
#ifndef RL_NOTIFY_H
#define RL_NOTIFY_H

#include <stdbool.h>

#include "node/rl_node.h"
#include "wait/rl_subscriber.h"
#include "wait/rl_ticket.h"
#include "wait/rl_wait_state.h"

/* Turns notifications on. Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY. */
int rl_notify_open(struct rl_core *core);
void rl_notify_close(struct rl_core *core);

/*
 * NTF-1. Enqueues the head |lock| on the nodes, unless it waits without notifications. Its timer
 *        must already be set for an attempt without notifications.
 */
void rl_notify_enqueue(rl_lock *lock, redlock_time now_us);

/*
 * NTF-2. Moves an acquire in phase SEND to phase DELAY and enqueues it, if it must not overtake
 *        waiters. Returns true if it now waits in the queues. Otherwise the first attempt comes
 *        first.
 */
bool rl_notify_enqueue_first(rl_lock *lock, redlock_time now_us);

/* NTF-5. Returns the slot of a semaphore that a quorum has notified to the head; 0: none. */
unsigned rl_notify_slot(const struct rl_core *core, const rl_waitlist *waitlist);

/* NTF-5. Notes that the head begins an attempt, and drops earlier notifications. */
void rl_notify_attempt_begins(rl_waitlist *waitlist, redlock_time now_us);

/*
 * The timer of a waiting head is due. Polls if it is set for a poll. Otherwise returns false: the
 * caller must start an attempt.
 */
bool rl_notify_poll_if_due(rl_lock *lock, redlock_time now_us);

/* NTF-6. Moves the ticket of the head to |lease|, which it has acquired; the release dequeues. */
void rl_notify_move_ticket(rl_waitlist *waitlist, rl_attempt *lease, redlock_time now_us);

/*
 * NTF-6. Frees the ticket of |lease|, which is being released. With |dequeues| another process
 *        takes the lease over, so the ticket is dequeued now.
 */
void rl_notify_free_ticket(struct rl_core *core, const rl_attempt *lease, bool dequeues);

/* NTF-7. Dequeues the ticket of a wait list without waiters. */
void rl_notify_give_up(struct rl_core *core, rl_waitlist *waitlist);

/*
 * The acquire of |lock|, in a wait list, has found the lock taken. Keeps the label of the holder
 * for its message, if a majority of the nodes has reported it.
 */
void rl_notify_copy_label(struct rl_lock *lock);

/*
 * NTF-2. Lets the next acquire of the resource enqueue first: the only attempt of |lock| has failed
 *        with |error|.
 */
void rl_notify_only_attempt_failed(rl_lock *lock, redlock_time now_us, int error);

/* Returns true if a quorum of the nodes has notified the wait list, or will do so. */
bool rl_notify_quorum_notifies(const struct rl_core *core, const rl_waitlist *waitlist);

/* NTF-2. Returns true if the resource of |hash| (rl_wait_state_hash()) is recently contended. */
bool rl_notify_was_contended(const struct rl_core *core, uint64_t hash, redlock_time now_us);

/* NTF-2. Notes that another client waits for the resource: it is now recently contended. */
void rl_notify_note_contention(struct rl_core *core, const rl_resource *resource,
                               redlock_time now_us);

/* Returns how many nodes are enough (NTF-4): the quorum of an acquire. */
unsigned rl_notify_quorum(const struct rl_core *core);

/* NTF-5. Notes that the node |bit| has notified the ticket. With |soon|, the head may try soon. */
void rl_notify_node_notified(struct rl_core *core, rl_ticket *ticket, uint32_t bit,
                             redlock_time now_us, bool soon);

/* Lets the head of the ticket try now, or sets its timer for a try or a poll, by all reports. */
void rl_notify_decide(struct rl_core *core, rl_ticket *ticket, redlock_time now_us);

/* Sends the queue commands that are due. rl_notify_has_news() returns true if there are any. */
void rl_notify_continue(struct rl_core *core, redlock_time now_us);
bool rl_notify_has_news(const struct rl_core *core);

/* Drops all tickets and connections without sending anything (a forked child). */
void rl_notify_reset(struct rl_core *core);

#endif
