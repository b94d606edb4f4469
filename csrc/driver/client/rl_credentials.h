/*
 * Credentials that a function of the program supplies for each connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_CREDENTIALS_H
#define RL_CREDENTIALS_H

#include <stdbool.h>

#include "redlock.h"

/*
 * Calls the function, if the program supplies the credentials of |connection|, which the core
 * expects. Returns true if the connection goes on. Otherwise the answer is pending, or the core has
 * the reason.
 */
bool rl_credentials_ask(redlock_client *client, unsigned connection);

/* Returns true if the function supplies the credentials of |connection|. */
bool rl_credentials_are_asked(const redlock_client *client, unsigned connection);

/* Returns true if a connection to |node| waits for credentials, with its number. */
bool rl_credentials_are_awaited(const redlock_client *client, unsigned node, unsigned *connection);

/* Reports to the core that there are no credentials; |why| may be NULL. */
void rl_credentials_refused(redlock_client *client, unsigned connection, const char *why);

/* Returns why credentials of such lengths are wrong, as a static sentence, or NULL. */
const char *rl_credentials_wrong(const char *username, const void *password, size_t length);

#endif
