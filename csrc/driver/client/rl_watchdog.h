/*
 * The keeper: a thread that does what is due between the calls of a program.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_WATCHDOG_H
#define RL_WATCHDOG_H

#include "client/rl_client_state.h"

/* ---- all below: the caller has entered the client ---- */

/*
 * Has the client have a keeper, unless it has one or may have none. Errors: SYSTEM (no thread, no
 * descriptor).
 */
int rl_watchdog_start(redlock_client *client);

/*
 * Ends and joins it, however the nodes are. Others may enter meanwhile. Called by the keeper itself, it ends
 * later, and is joined by the next call.
 */
void rl_watchdog_stop(redlock_client *client);

/* Returns true if the caller is the keeper, which tells the program of losses. */
bool rl_watchdog_is_self(const redlock_client *client);

#endif
