/*
 * Enters a client: locks its mutex, and resets it after a fork.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CLIENT_ENTER_H
#define RL_CLIENT_ENTER_H

#include "client/rl_client_state.h"

/*
 * Locks the mutex; every public function calls this first. In a forked child it drops all that is
 * inherited, without sending a byte.
 */
void rl_client_enter(redlock_client *client);

/* The part of rl_client_enter() about forks, for drivers whose clients belong to one thread. */
void rl_client_check_fork(redlock_client *client);

/* Closes connections and epoll set. |forked|: they are the parent's, and nothing is sent. */
void rl_client_close_sockets(redlock_client *client, bool forked);

#endif
