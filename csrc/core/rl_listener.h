/*
 * A listener: a second connection to a node, over which it calls.
 *
 * SPDX-License-Identifier: MIT
 *
 * A connection that has subscribed takes no other commands (RESP2), so calls have one of their own. They are made when
 * somebody has to wait for the first time, and given up when nobody has for a minute. The drivers number them behind
 * the nodes' own.
 */
#ifndef RL_LISTENER_H
#define RL_LISTENER_H

#include <stdbool.h>

#include "rl_node.h"

struct rl_core;

/* How long listeners are kept when nobody waits. */
#define RL_LISTENER_IDLE_US (60 * REDLOCK_SECONDS)

/* After so long without a byte a listener is asked for one. */
#define RL_LISTENER_PING_US (3 * REDLOCK_SECONDS)

/* When a node that has refused is asked again. */
#define RL_LISTENER_REFUSED_US (60 * REDLOCK_SECONDS)

/* Whether a listener of |node| is wanted. */
bool rl_listener_needed(const struct rl_core *core, unsigned node);

/* A listener has subscribed; its connection has ended, for |reason|. */
void rl_listener_up(struct rl_core *core, const rl_node *listener);
void rl_listener_down(struct rl_core *core, const rl_node *listener, redlock_time now_us,
                      const char *reason);

/* The connection of the node itself has come up; or ended. */
void rl_listener_node_up(struct rl_core *core, const rl_node *node);
void rl_listener_node_down(struct rl_core *core, const rl_node *node, redlock_time now_us);

/* The probe was answered: what the node publishes must have arrived. */
void rl_listener_probed(struct rl_core *core, rl_node *node, redlock_time now_us);

/* The node does not let us: it is not asked again for a while. */
void rl_listener_refuse(struct rl_core *core, const rl_node *node, redlock_time now_us,
                        const char *reason);

/* A release has said that it may call nobody there. */
void rl_listener_mute(struct rl_core *core, const rl_node *node, redlock_time now_us);

/* Whether the calls of |node| arrive; else why not goes to |*reason|, NULL if nothing is wrong. */
bool rl_listener_state(const struct rl_core *core, unsigned node, const char **reason);

/* Whether the calls of so many nodes arrive, or will in a moment: nothing was wrong with their listeners. */
bool rl_listeners_are_coming(const struct rl_core *core, unsigned needed);

/* Makes them when they are wanted, and sends what is to be sent; whether there is anything. */
void rl_listeners_continue(struct rl_core *core, redlock_time now_us);
bool rl_listeners_have_news(const struct rl_core *core);

/* When nobody has waited for long, none are wanted any more. */
void rl_listeners_rest(struct rl_core *core, redlock_time now_us);

/* Why the listener is to be given up by now, or NULL; one that has been silent is asked for a byte. */
const char *rl_listener_overdue(struct rl_core *core, rl_node *listener, redlock_time now_us);
redlock_time rl_listeners_deadline(const struct rl_core *core);

void rl_listeners_forget(struct rl_core *core);
void rl_listeners_free(struct rl_core *core);

#endif
