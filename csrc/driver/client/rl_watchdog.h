/*
 * The watchdog: a thread that does what is due between the calls of a program.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WATCHDOG_H
#define RL_WATCHDOG_H

#include "client/rl_client_state.h"

/* ---- all below: the caller has entered the client ---- */

/* Starts the watchdog unless it runs or is forbidden. Errors: SYSTEM (no thread, no descriptor). */
int rl_watchdog_start(redlock_client *client);

/*
 * Ends and joins the watchdog, whatever the nodes do. Other threads may enter meanwhile. Called by
 * the watchdog itself, it ends later, and the next call joins it.
 */
void rl_watchdog_stop(redlock_client *client);

/* Returns true if the caller is the watchdog, in redlock_lost_function. */
bool rl_watchdog_is_self(const redlock_client *client);

#endif
