/*
 * Credentials that the program is asked for, for each connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CREDENTIALS_H
#define RL_CREDENTIALS_H

#include <stdbool.h>

#include "redlock.h"

/*
 * The core has been told that |connection| is being made: asks the program as whom to log in at its
 * node, if it is to be asked. Returns whether to go on. Else the answer is awaited, and the
 * connection goes on with it; or the core knows why there is none.
 */
bool rl_credentials_ask(redlock_client *client, unsigned connection);

/* Returns true if the program is asked as whom to log in there. */
bool rl_credentials_are_asked(const redlock_client *client, unsigned connection);

/* Returns true if a connection to |node| waits for the program's answer, and which. */
bool rl_credentials_are_awaited(const redlock_client *client, unsigned node, unsigned *connection);

/* The core is told that there are no credentials for it; |why| may be NULL. */
void rl_credentials_refused(redlock_client *client, unsigned connection, const char *why);

/* What is wrong with credentials of such lengths, as a static sentence; NULL if nothing is. */
const char *rl_credentials_wrong(const char *username, const void *password, size_t length);

#endif
