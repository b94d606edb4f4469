/*
 * What a client waits for: descriptors, an epoll set, and until when.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_POLL_H
#define RL_POLL_H

#include "client/rl_client_state.h"

/* redlock_client_pollfds() for who has entered the client. */
size_t rl_poll_fds(const redlock_client *client, struct pollfd *fds, size_t capacity);

/* When a turn is due at the latest, whoever takes it; 0 = at once. */
redlock_time rl_poll_deadline(const redlock_client *client);

/*
 * When redlock_client_process() is to be called at the latest: also for what the caller's loop is to take.
 * |output| is rl_core_with_output().
 */
redlock_time rl_poll_process_deadline(const redlock_client *client, uint32_t output);

/* The nodes whose descriptor is waited for to take bytes, or to be connected. */
uint32_t rl_poll_writable(const redlock_client *client);

/* poll(2) until |until_us|. Returns -1 when a signal was taken. */
int rl_poll_until(struct pollfd *fds, size_t count, redlock_time until_us);

/* Makes the epoll set, where there is such a thing and a descriptor left: else client->epoll_fd stays -1. */
void rl_poll_open(redlock_client *client);

/*
 * Brings the epoll set, if it was asked for, in line with what the client waits for. To be called
 * after everything that may have changed that.
 */
void rl_poll_sync(redlock_client *client);

/* The same; wakes the caller's loop, too, if operations have ended outside of it that it is to take. */
void rl_poll_wake(redlock_client *client);

/*
 * Makes the descriptor readable at |at_us|, if no turn comes later: for what the driver's own coroutines wait for. The
 * earliest counts, once.
 */
void rl_poll_at(redlock_client *client, redlock_time at_us);

/* Closes the epoll set. The sockets have left it. */
void rl_poll_close(redlock_client *client);

#endif
