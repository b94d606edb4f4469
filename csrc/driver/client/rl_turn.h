/*
 * One turn of a client over its own sockets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_TURN_H
#define RL_TURN_H

#include "client/rl_client_state.h"

/* ---- all below: the caller has entered the client ---- */

/*
 * Sends what the sockets take. Reads, decides and allocates nothing; the next turn handles a broken
 * connection.
 */
void rl_turn_flush(redlock_client *client);

/* redlock_client_process() inside the client. */
int rl_turn_process(redlock_client *client, const struct pollfd *fds, size_t count);

/*
 * Takes a turn at |now_us| for operations that have begun. Reads only after a pause, or if much is
 * outstanding.
 */
int rl_turn_send_due(redlock_client *client, redlock_time now_us);

/* Begins a connection that the core expects, and reports its state to the core. */
void rl_turn_open(redlock_client *client, unsigned node);

/*
 * Sends the operations that have begun until |now_us|, or leaves them to arriving callers
 * (rl_caller.c).
 */
int rl_turn_start(redlock_client *client, redlock_time now_us);

#endif
