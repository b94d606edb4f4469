/*
 * What a client waits for: descriptors, an epoll set, and until when.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_POLL_H
#define RL_POLL_H

#include "rl_client.h"

/* Waits for input, at most until |deadline_us|, and processes it. */
int rl_poll_wait(redlock_client *client, redlock_time deadline_us);

/*
 * Brings the epoll set, if it was asked for, in line with what the client waits for. To be called
 * after everything that may have changed that.
 */
void rl_poll_sync(redlock_client *client);

/* The same; wakes the caller's loop, too, if operations have ended outside of it that it is to take. */
void rl_poll_wake(redlock_client *client);

/* Closes the epoll set. The sockets have left it. */
void rl_poll_close(redlock_client *client);

#endif
