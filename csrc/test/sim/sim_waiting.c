/*
 * Waiting: long waits, faults of notifications, and the time for which a resource has been free.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "check.h"
#include "sim.h"
#include "sim_calls.h"
#include "sim_key.h"
#include "sim_trace.h"

#define SIM_WAITING_CALM_US (60 * REDLOCK_SECONDS) /* a budget after the faults have stopped */
#define SIM_WAITING_WATCH_US 20000
#define SIM_WAITING_DIES_US 3000 /* after its notification, at most */

static uint64_t sim_waiting_below(sim *s, uint64_t below) {
  return sim_below(&s->random_calls, below);
}

void sim_waiting_draw(sim *s, sim_random *random) {
  static const unsigned lost[] = {0, 0, 500, 2000, 10000};
  static const unsigned late[] = {0, 0, 1000, 5000};
  static const unsigned dies[] = {0, 0, 100, 500};
  static const unsigned chances[] = {0, 0, 5000, 10000};
  sim_config *config = &s->config;
  bool drawn = sim_below(random, 2) == 0;
  if (!s->notifying && (!drawn || s->breach != SIM_BREACH_NONE)) {
    return;
  }
  config->notifications = true;
  config->lost = lost[sim_below(random, 5)];
  config->late = late[sim_below(random, 4)];
  config->dies = dies[sim_below(random, 4)];
  config->fair = chances[sim_below(random, 4)];
  config->patient = chances[1 + sim_below(random, 3)];
  config->waiters_max =
      sim_below(random, 8) == 0 ? (unsigned)sim_between(random, 1, 3) : SIM_WAITERS_MAX;
  config->poll_interval_us =
      sim_below(random, 4) == 0 ? 2 * REDLOCK_SECONDS
                                : sim_between(random, config->ttl_us[0] / 8, 4 * config->ttl_us[0]);
  if (sim_below(random, 2) == 0) {
    config->locks = (unsigned)sim_between(random, 2, SIM_LOCKS_MAX);
  }
  config->think_us /= sim_below(random, 2) == 0 ? 4 : 1;
  unsigned weight = sim_below(random, 2) == 0 ? 0 : (unsigned)sim_between(random, 1, 12);
  config->weights[SIM_FAULT_NOTIFICATIONS] = (uint16_t)weight;
  config->weight_sum += weight;
}

void sim_waiting_begin(sim *s) {
  for (unsigned i = 0; i < SIM_RESOURCES_MAX; i++) {
    s->free_us[i] = SIM_NEVER;
    s->reserved_us[i] = 0;
    for (unsigned k = 0; k < SIM_CLIENTS_MAX; k++) {
      s->resource_attempts[k][i] = 0;
    }
  }
}

void sim_waiting_options(sim *s, rl_options *options) {
  bool calm = s->phase != SIM_PHASE_SAFETY;
  if (!s->config.notifications) {
    return;
  }
  options->poll_interval_us = s->config.poll_interval_us;
  options->fair = sim_chance(&s->random_calls, s->config.fair) ? REDLOCK_YES : REDLOCK_NO;
  if (sim_chance(&s->random_calls, s->config.patient)) {
    options->retry_count = 0;
    options->wait_us = calm ? SIM_WAITING_CALM_US : 1 + sim_waiting_below(s, 20 * options->ttl_us);
  }
}

/* ------------------------------------------------------------------------------------- faults */

bool sim_waiting_calls(sim *s, int index) {
  sim_client *client = &s->clients[s->connections[index].client];
  if (s->phase != SIM_PHASE_SAFETY) {
    return true;
  }
  if (sim_chance(&s->random_calls, s->config.dies) && client->alive && !client->closing &&
      client->dies_us == SIM_NEVER) {
    client->dies_us = s->now_us + 1 + sim_waiting_below(s, SIM_WAITING_DIES_US);
    sim_client_wake(s, client->index, client->dies_us);
  }
  if (sim_chance(&s->random_calls, s->config.lost)) {
    sim_count(s, SIM_INJECTED_NOTIFY_LOST);
    return false;
  }
  if (sim_chance(&s->random_calls, s->config.late)) {
    sim_count(s, SIM_INJECTED_NOTIFY_LATE);
    sim_network_detain(s, index, sim_network_boundary(s, &s->random_calls));
  }
  return true;
}

/* An open connection of a client, for its subscription or not; or SIM_NO_CONNECTION. */
static int sim_waiting_connection(sim *s, bool listens) {
  const sim_client *client = &s->clients[sim_waiting_below(s, s->config.clients)];
  unsigned socket = (unsigned)sim_waiting_below(s, client->nodes) + (listens ? client->nodes : 0);
  bool open = client->alive && client->sockets[socket].open;
  return open ? client->sockets[socket].connection : SIM_NO_CONNECTION;
}

static void sim_waiting_break(sim *s, bool forgets) {
  int index = sim_waiting_connection(s, true);
  if (index == SIM_NO_CONNECTION || s->connections[index].replies_lost) {
    return;
  }
  sim_connection *connection = &s->connections[index];
  sim_count(s, forgets ? SIM_INJECTED_SUBSCRIBER_FORGOTTEN : SIM_INJECTED_SUBSCRIBER_CUT);
  sim_trace_fault(s, connection->node, s->now_us, "client %u hears no calls: %s",
                  connection->client, forgets ? "half open" : "broken");
  if (forgets) {
    connection->black_hole = true;
  } else {
    sim_network_break(s, index,
                      (unsigned)sim_waiting_below(s, 2)); /* Noticed by the node, or not. */
  }
}

/* Delays the commands to one node, so that the queues of the nodes differ in order. */
static void sim_waiting_split(sim *s) {
  int index = sim_waiting_connection(s, false);
  if (index != SIM_NO_CONNECTION) {
    sim_connection *connection = &s->connections[index];
    uint64_t until_us = s->now_us + sim_network_boundary(s, &s->random_calls) / 2;
    connection->hold_us = until_us > connection->hold_us ? until_us : connection->hold_us;
    sim_count(s, SIM_INJECTED_SPLIT);
    sim_trace_fault(s, connection->node, until_us, "client %u held up", connection->client);
  }
}

void sim_waiting_fault(sim *s) {
  unsigned index = (unsigned)sim_waiting_below(s, s->config.nodes);
  sim_node *node = &s->nodes[index];
  switch (sim_waiting_below(s, 6)) {
  case 0:
    sim_waiting_break(s, false);
    break;
  case 1:
    sim_waiting_break(s, true);
    break;
  case 2:
    node->deaf = (unsigned)(1 + sim_waiting_below(s, 7));
    node->deaf_until_us = s->now_us + sim_network_boundary(s, &s->random_calls);
    sim_count(s, SIM_INJECTED_DEAF);
    sim_trace_fault(s, index, node->deaf_until_us, "does not let clients wait (%u)", node->deaf);
    break;
  case 3:
    sim_calls_lose(s, index);
    sim_count(s, SIM_INJECTED_QUEUES_LOST);
    sim_trace_fault(s, index, s->now_us, "its queues are lost");
    break;
  default:
    sim_waiting_split(s);
    break;
  }
}

/* ----------------------------------------------------------------------------- when all is calm */

void sim_waiting_stop(sim *s) {
  for (unsigned i = 0; i < s->config.nodes; i++) {
    s->nodes[i].deaf_until_us = 0;
  }
  for (unsigned i = 0; i < s->config.clients; i++) {
    s->clients[i].dies_us = SIM_NEVER;
  }
  if (s->config.notifications) {
    sim_queue_add(s, s->now_us + SIM_WAITING_WATCH_US, SIM_EVENT_WATCH, 0, 0, 0);
  }
}

/* Returns true if so many nodes have no key of the resource that an acquire can win. */
static bool sim_waiting_is_free(sim *s, unsigned resource) {
  unsigned count = 0;
  for (unsigned i = 0; i < s->config.nodes; i++) {
    count += s->nodes[i].up && sim_key_find(s, i, s->config.databases ? 1 : 0, resource) == NULL;
  }
  return count >= sim_config_quorum(&s->config, s->config.nodes);
}

/* Returns true if a node reserves the free resource for a waiter for both. */
static bool sim_waiting_is_reserved(sim *s, unsigned resource) {
  bool reserved = false;
  for (unsigned i = 0; i < s->config.nodes; i++) {
    const sim_waiters *waiters = sim_calls_waiters(s, i, s->config.databases ? 1 : 0, resource);
    reserved = reserved || waiters->reserved_until_ms > sim_key_wall_ms(s, i);
  }
  return reserved;
}

uint64_t sim_waiting_others(const sim *s, unsigned client, unsigned resource) {
  uint64_t count = 0;
  for (unsigned i = 0; i < SIM_CLIENTS_MAX; i++) {
    count += i == client ? 0 : s->resource_attempts[i][resource];
  }
  return count;
}

void sim_waiting_watch(sim *s) {
  for (unsigned i = 0; i < s->config.resources; i++) {
    bool was = s->free_us[i] != SIM_NEVER;
    bool is = sim_waiting_is_free(s, i);
    s->free_us[i] = !is ? SIM_NEVER : was ? s->free_us[i] : s->now_us;
    s->reserved_us[i] = sim_waiting_is_reserved(s, i) ? s->now_us : s->reserved_us[i];
  }
  check_watched(s);
  sim_queue_add(s, s->now_us + SIM_WAITING_WATCH_US, SIM_EVENT_WATCH, 0, 0, 0);
}
