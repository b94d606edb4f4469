/*
 * Clients that finalizers have dropped while they still have bytes to send.
 *
 * SPDX-License-Identifier: MIT
 */
#include "api/rl_linger.h"

#include "client/rl_client.h"
#include "client/rl_turn.h"

void rl_linger_add(rl_linger *list, redlock_client *client) {
  rl_client_enter(client);
  if (client->lingering) {
    rl_client_leave_for_good(client); /* The list has a reference already. */
    return;
  }
  client->lingering = true;
  client->linger_next = list->first;
  list->first = client;
  rl_caller_send(client);
  rl_client_leave(client);
}

/*
 * Returns true if nothing is left to send or to be answered, and no lock can add to it. Another
 * reference may exist: that of a host that made the client in C.
 */
static bool rl_linger_finished(const redlock_client *client) {
  return client->core.lock_count == 0 &&
         !rl_core_awaits_replies(&client->core, redlock_now(), RL_CLIENT_DRAIN_US);
}

/* The caller has entered the client. This leaves it. */
static void rl_linger_remove(redlock_client **link) {
  redlock_client *client = *link;
  *link = client->linger_next;
  client->linger_next = NULL;
  client->lingering = false;
  rl_client_leave_for_good(client);
}

void rl_linger_process(rl_linger *list) {
  redlock_client **link = &list->first;
  while (*link != NULL) {
    redlock_client *client = *link;
    rl_client_enter(client);
    (void)rl_turn_process(client, NULL, 0);
    if (rl_linger_finished(client)) {
      rl_linger_remove(link);
    } else {
      link = &client->linger_next;
      rl_client_leave(client);
    }
  }
}

void rl_linger_drain(rl_linger *list, redlock_duration budget_us) {
  redlock_time deadline_us = rl_time_add(redlock_now(), budget_us);
  for (redlock_client *client = list->first; client != NULL; client = client->linger_next) {
    rl_client_enter(client);
    if (client->references == 1) {
      rl_core_close(&client->core, redlock_now());
    }
    rl_turn_flush(client);
    rl_client_leave(client);
  }
  while (list->first != NULL) {
    redlock_client *client = list->first;
    rl_client_enter(client);
    rl_client_drain(client, deadline_us);
    rl_linger_remove(&list->first);
  }
}
