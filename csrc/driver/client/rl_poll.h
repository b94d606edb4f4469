/*
 * What a client waits for: descriptors, an epoll set, and how long. The caller has entered the
 * client.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_POLL_H
#define RL_POLL_H

#include "client/rl_client_state.h"

/* Returns true if the connection has bytes to send, of the core's or of the transport's. */
static inline bool rl_poll_has_unsent(const redlock_client *client, unsigned connection) {
  return rl_core_has_output(&client->core, connection) ||
         rl_socket_has_unsent(&client->sockets[connection]);
}

/* Returns what the client polls for. Writes up to |capacity| descriptors. */
rl_callers_wants rl_poll_wants(const redlock_client *client, struct pollfd *fds, size_t capacity);

/* redlock_client_pollfds() inside the client. */
size_t rl_poll_fds(const redlock_client *client, struct pollfd *fds, size_t capacity);

/* Returns when a turn is due at the latest, in any thread; 0 = at once. */
redlock_time rl_poll_deadline(const redlock_client *client);

/*
 * Returns when redlock_client_process() is due at the latest, also for results that the program's
 * loop must take.
 */
redlock_time rl_poll_process_deadline(const redlock_client *client);

/* Polls until |until_us|. Returns -1 after a signal. */
int rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us);

/* Makes the epoll set; client->epoll_fd stays -1 without epoll or a descriptor. */
void rl_poll_open(redlock_client *client);

/*
 * Updates the epoll set, if there is one. Must be called after all that changes what the client
 * waits for.
 */
void rl_poll_sync(redlock_client *client);

/* Does the same, and wakes the program's loop for operations that have ended outside of it. */
void rl_poll_wake(redlock_client *client);

/*
 * Makes the descriptor readable at |at_us|, for the driver's coroutines. The earliest time counts,
 * once.
 */
void rl_poll_at(redlock_client *client, redlock_time at_us);

/* Closes the epoll set. The sockets must have left it. */
void rl_poll_close(redlock_client *client);

#endif
