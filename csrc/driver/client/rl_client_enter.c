/*
 * Enters a client: locks its mutex, and resets it after a fork.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_client_enter.h"

#include "client/rl_poll.h"

void rl_client_close_sockets(redlock_client *client, bool forked) {
  for (unsigned i = 0; i < REDLOCK_NODES_MAX; i++) {
    rl_socket_free(&client->sockets[i], forked);
  }
  rl_poll_close(client);
}

void rl_client_check_fork(redlock_client *client) {
  if (!rl_fork_happened(&client->mark)) {
    return;
  }
  rl_client_close_sockets(client, true);
  rl_callers_reset(&client->callers);
  client->watchdog.runs = false; /* A child does not have the thread. */
  client->watchdog.on_lost = NULL;
  client->watchdog.on_event = NULL;
  rl_eventfd_close(&client->watchdog.event);
  client->wants_credentials = 0;
  RL_LIST_EACH(&client->core.locks, lock, rl_lock, locks) {
    lock->caller_number = 0;
  }
  rl_core_reset(&client->core);
  rl_core_reset_stats(&client->core);
  rl_fork_adopt(&client->mark);
}

void rl_client_enter(redlock_client *client) {
  rl_mutex_lock(&client->mutex);
  rl_client_check_fork(client);
}
