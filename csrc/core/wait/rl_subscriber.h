/*
 * Subscribers: a second connection to each node, over which the node notifies waiters.
 *
 * SPDX-License-Identifier: MIT
 *
 * A RESP2 connection that has subscribed takes no other commands. The subscribers are made for the
 * first waiter, and closed after a minute without one. Drivers number them behind the nodes.
 */
#ifndef RL_SUBSCRIBER_H
#define RL_SUBSCRIBER_H

#include <stdbool.h>

#include "wait/rl_wait_state.h"

/* Subscribers are closed after this time without a waiter. */
#define RL_SUBSCRIBER_IDLE_US (60 * REDLOCK_SECONDS)

/* A subscriber that has been silent for this time gets a PING. */
#define RL_SUBSCRIBER_PING_US (3 * REDLOCK_SECONDS)

/* A node that has refused is asked again after this time. */
#define RL_SUBSCRIBER_REFUSED_US (60 * REDLOCK_SECONDS)

/* Nodes whose notifications now arrive, or no longer do: rl_queue_report_subscribers_changed(). */
typedef struct rl_subscriber_change {
  uint32_t ready, lost;
} rl_subscriber_change;

/* Returns true if |node| needs a subscriber. */
bool rl_subscriber_needed(const rl_core *core, unsigned node);

/* Notes that a subscriber has subscribed; or that its connection has ended for |reason|. */
void rl_subscriber_up(rl_core *core, const rl_node *subscriber);
rl_subscriber_change rl_subscriber_down(rl_core *core, const rl_node *subscriber,
                                        redlock_time now_us, const char *reason);

/* Notes that the node's own connection is up; or that it has ended. */
void rl_subscriber_node_up(rl_core *core, const rl_node *node);
rl_subscriber_change rl_subscriber_node_down(rl_core *core, const rl_node *node);

/* Reads the node's answer to the probe. */
rl_subscriber_change rl_subscriber_probed(rl_core *core, rl_node *node, redlock_time now_us);

/* Notes that the node refuses notifications for |reason|: it is not asked again for a while. */
rl_subscriber_change rl_subscriber_refuse(rl_core *core, const rl_node *node, redlock_time now_us,
                                          const char *reason);

/* Notes that the user may not notify on |node|: waiters cannot count on its notifications. */
rl_subscriber_change rl_subscriber_mute(rl_core *core, const rl_node *node, redlock_time now_us);

/*
 * Returns true if the notifications of |node| arrive; else sets |*reason| to why not, or to NULL.
 */
bool rl_subscriber_state(const rl_core *core, unsigned node, const char **reason);

/* Returns true if the notifications of |needed| nodes arrive, or will soon: no error is known. */
bool rl_subscribers_are_coming(const rl_core *core, unsigned needed);

/* Creates wanted subscribers and sends probes. rl_subscribers_have_news(): there is work to do. */
void rl_subscribers_continue(rl_core *core, redlock_time now_us);
bool rl_subscribers_have_news(const rl_core *core);

/* Closes the subscribers if no lock has waited for long. */
void rl_subscribers_close_idle(rl_core *core, redlock_time now_us);

/* Returns why the subscriber must be closed, or NULL. Sends PING to a silent subscriber. */
const char *rl_subscriber_overdue(rl_core *core, rl_node *subscriber, redlock_time now_us);
redlock_time rl_subscribers_deadline(const rl_core *core);

/* Drops the connections of all subscribers without sending anything (a forked child). */
void rl_subscribers_reset(rl_core *core);

#endif
