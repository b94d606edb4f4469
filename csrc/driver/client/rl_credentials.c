/*
 * Credentials that a function of the program supplies for each connection.
 *
 * SPDX-License-Identifier: MIT
 *
 * The thread whose turn begins a connection calls the function, with the client's mutex held. If
 * the answer is pending, there is no descriptor yet. The core counts the wait as connecting time,
 * 3 s in all. A later answer is dropped: the function is called again for the next connection.
 *
 * A node may have a second connection, for notifications. The function is called with the number of
 * the node, and its answer is for any connection of the node that waits.
 */
#include "client/rl_credentials.h"

#include <stdio.h>
#include <string.h>

#include "client/rl_client_state.h"

#define RL_CREDENTIALS_TEXT(number) RL_CREDENTIALS_TEXT_OF(number)
#define RL_CREDENTIALS_TEXT_OF(number) #number

/* A node's own password has priority: it was written for that node. */
bool rl_credentials_are_asked(const redlock_client *client, unsigned connection) {
  return client->settings.credentials != NULL &&
         !rl_core_peer(&client->core, connection)->address.has_password;
}

void rl_credentials_refused(redlock_client *client, unsigned connection, const char *why) {
  char reason[REDLOCK_TEXT_MAX];
  bool said = why != NULL && why[0] != '\0';
  (void)snprintf(reason, sizeof reason, "it got no credentials%s%.150s", said ? ": " : "",
                 said ? why : "");
  rl_core_disconnected(&client->core, connection, redlock_now(), reason);
}

const char *rl_credentials_wrong(const char *username, const void *password, size_t length) {
  if (username != NULL && strlen(username) > REDLOCK_USERNAME_MAX) {
    return "the username is longer than " RL_CREDENTIALS_TEXT(REDLOCK_USERNAME_MAX) " bytes";
  }
  if (password == NULL && length > 0) {
    return "the password is NULL, and has a length";
  }
  return length > REDLOCK_PASSWORD_MAX
             ? "the password is longer than " RL_CREDENTIALS_TEXT(REDLOCK_PASSWORD_MAX) " bytes"
             : NULL;
}

/* Passes what the function has filled in to the core. Returns true if the connection goes on. */
static bool rl_credentials_take(redlock_client *client, unsigned connection,
                                redlock_credentials *filled) {
  const char *why = "out of memory";
  const char *username = filled->username[0] != '\0' ? filled->username : NULL;
  const char *password = filled->password_length > 0 ? filled->password : NULL;
  if (memchr(filled->username, '\0', sizeof filled->username) == NULL) {
    why = "the username does not end";
  } else if (filled->password_length > REDLOCK_PASSWORD_MAX) {
    why = rl_credentials_wrong(NULL, filled->password, filled->password_length);
  } else if (rl_core_login(&client->core, connection, username, password,
                           filled->password_length) == REDLOCK_OK) {
    return true;
  }
  rl_credentials_refused(client, connection, why);
  return false;
}

bool rl_credentials_ask(redlock_client *client, unsigned connection) {
  redlock_credentials filled;
  bool goes_on = false;
  if (!rl_credentials_are_asked(client, connection)) {
    return true;
  }
  memset(&filled, 0, sizeof filled);
  const rl_node *node = rl_core_peer(&client->core, connection);
  filled.name = node->address.name;
  int result =
      client->settings.credentials(client, node->index, &filled, client->settings.credentials_data);
  if (result == REDLOCK_OK) {
    goes_on = rl_credentials_take(client, connection, &filled);
  } else if (result == REDLOCK_PENDING) {
    rl_core_await_login(&client->core, connection);
  } else {
    rl_credentials_refused(client, connection, filled.message);
  }
  rl_login_overwrite(&filled, sizeof filled);
  return goes_on;
}

bool rl_credentials_are_awaited(const redlock_client *client, unsigned node, unsigned *connection) {
  const rl_core *core = &client->core;
  for (unsigned i = node; i < rl_core_connection_count(core); i += core->node_count) {
    if (rl_core_awaits_login(core, i)) {
      *connection = i;
      return true;
    }
  }
  return false;
}
