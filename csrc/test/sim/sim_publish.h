/*
 * Messages that a node publishes, and the subscriptions that receive them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIM_PUBLISH_H
#define SIM_PUBLISH_H

#include "sim_node.h"

#define SIM_PUBLISH_CHANNEL "redlock:call:"

/* Returns true if the node denies the client that command. */
bool sim_publish_is_denied(const sim *s, unsigned node, sim_deaf what);

/* Publishes a message. Returns how many subscribers the node counts. */
unsigned sim_publish(sim *s, unsigned node, const char *channel, const char *message,
                     size_t length);

/* Executes SUBSCRIBE or PING. Returns false if the command is forbidden. */
bool sim_publish_listen(sim *s, int connection, const resp_request *command,
                        const sim_request *request);

#endif
