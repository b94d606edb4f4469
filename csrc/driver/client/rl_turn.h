/*
 * One turn of a client over its own sockets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TURN_H
#define RL_TURN_H

#include "client/rl_client_state.h"

/* All of these: the caller has entered the client. */

/*
 * Sends what the sockets take, without reading, deciding or allocating anything: a connection that
 * turns out to be broken is found to be so by the next turn.
 */
void rl_turn_flush(redlock_client *client);

/* redlock_client_process() for who has entered the client. */
int rl_turn_process(redlock_client *client, const struct pollfd *fds, size_t count);

/*
 * One turn without waiting, for what has been begun; looks for input only after a pause, or when a
 * node owes much.
 */
int rl_turn_send_due(redlock_client *client);

/*
 * Begins the connection to a node whose making the core has been told of, and tells it what has
 * become of it.
 */
void rl_turn_open(redlock_client *client, unsigned node);

/*
 * The same as rl_turn_send_due(), or leaves it to the threads that are on their way to the mutex
 * (rl_client_wait.c).
 */
int rl_turn_start(redlock_client *client);

#endif
