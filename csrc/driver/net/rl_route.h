/*
 * How each node of a client is reached: by the bare socket, or through a transport with options.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_ROUTE_H
#define RL_ROUTE_H

#include "net/rl_stream.h"
#include "options/rl_address.h"

/*
 * Makes the way to |address|, of which |node| says what a node says and |settings| the rest; |like| is the way to another
 * node of the client, or NULL. Returns REDLOCK_OK;
 * or UNSUPPORTED (no transport), INVALID, NO_MEMORY or SYSTEM with a sentence in |message|, of RL_STREAM_ERROR_MAX
 * bytes.
 */
int rl_route_make(rl_route *route, const rl_address *address, const redlock_node *node,
                  const redlock_settings *settings, const rl_route *like, char *message);

/* Nothing is connected by it any more. */
void rl_route_free(rl_route *route);

#endif
