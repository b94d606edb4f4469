/*
 * Entering a client: its mutex, and what a fork leaves of it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_ENTER_H
#define RL_CLIENT_ENTER_H

#include "client/rl_client_state.h"

/*
 * To be called first in every public function: takes the mutex. In a forked child everything inherited
 * is dropped then, without a byte reaching a node.
 */
void rl_client_enter(redlock_client *client);

/* The part of rl_client_enter() for forks, for drivers whose clients belong to one thread. */
void rl_client_check_fork(redlock_client *client);

/* Closes the connections and the epoll set. |forked|: they are the parent's, to which nothing is sent. */
void rl_client_close_sockets(redlock_client *client, bool forked);

#endif
