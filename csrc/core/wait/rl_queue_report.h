/*
 * Queue reports: what nodes answer to queue commands, and the notifications that they send.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_QUEUE_REPORT_H
#define RL_QUEUE_REPORT_H

#include "wait/rl_subscriber.h"
#include "wait/rl_wait_state.h"

/* Returns true if the reply answers ENQUEUE, DEQUEUE or the probe. */
bool rl_queue_report_is_for(const rl_outstanding *outstanding);

/* Handles the reply to such a command; or the end of the connection before the reply. */
void rl_queue_report_answered(struct rl_core *core, rl_node *node, redlock_time now_us,
                              const rl_outstanding *outstanding);
void rl_queue_report_unanswered(struct rl_core *core, const rl_node *node,
                                const rl_outstanding *outstanding);

/* Handles a message of |node|. */
void rl_queue_report_message(struct rl_core *core, unsigned node, redlock_time now_us,
                             const rl_reply *reply);

/* The user may not notify on |node|: its releases do not notify for a minute. */
void rl_queue_report_mute(struct rl_core *core, rl_node *node, redlock_time now_us);

/* Enqueues on nodes that now notify. Drops the reports of those that no longer do. */
void rl_queue_report_subscribers_changed(struct rl_core *core, rl_subscriber_change change,
                                         redlock_time now_us);

/* Drops what |node| reported: its connection has ended. */
void rl_queue_report_node_down(struct rl_core *core, const rl_node *node, redlock_time now_us);

#endif
