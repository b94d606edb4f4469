/*
 * Statistics and events of a client.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "base/rl_stats.h"
#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "lock/rl_events.h"
#include "node/rl_guard.h"
#include "options/rl_option_table.h"

static void rl_client_read_stats(const rl_core *core, redlock_time now_us,
                                 redlock_stats_info *known) {
  const rl_stats *stats = &core->stats;
  known->acquire = stats->operations[RL_STATS_ACQUIRE];
  known->extend = stats->operations[RL_STATS_EXTEND];
  known->auto_extend = stats->operations[RL_STATS_AUTO_EXTEND];
  known->release = stats->operations[RL_STATS_RELEASE];
  known->attempts = stats->attempts;
  known->lost_expired = stats->lost_expired;
  known->lost_denied = stats->lost_denied;
  known->lost_max_hold = stats->lost_max_hold;
  known->warned_unavailable = stats->warned_unavailable;
  known->warned_clock = stats->warned_clock;
  known->held = rl_core_count_leases(core, now_us);
  known->waiting = rl_core_waiting(core);
  known->quorum = rl_core_quorum(core, RL_OPERATION_ACQUIRE);
  rl_histogram_read(&stats->acquire_time, &known->acquire_time);
  rl_histogram_read(&stats->wait_time, &known->wait_time);
}

int redlock_client_stats_sized(redlock_client *client, redlock_stats_info *info, size_t size) {
  redlock_stats_info known = {0};
  if (client == NULL || info == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  rl_client_read_stats(&client->core, redlock_now(), &known);
  rl_client_leave(client);
  rl_option_fill(info, size, &known, sizeof known);
  return REDLOCK_OK;
}

static void rl_client_read_node_stats(const rl_node *node, redlock_time now_us,
                                      redlock_node_stats_info *known) {
  const rl_node_stats *stats = &node->stats;
  const rl_guard *guard = node->link.guard;
  bool up = rl_node_is_up(node);
  known->name = node->address.name;
  known->up = up ? REDLOCK_YES : REDLOCK_NO;
  known->quarantined =
      up && guard != NULL && rl_guard_excludes(guard, now_us) ? REDLOCK_YES : REDLOCK_NO;
#define RL_CLIENT_READ_VOTES(vote, name, count) known->votes_##name = stats->votes[vote];
  RL_VOTES(RL_CLIENT_READ_VOTES)
  known->votes_late = stats->late;
  known->connections = stats->connections;
  known->failures = stats->failures;
  known->heals = stats->heals;
  known->quarantines = stats->quarantines;
  known->outstanding = node->link.outstanding_count;
  rl_histogram_read(&stats->latency, &known->latency);
}

int redlock_client_node_stats_sized(redlock_client *client, size_t index,
                                    redlock_node_stats_info *info, size_t size) {
  redlock_node_stats_info known = {0};
  if (client == NULL || info == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  bool found = index < client->core.node_count;
  if (found) {
    rl_client_read_node_stats(client->core.nodes[index], redlock_now(), &known);
  }
  rl_client_leave(client);
  if (found) {
    rl_option_fill(info, size, &known, sizeof known);
  }
  return found ? REDLOCK_OK : REDLOCK_E_INVALID;
}

/* ------------------------------------------------------------------------------------- events */

int redlock_client_on_event(redlock_client *client, redlock_event_function *on_event, void *data) {
  if (client == NULL || (client->external && on_event != NULL)) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  int error = client->core.closed ? REDLOCK_E_CLOSED : rl_events_open(&client->core.events);
  if (error == REDLOCK_OK && on_event != NULL) {
    error = rl_watchdog_start(client);
  }
  if (error == REDLOCK_OK) {
    rl_watchdog *watchdog = &client->watchdog;
    watchdog->on_event = on_event;
    watchdog->on_event_data = data;
    watchdog->reported_events =
        client->core.events->total - rl_events_are_there(client->core.events);
  }
  rl_client_leave(client);
  return error;
}

static void rl_client_read_event(const rl_core *core, const rl_events_entry *event,
                                 redlock_event_info *known, const redlock_event_info *info) {
  known->event = event->event;
  known->at_us = event->at_us;
  known->error = event->code;
  known->waited_us = event->waited_us;
  known->missed = event->missed;
  if (event->resource != NULL) {
    rl_resource_name name = rl_resource_at(event->resource, 0);
    known->resource = name.resource;
    known->resource_length = name.length;
  } else {
    known->node = core->nodes[event->node]->address.name;
    known->reason = rl_client_copy_text(known->text, event->reason, info->text);
  }
}

int redlock_client_next_event_sized(redlock_client *client, redlock_event_info *info, size_t size) {
  redlock_event_info known = {0};
  if (client == NULL || info == NULL) {
    return REDLOCK_E_INVALID;
  }
  rl_client_enter(client);
  const rl_events_entry *event = rl_events_take(client->core.events);
  if (event != NULL) {
    rl_client_read_event(&client->core, event, &known, info);
  }
  rl_client_leave(client);
  if (event != NULL) {
    rl_option_fill(info, size, &known, sizeof known);
  }
  return event != NULL ? REDLOCK_OK : REDLOCK_PENDING;
}

const char *redlock_event_name(int event) {
  static const char *const names[] = {
      [REDLOCK_EVENT_UP] = "up",         [REDLOCK_EVENT_DOWN] = "down",
      [REDLOCK_EVENT_LOST] = "lost",     [REDLOCK_EVENT_QUARANTINED] = "quarantined",
      [REDLOCK_EVENT_WARNED] = "warned", [REDLOCK_EVENT_WAITED] = "waited"};
  bool known = event >= 0 && (size_t)event < sizeof names / sizeof *names && names[event] != NULL;
  return known ? names[event] : "unknown";
}
