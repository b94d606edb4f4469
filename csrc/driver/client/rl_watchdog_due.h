/*
 * When the watchdog has something to do. Waiting threads ask this, too, because they wake it.
 *
 * SPDX-License-Identifier: MIT
 *
 * All functions: the caller has entered the client.
 */
#ifndef RL_WATCHDOG_DUE_H
#define RL_WATCHDOG_DUE_H

#include "client/rl_client_state.h"

#define RL_WATCHDOG_QUIET_US (10 * REDLOCK_MILLISECONDS)

/* Returns true if a loop of the program polls redlock_client_pollfd(). */
bool rl_watchdog_has_loop(const redlock_client *client);

/* Returns the time of the watchdog's next turn. */
redlock_time rl_watchdog_due(const redlock_client *client);

/* Returns true if no thread in a blocking call does what is due. */
bool rl_watchdog_is_alone(const redlock_client *client);

/* Return true if a function of the program must be called for losses; for events; for either. */
bool rl_watchdog_has_losses(const redlock_client *client);
bool rl_watchdog_has_events(const redlock_client *client);
bool rl_watchdog_has_news(const redlock_client *client);

/* Returns true if it must be woken: for news, or because it would sleep too long. */
bool rl_watchdog_is_late(const redlock_client *client);

#endif
