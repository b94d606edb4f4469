/*
 * A subscriber: a second connection to a node, over which it calls.
 *
 * SPDX-License-Identifier: MIT
 *
 * A connection that has subscribed takes no other commands (RESP2), so notify have one of their own. They are made when
 * somebody has to wait for the first time, and given up when nobody has for a minute. The drivers number them behind
 * the nodes' own.
 */
#ifndef RL_SUBSCRIBER_H
#define RL_SUBSCRIBER_H

#include <stdbool.h>

#include "wait/rl_waits.h"

/* How long subscribers are kept when nobody waits. */
#define RL_SUBSCRIBER_IDLE_US (60 * REDLOCK_SECONDS)

/* After so long without a byte a subscriber is asked for one. */
#define RL_SUBSCRIBER_PING_US (3 * REDLOCK_SECONDS)

/* When a node that has refused is asked again. */
#define RL_SUBSCRIBER_REFUSED_US (60 * REDLOCK_SECONDS)

/* Nodes whose notify arrive from now on, or do not any more: for rl_notify_changed(). */
typedef struct rl_subscriber_change {
  uint32_t ready, lost;
} rl_subscriber_change;

/* Returns true if a subscriber of |node| is wanted. */
bool rl_subscriber_needed(const rl_core *core, unsigned node);

/* A subscriber has subscribed; its connection has ended, for |reason|. */
void rl_subscriber_up(rl_core *core, const rl_node *subscriber);
rl_subscriber_change rl_subscriber_down(rl_core *core, const rl_node *subscriber,
                                        redlock_time now_us, const char *reason);

/* The connection of the node itself has come up; or ended. */
void rl_subscriber_node_up(rl_core *core, const rl_node *node);
rl_subscriber_change rl_subscriber_node_down(rl_core *core, const rl_node *node);

/* The probe was answered: what the node publishes must have arrived. */
rl_subscriber_change rl_subscriber_probed(rl_core *core, rl_node *node, redlock_time now_us);

/* The node does not let us: it is not asked again for a while. */
rl_subscriber_change rl_subscriber_refuse(rl_core *core, const rl_node *node, redlock_time now_us,
                                          const char *reason);

/* A release has said that it may call nobody there. */
rl_subscriber_change rl_subscriber_mute(rl_core *core, const rl_node *node, redlock_time now_us);

/* Returns true if the notify of |node| arrive; else why not goes to |*reason|, NULL if nothing is wrong. */
bool rl_subscriber_state(const rl_core *core, unsigned node, const char **reason);

/* Returns true if the notify of so many nodes arrive, or will in a moment: nothing was wrong with their subscribers. */
bool rl_subscribers_are_coming(const rl_core *core, unsigned needed);

/* Makes them when they are wanted, and sends what is to be sent; whether there is anything. */
void rl_subscribers_continue(rl_core *core, redlock_time now_us);
bool rl_subscribers_have_news(const rl_core *core);

/* When nobody has waited for long, none are wanted any more. */
void rl_subscribers_rest(rl_core *core, redlock_time now_us);

/* Why the subscriber is to be given up by now, or NULL; one that has been silent is asked for a byte. */
const char *rl_subscriber_overdue(rl_core *core, rl_node *subscriber, redlock_time now_us);
redlock_time rl_subscribers_deadline(const rl_core *core);

void rl_subscribers_reset(rl_core *core);
void rl_subscribers_free(rl_core *core);

#endif
