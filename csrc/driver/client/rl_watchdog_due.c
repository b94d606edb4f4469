/*
 * When the watchdog has something to do. rl_watchdog.c has WDOG-1 to WDOG-6.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client/rl_watchdog_due.h"

#include "client/rl_poll.h"
#include "lock/rl_events.h"

#define RL_WATCHDOG_LOOP_US (20 * REDLOCK_MILLISECONDS)

/* WDOG-4. */
bool rl_watchdog_has_loop(const redlock_client *client) {
  return client->epoll_fd >= 0 && !client->watchdog.loop_is_absent;
}

/* Returns true if the client awaits a reply of a node. */
static bool rl_watchdog_awaits(const redlock_client *client) {
  for (unsigned i = 0; i < rl_core_connection_count(&client->core); i++) {
    const rl_link *link = &rl_core_peer(&client->core, i)->link;
    bool connects = link->phase == RL_LINK_CONNECTING && !rl_link_awaits_login(link);
    if (link->outstanding_count > 0 || connects || link->phase == RL_LINK_HANDSHAKE) {
      return true;
    }
  }
  return false;
}

redlock_time rl_watchdog_due(const redlock_client *client) {
  redlock_time due_us = rl_poll_deadline(client);
  if (rl_watchdog_has_loop(client)) { /* WDOG-4 */
    redlock_time read_us = rl_watchdog_awaits(client) ? client->processed_us : REDLOCK_NEVER;
    return rl_time_add(rl_time_min(due_us, read_us), RL_WATCHDOG_LOOP_US);
  }
  redlock_time quiet_us = rl_time_add(client->processed_us, RL_WATCHDOG_QUIET_US);
  return client->core.closed ? REDLOCK_NEVER : rl_time_min(due_us, quiet_us);
}

bool rl_watchdog_is_alone(const redlock_client *client) {
  return client->callers.poller == NULL && rl_callers_first(&client->callers.asleep) == NULL &&
         client->callers.arriving == 0;
}

bool rl_watchdog_has_losses(const redlock_client *client) {
  const rl_watchdog *watchdog = &client->watchdog;
  return watchdog->on_lost != NULL && watchdog->reported_count != client->core.losses->count;
}

bool rl_watchdog_has_events(const redlock_client *client) {
  const rl_watchdog *watchdog = &client->watchdog;
  return watchdog->on_event != NULL && watchdog->reported_events != client->core.events->total;
}

bool rl_watchdog_has_news(const redlock_client *client) {
  return rl_watchdog_has_losses(client) || rl_watchdog_has_events(client);
}

bool rl_watchdog_is_late(const redlock_client *client) {
  const rl_watchdog *watchdog = &client->watchdog;
  if (!watchdog->runs || watchdog->until_us == 0) {
    return false;
  }
  return rl_watchdog_has_news(client) ||
         (rl_watchdog_is_alone(client) && rl_watchdog_due(client) < watchdog->until_us);
}
