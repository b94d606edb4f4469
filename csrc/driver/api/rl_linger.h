/*
 * Clients that finalizers have dropped while they still have bytes to send.
 *
 * SPDX-License-Identifier: MIT
 *
 * A finalizer must not block. So its releases are sent later.
 */
#ifndef RL_LINGER_H
#define RL_LINGER_H

#include "redlock.h"

typedef struct rl_linger {
  redlock_client *first;
} rl_linger;

/*
 * Takes over the caller's reference, and sends what the sockets take. Never blocks, never fails,
 * allocates nothing. Keeps the client while there are other references, or bytes to send.
 */
void rl_linger_add(rl_linger *list, redlock_client *client);

/* Takes a turn of each client, and frees the clients that are done. */
void rl_linger_process(rl_linger *list);

/* Blocks for at most |budget_us| for all clients together, then gives them up. */
void rl_linger_drain(rl_linger *list, redlock_duration budget_us);

#endif
