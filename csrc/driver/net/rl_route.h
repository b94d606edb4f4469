/*
 * How a node is reached: by the bare socket, or through a transport.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ROUTE_H
#define RL_ROUTE_H

#include "net/rl_transport.h"
#include "options/rl_address.h"

#define RL_ROUTE_ERROR_MAX 192 /* bytes of a message */

/* How a node is reached; zeros: by the bare socket. */
typedef struct rl_route {
  const redlock_transport *transport;
  rl_transport_node *node;
} rl_route;

/*
 * Makes the route to |address| from the options of |node|, and from |settings| for those that it
 * does not set. |like| is the route to another node of the client, or NULL. Returns REDLOCK_OK, or
 * UNSUPPORTED (no transport), INVALID, NO_MEMORY or SYSTEM with a sentence in |message|, of
 * RL_ROUTE_ERROR_MAX bytes.
 */
int rl_route_make(rl_route *route, const rl_address *address, const redlock_node *node,
                  const redlock_settings *settings, const rl_route *like, char *message);

/* Its connections must have ended. */
void rl_route_free(rl_route *route);

#endif
