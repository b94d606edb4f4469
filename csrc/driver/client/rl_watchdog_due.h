/*
 * When the keeper has something to do.
 *
 * SPDX-License-Identifier: MIT
 *
 * The threads that wait ask this, too: they call the keeper. All of these: the caller has entered the client.
 */
#ifndef RL_WATCHDOG_DUE_H
#define RL_WATCHDOG_DUE_H

#include "client/rl_client_state.h"

#define RL_WATCHDOG_QUIET_US (10 * REDLOCK_MILLISECONDS)

/* Returns true if a loop of the program's waits for the nodes, by redlock_client_pollfd(). */
bool rl_watchdog_has_loop(const redlock_client *client);

/* When the keeper is to take a turn. */
redlock_time rl_watchdog_due(const redlock_client *client);

/* Returns true if no thread in a blocking call is there to do what is due. */
bool rl_watchdog_is_alone(const redlock_client *client);

/* Returns true if there are losses of which it has to tell the program. */
bool rl_watchdog_has_losses(const redlock_client *client);

/*
 * Returns true if it has to be called: it has to tell of losses, or something is due before it wakes by itself, and
 * no thread leads.
 */
bool rl_watchdog_is_late(const redlock_client *client);

#endif
