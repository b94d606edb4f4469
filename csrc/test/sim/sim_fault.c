/*
 * Causes the faults of sim_fault.h: within the assumptions of docs/safety.md, unless the run breaks
 * one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "sim_trace.h"
#include "sim_watch.h"

/*
 * Absence of a node that has lost its counters: twice the difference of clocks, and twice a second.
 */
#define SIM_FAULT_COUNTERS_LOST_US 6100000u

static uint64_t sim_fault_draw(sim *s, uint64_t below) {
  return sim_below(&s->random_fault, below);
}

static uint64_t sim_fault_length(sim *s) {
  switch (sim_fault_draw(s, 4)) {
  case 0:
    return sim_network_boundary(s, &s->random_fault);
  case 1:
    return sim_fault_draw(s, 4 * s->config.ttl_max_us);
  default:
    return sim_fault_draw(s, s->config.ttl_max_us);
  }
}

static void sim_fault_next(sim *s) {
  uint64_t every_us = s->config.fault_every_us;
  if (every_us != 0 && s->phase == SIM_PHASE_SAFETY) {
    sim_queue_add(s, s->now_us + 1 + sim_fault_draw(s, 2 * every_us), SIM_EVENT_FAULT, 0, 0, 0);
  }
}

void sim_fault_begin(sim *s) {
  sim_fault_next(s);
}

/* ---------------------------------------------------------------------------------------- nodes */

static void sim_fault_crash(sim *s, unsigned index, bool empty) {
  uint64_t down_us = sim_fault_length(s);
  if (!s->nodes[index].up || !sim_guard_may_forget(s, index)) {
    return;
  }
  if (empty) { /* Delayed restart: every lost key would have expired. */
    down_us += sim_config_life_us(&s->config) + s->nodes[index].back_step_us;
    down_us += s->config.fenced != 0 ? SIM_FAULT_COUNTERS_LOST_US : 0;
  }
  sim_count(s, empty ? SIM_INJECTED_CRASH_EMPTY : SIM_INJECTED_CRASH_WITH_DATA);
  sim_trace_fault(s, index, s->now_us + down_us, "down%s", empty ? ", its keys lost" : "");
  sim_node_crash(s, index, empty, down_us);
}

static void sim_fault_errors(sim *s, sim_node *node, unsigned index) {
  node->error = (sim_node_error)(1 + sim_fault_draw(s, SIM_NODE_ERROR_COUNT - 1));
  node->error_until_us = s->now_us + sim_fault_length(s);
  sim_count(s, SIM_INJECTED_ERRORS);
  sim_trace_fault(s, index, node->error_until_us, "errors");
}

static void sim_fault_odd_reply(sim *s, sim_node *node, unsigned index) {
  if (sim_fault_draw(s, 2) == 0) {
    node->odd_replies = 1;
    sim_trace_fault(s, index, s->now_us, "an odd reply is to come");
  } else {
    node->false_errors = 1 + (unsigned)sim_fault_draw(s, 3);
    sim_trace_fault(s, index, s->now_us, "will execute, and answer errors");
  }
}

static void sim_fault_foreign(sim *s, sim_node *node, unsigned index) {
  unsigned database = s->config.databases ? 1 : 0;
  unsigned resource = (unsigned)sim_fault_draw(s, s->config.resources);
  if (!node->up || sim_key_find(s, index, database, resource) != NULL) {
    return;
  }
  sim_key *key = &node->data.keys[database][resource];
  memset(key, 0, sizeof *key);
  key->used = true;
  key->foreign_type = sim_fault_draw(s, 2) == 0;
  key->token = SIM_FOREIGN_TOKEN;
  key->written_us = s->now_us;
  key->value_length = REDLOCK_TOKEN_LENGTH;
  memset(key->value, 'f', key->value_length);
  uint64_t life_us = sim_fault_draw(s, s->config.ttl_max_us);
  key->expire_ms = (sim_clock_read(&node->clock, s->now_us) + life_us) / 1000;
  sim_count(s, key->foreign_type ? SIM_INJECTED_WRONG_TYPE : SIM_INJECTED_FOREIGN_KEY);
  sim_trace_fault(s, index, s->now_us + life_us, "another program's key");
}

/* Limits |step_us|: a clock that keeps close to the true time may not depart from it. */
static int64_t sim_fault_step(const sim *s, unsigned index, int64_t step_us) {
  int64_t shows_us = (int64_t)sim_clock_read(&s->nodes[index].clock, s->now_us);
  int64_t ahead_us = shows_us - (int64_t)(SIM_NODE_EPOCH_US + s->now_us);
  if (!s->config.close_clocks) {
    return step_us;
  }
  int64_t most_us = s->config.close_us - ahead_us, least_us = -s->config.close_us - ahead_us;
  most_us = most_us < 0 ? 0 : most_us;
  least_us = least_us > 0 ? 0 : least_us;
  return step_us > most_us ? most_us : step_us < least_us ? least_us : step_us;
}

/* A step within lock_delay, and no second one while a key lives that has seen the first. */
static void sim_fault_step_forward(sim *s, sim_node *node, unsigned index) {
  uint64_t life_us = sim_config_life_us(&s->config) + node->back_step_us;
  if (node->wrong_clock || (node->stepped_us != 0 && s->now_us < node->stepped_us + life_us)) {
    return;
  }
  uint64_t step_us = sim_fault_draw(s, 3) == 0 ? s->config.lock_delay_us
                                               : sim_fault_draw(s, s->config.lock_delay_us + 1);
  step_us = (uint64_t)sim_fault_step(s, index, (int64_t)step_us);
  sim_clock_step(&node->clock, s->now_us, (int64_t)step_us);
  node->stepped_us = s->now_us;
  sim_count(s, SIM_INJECTED_STEP_FORWARD);
  sim_trace_fault(s, index, s->now_us, "wall clock +%llu us", (ull)step_us);
}

static void sim_fault_step_back(sim *s, sim_node *node, unsigned index) {
  uint64_t step_us = sim_fault_draw(s, s->config.ttl_max_us);
  if (node->wrong_clock || node->back_step_us > 4 * s->config.ttl_max_us) {
    return;
  }
  step_us = (uint64_t)-sim_fault_step(s, index, -(int64_t)step_us);
  sim_clock_step(&node->clock, s->now_us, -(int64_t)step_us);
  node->back_step_us += step_us;
  sim_count(s, SIM_INJECTED_STEP_BACK);
  sim_trace_fault(s, index, s->now_us, "wall clock -%llu us", (ull)step_us);
}

static void sim_fault_node(sim *s, sim_fault kind) {
  unsigned index = (unsigned)sim_fault_draw(s, s->config.nodes);
  sim_node *node = &s->nodes[index];
  uint64_t length_us = sim_fault_length(s);
  switch (kind) {
  case SIM_FAULT_CRASH_WITH_DATA:
    sim_fault_crash(s, index, false);
    break;
  case SIM_FAULT_CRASH_EMPTY:
    sim_fault_crash(s, index, true);
    break;
  case SIM_FAULT_STOP:
    if (node->up && s->now_us >= node->stopped_until_us) {
      sim_count(s, SIM_INJECTED_STOP);
      sim_trace_fault(s, index, s->now_us + length_us, "stopped");
      sim_node_stop(s, index, s->now_us + length_us);
    }
    break;
  case SIM_FAULT_SLOW_NODE:
    node->slow_until_us = s->now_us + 4 * length_us;
    node->service_us = 1 + sim_fault_draw(s, s->config.ttl_us[0] / 20);
    sim_count(s, SIM_INJECTED_SLOW_NODE);
    sim_trace_fault(s, index, node->slow_until_us, "slow");
    break;
  case SIM_FAULT_ERRORS:
    sim_fault_errors(s, node, index);
    break;
  case SIM_FAULT_ODD_REPLY:
    sim_fault_odd_reply(s, node, index);
    break;
  case SIM_FAULT_SCRIPT_FLUSH:
    node->scripts = node->watches = node->calling = 0;
    node->named_count = 0;
    sim_count(s, SIM_INJECTED_SCRIPT_FLUSH);
    sim_trace_fault(s, index, s->now_us, "SCRIPT FLUSH");
    break;
  case SIM_FAULT_FOREIGN:
    sim_fault_foreign(s, node, index);
    break;
  case SIM_FAULT_STEP_BACK:
    sim_fault_step_back(s, node, index);
    break;
  case SIM_FAULT_STEP_FORWARD:
    sim_fault_step_forward(s, node, index);
    break;
  default:
    abort(); /* Another function has this kind. */
  }
}

/* -------------------------------------------------------------------------------------- network */

/* A shorter cut does not end a longer one: its bytes would arrive behind later ones. */
static uint64_t sim_fault_later(uint64_t one_us, uint64_t other_us) {
  return one_us > other_us ? one_us : other_us;
}

static void sim_fault_partition(sim *s) {
  unsigned ways = (unsigned)sim_fault_draw(s, 3);
  unsigned clients = (unsigned)(1 + sim_fault_draw(s, (1u << s->config.clients) - 1));
  unsigned nodes = (unsigned)(1 + sim_fault_draw(s, (1u << s->config.nodes) - 1));
  uint64_t until_us = s->now_us + sim_fault_length(s);
  static const sim_counter counters[] = {SIM_INJECTED_PARTITION, SIM_INJECTED_PARTITION_REQUESTS,
                                         SIM_INJECTED_PARTITION_REPLIES};
  sim_count(s, counters[ways]);
  for (unsigned c = 0; c < s->config.clients; c++) {
    for (unsigned n = 0; n < s->config.nodes; n++) {
      if ((clients >> c & 1) == 0 || (nodes >> n & 1) == 0) {
        continue;
      }
      sim_link *link = &s->links[c][n];
      if (ways != 2) {
        link->requests_blocked_us = sim_fault_later(link->requests_blocked_us, until_us);
      }
      if (ways != 1) {
        link->replies_blocked_us = sim_fault_later(link->replies_blocked_us, until_us);
      }
      sim_trace_fault(s, n, until_us, "cut from client %u%s", c,
                      ways == 1   ? ", requests"
                      : ways == 2 ? ", replies"
                                  : "");
    }
  }
}

static void sim_fault_slow_link(sim *s) {
  unsigned client = (unsigned)sim_fault_draw(s, s->config.clients);
  unsigned node = (unsigned)sim_fault_draw(s, s->config.nodes);
  sim_link *link = &s->links[client][node];
  link->slow_until_us = s->now_us + 4 * sim_fault_length(s);
  link->slow_us = sim_network_boundary(s, &s->random_fault) / 2;
  sim_count(s, SIM_INJECTED_SLOW_LINK);
  sim_trace_fault(s, node, link->slow_until_us, "slow to client %u", client);
}

/* A connection that is up, or SIM_NO_CONNECTION. */
static int sim_fault_connection(sim *s) {
  unsigned client = (unsigned)sim_fault_draw(s, s->config.clients);
  unsigned node = (unsigned)sim_fault_draw(s, s->config.nodes);
  const sim_client *own = &s->clients[client];
  if (!own->alive || node < own->base || node - own->base >= own->nodes ||
      !own->sockets[node - own->base].open) {
    return SIM_NO_CONNECTION;
  }
  return own->sockets[node - own->base].connection;
}

static void sim_fault_break(sim *s, bool half_open) {
  int index = sim_fault_connection(s);
  if (index == SIM_NO_CONNECTION || s->connections[index].replies_lost) {
    return;
  }
  sim_connection *connection = &s->connections[index];
  if (half_open) {
    bool mute = sim_fault_draw(s, 2) == 0;
    connection->mute = connection->mute || mute;
    connection->black_hole = connection->black_hole || !mute;
    sim_count(s, mute ? SIM_INJECTED_MUTE : SIM_INJECTED_HALF_OPEN);
    sim_trace_fault(s, connection->node, s->now_us, "connection of client %u half open%s",
                    connection->client, mute ? ", replies lost" : "");
    return;
  }
  const unsigned *weights = s->config.break_weights;
  uint64_t drawn = sim_fault_draw(s, weights[0] + weights[1] + weights[2] + 1);
  unsigned how = drawn <= weights[0] ? 0 : drawn <= weights[0] + weights[1] ? 1 : 2;
  static const char *const texts[] = {"requests lost", "replies lost", "requests later"};
  sim_trace_fault(s, connection->node, s->now_us, "connection of client %u broken, %s",
                  connection->client, texts[how]);
  sim_network_break(s, index, how);
}

static void sim_fault_network(sim *s, sim_fault kind) {
  switch (kind) {
  case SIM_FAULT_PARTITION:
    sim_fault_partition(s);
    break;
  case SIM_FAULT_SLOW_LINK:
    sim_fault_slow_link(s);
    break;
  case SIM_FAULT_BREAK:
  case SIM_FAULT_HALF_OPEN:
    sim_fault_break(s, kind == SIM_FAULT_HALF_OPEN);
    break;
  default:
    abort(); /* Another function has this kind. */
  }
}

/* -------------------------------------------------------------------------------------- clients */

static void sim_fault_suspend(sim *s) {
  unsigned client = (unsigned)sim_fault_draw(s, s->config.clients);
  uint64_t length_us = sim_fault_length(s);
  sim_count(s, SIM_INJECTED_SUSPEND);
  sim_trace_fault(s, SIM_NODES_MAX + client, s->now_us + length_us, "suspended");
  sim_client_pause(s, client, length_us);
}

/* A client dies, is forgotten as by a forked child, or is closed. */
static void sim_fault_end_client(sim *s) {
  unsigned index = (unsigned)sim_fault_draw(s, s->config.clients);
  sim_client *client = &s->clients[index];
  if (!client->alive || client->closing || s->now_us < client->paused_until_us) {
    return;
  }
  uint64_t kind = sim_fault_draw(s, 3);
  if (kind == 0) {
    sim_count(s, SIM_INJECTED_CLIENT_CRASH);
    sim_trace_fault(s, SIM_NODES_MAX + index, s->now_us, "killed, started again");
    sim_client_kill(s, index);
    sim_client_start(s, index);
  } else if (kind == 1) {
    sim_count(s, SIM_INJECTED_CLIENT_FORK);
    sim_trace_fault(s, SIM_NODES_MAX + index, s->now_us, "forgets, as a forked child");
    sim_client_fork(s, index);
  } else {
    sim_count(s, SIM_INJECTED_CLIENT_CLOSE);
    sim_trace_fault(s, SIM_NODES_MAX + index, s->now_us, "closed");
    sim_client_close(s, index, sim_fault_length(s));
  }
}

static void sim_fault_client(sim *s, sim_fault kind) {
  switch (kind) {
  case SIM_FAULT_SUSPEND:
    sim_fault_suspend(s);
    break;
  case SIM_FAULT_CLIENT:
    sim_fault_end_client(s);
    break;
  default:
    abort(); /* Another function has this kind. */
  }
}

/* ------------------------------------------------------------------ assumptions, to be broken */

/* A replica that is a while behind takes over. */
static void sim_fault_failover(sim *s, sim_node *node, unsigned index) {
  sim_trace_fault(s, index, s->now_us, "a replica that is behind takes over");
  node->data = node->copy;
  node->scripts = 0;
  sim_watch_restart(s, index);
  node->epoch++;
  sim_network_node_died(s, index, false);
}

static void sim_fault_lose_key(sim *s, sim_node *node, unsigned index) {
  unsigned resource = (unsigned)sim_fault_draw(s, s->config.resources);
  for (unsigned i = 0; i < SIM_DATABASES_MAX; i++) {
    if (s->breach == SIM_BREACH_FLUSH) {
      memset(node->data.keys[i], 0, sizeof node->data.keys[i]);
      memset(node->data.counters[i], 0, sizeof node->data.counters[i]);
      memset(node->data.records[i], 0, sizeof node->data.records[i]);
    }
    node->data.keys[i][resource].used = false;
  }
  sim_trace_fault(s, index, s->now_us, "a key is lost");
}

static void sim_fault_assumption(sim *s) {
  unsigned index = (unsigned)sim_fault_draw(s, s->config.nodes);
  sim_node *node = &s->nodes[index];
  s->breached = true;
  switch (s->breach) {
  case SIM_BREACH_RESTART_EMPTY:
    if (node->up) {
      sim_trace_fault(s, index, s->now_us, "restarted at once, empty");
      sim_node_crash(s, index, true, 1 + sim_fault_draw(s, 2000));
    }
    break;
  case SIM_BREACH_STEP_FORWARD:
    sim_clock_step(&node->clock, s->now_us,
                   (int64_t)(s->config.lock_delay_us + s->config.ttl_max_us));
    sim_trace_fault(s, index, s->now_us, "wall clock far forward");
    break;
  case SIM_BREACH_FAILOVER:
    sim_fault_failover(s, node, index);
    break;
  case SIM_BREACH_WALL_CLOCK: {
    sim_client *client = &s->clients[sim_fault_draw(s, s->config.clients)];
    uint64_t step_us = sim_fault_draw(s, s->config.ttl_max_us);
    sim_clock_step(&client->clock, s->now_us, -(int64_t)step_us);
    sim_trace_fault(s, SIM_NODES_MAX + client->index, s->now_us, "its clock -%llu us",
                    (ull)step_us);
    break;
  }
  case SIM_BREACH_REPLY_LOST:
    node->swallowed = 1;
    break;
  case SIM_BREACH_COUNTERS_LOST:
    memset(node->data.counters, 0, sizeof node->data.counters);
    sim_trace_fault(s, index, s->now_us, "its counters are lost");
    break;
  default:
    sim_fault_lose_key(s, node, index);
    break;
  }
}

/* ------------------------------------------------------------------------------------- together */

void sim_fault_event(sim *s) {
  uint64_t drawn = sim_fault_draw(s, s->config.weight_sum);
  unsigned kind = 0;
  if (s->phase != SIM_PHASE_SAFETY) {
    return;
  }
  bool copies = s->breach == SIM_BREACH_FAILOVER || s->config.guard;
  for (unsigned i = 0; copies && i < s->config.nodes; i++) {
    if (sim_below(s->config.guard ? &s->random_watch : &s->random_fault, 2) == 0) {
      s->nodes[i].copy = s->nodes[i].data;
    }
  }
  while (drawn >= s->config.weights[kind]) {
    drawn -= s->config.weights[kind++];
  }
  switch (sim_config_fault_group(kind)) {
  case SIM_FAULTS_NODE:
    sim_fault_node(s, (sim_fault)kind);
    break;
  case SIM_FAULTS_NETWORK:
    sim_fault_network(s, (sim_fault)kind);
    break;
  case SIM_FAULTS_CLIENT:
    sim_fault_client(s, (sim_fault)kind);
    break;
  case SIM_FAULTS_ASSUMPTION:
    sim_fault_assumption(s);
    break;
  case SIM_FAULTS_GUARD:
    sim_guard_fault(s, (sim_fault)kind);
    break;
  case SIM_FAULTS_NOTIFICATIONS:
  default:
    sim_waiting_fault(s);
    break;
  }
  sim_fault_next(s);
}

/* When the last of the bytes arrives that are on the way now. */
static uint64_t sim_fault_calm(const sim *s) {
  uint64_t calm_us = s->now_us;
  for (unsigned i = 0; i < s->config.clients * s->config.nodes; i++) {
    const sim_link *link = &s->links[i / s->config.nodes][i % s->config.nodes];
    calm_us = sim_fault_later(calm_us, link->requests_blocked_us + 1000);
    calm_us = sim_fault_later(calm_us, link->replies_blocked_us + 1000);
  }
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
    const sim_connection *connection = &s->connections[i];
    if (connection->used && connection->client_open) {
      calm_us = sim_fault_later(calm_us, connection->to_node.last_us);
      calm_us = sim_fault_later(calm_us, connection->to_client.last_us);
    }
  }
  return calm_us;
}

/* Repairs all faults. Bytes in flight stay in flight. */
void sim_fault_stop(sim *s) {
  for (unsigned i = 0; i < s->config.nodes; i++) {
    sim_node *node = &s->nodes[i];
    if (node->back_us > s->now_us) { /* Too soon to be back empty. */
      node->back_us = s->now_us;
      node->restart_empty = node->restart_empty && s->breach != SIM_BREACH_NONE;
    }
    node->stopped_until_us = 0;
    node->loading_until_us = node->slow_until_us = node->error_until_us = 0;
    node->odd_replies = node->false_errors = node->swallowed = 0;
    sim_queue_add(s, s->now_us, SIM_EVENT_NODE, i, 0, 0);
  }
  sim_guard_stop(s);
  sim_waiting_stop(s);
  s->calm_us = sim_fault_calm(s);
  memset(s->links, 0, sizeof s->links);
}
