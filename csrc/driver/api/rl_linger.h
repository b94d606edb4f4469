/*
 * Clients that were dropped while they still had something to send.
 *
 * SPDX-License-Identifier: MIT
 *
 * For finalizers: they may not block, and what they drop must be released all the same.
 */
#ifndef RL_LINGER_H
#define RL_LINGER_H

#include "redlock.h"

typedef struct rl_linger {
  redlock_client *first;
} rl_linger;

/*
 * Takes over the caller's reference. Sends what the sockets take. Never blocks, never fails,
 * allocates nothing. The client is kept as long as others refer to it or it has something to send.
 */
void rl_linger_add(rl_linger *list, redlock_client *client);

/* Goes on without blocking, and frees the clients that have nothing left to do. */
void rl_linger_process(rl_linger *list);

/* Blocks for at most |budget_us| for all of them together, then gives them all up. */
void rl_linger_drain(rl_linger *list, redlock_duration budget_us);

#endif
