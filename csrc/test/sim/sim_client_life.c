/*
 * The start and the end of a client: by close, SIGKILL or fork.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sim.h"
#include "sim_client.h"
#include "sim_term.h"
#include "sim_trace.h"

static void sim_client_draw_clock(sim *s, sim_client *client) {
  int64_t bound = (int64_t)s->config.client_ppm;
  memset(&client->clock, 0, sizeof client->clock);
  client->clock.true_us = s->now_us;
  client->clock.local_us = 1000000 + sim_below(&s->random_client, 1000000000u);
  switch (sim_below(&s->random_client, 4)) {
  case 0:
    client->clock.ppm = -bound;
    break;
  case 1:
    client->clock.ppm = bound;
    break;
  default:
    client->clock.ppm = (int64_t)sim_below(&s->random_client, (uint64_t)(2 * bound + 1)) - bound;
    break;
  }
  if (s->breach == SIM_BREACH_SLOW_CLIENT) {
    client->clock.ppm = -2 * (int64_t)(s->config.drift_factor * 1000000) - 150000;
  }
}

static void sim_client_add_node(sim *s, sim_client *client, unsigned node) {
  rl_address address;
  memset(&address, 0, sizeof address);
  (void)snprintf(address.name, sizeof address.name, "node-%u", node);
  (void)snprintf(address.host, sizeof address.host, "node-%u", node);
  address.port = RL_ADDRESS_PORT;
  address.db = s->config.databases && !(s->breach == SIM_BREACH_DATABASES && client->index % 2 == 1)
                   ? SIM_DATABASE
                   : 0;
  if (s->config.passwords) {
    address.has_password = 1;
    address.has_username = (int)(node % 2);
    (void)snprintf(address.username, sizeof address.username, "lock");
    (void)snprintf(address.password, sizeof address.password, "secret");
    address.password_length = strlen(address.password);
  }
  if (rl_core_add(&client->core, &address) != REDLOCK_OK) {
    abort();
  }
  client->core.nodes[client->core.node_count - 1]->link.skips_native = !s->config.native;
}

/* Draws the label of a lock, or none, from the seed alone: runs are the same but for the bytes. */
static void sim_client_label(const sim *s, unsigned client, unsigned lock, rl_label *label) {
  static const char *const letters[] = {
      "a", "'", " ", "\xc3\xa9", "\xe5\xa4\x9c", "\xf0\x9f\x94\x92"};
  uint64_t random = (s->seed * SIM_CLIENTS_MAX + client) * SIM_LOCKS_MAX + lock + 1;
  char text[REDLOCK_LABEL_MAX + 8];
  random = (random ^ random >> 31) * 0x9e3779b97f4a7c15u;
  size_t limit = random >> 32 & 127, length = 0;
  for (unsigned i = 0; length < limit && limit <= REDLOCK_LABEL_MAX; i++) {
    random = (random ^ random >> 29) * 0x9e3779b97f4a7c15u;
    const char *letter = letters[(random >> 32) % (sizeof letters / sizeof letters[0])];
    if (length + strlen(letter) > limit) {
      letter = "x";
    }
    memcpy(text + length, letter, strlen(letter));
    length += strlen(letter);
  }
  rl_label_set(label, text, length);
}

static void sim_client_add_lock(sim *s, sim_client *client, unsigned index) {
  sim_lock *own = &client->locks[index];
  rl_options options;
  size_t length;
  memset(own, 0, sizeof *own);
  own->resource = s->config.resources > 1 ? (unsigned)sim_below(&s->random_client, 2) : 0;
  own->lease = own->attempt = own->drawn = own->forced = own->found = SIM_NO_TOKEN;
  sim_mix_resources(s, client, own);
  const char *name = sim_resource(own->resource, &length);
  if (s->config.permits > 0) {
    own->resource = 0;
    name = SIM_SEMAPHORE;
    length = strlen(name);
  }
  own->both = own->both || ((s->config.several >> client->index & 1) != 0 &&
                            sim_below(&s->random_client, 3) > 0);
  own->named = own->resource;
  own->named_both = own->both;
  rl_options_default(&options);
  options.ttl_us = s->config.ttl_us[0];
  options.drift_factor = s->config.drift_factor;
  options.lock_delay_us = s->config.lock_delay_us;
  options.permits = (int)s->config.permits;
  if (s->labels) {
    sim_client_label(s, client->index, index, &options.label);
  }
  size_t prefix = client->core.prefix_length;
  redlock_resource resources[2] = {{name + prefix, length - prefix}, {NULL, 0}};
  name = sim_resource(1 - own->resource, &length);
  resources[1] = (redlock_resource){name + prefix, length - prefix};
  own->lock = rl_lock_new_many(&client->core, resources, own->both ? 2 : 1, &options);
  if (own->lock == NULL) {
    abort();
  }
  own->options = options;
  own->lock->data = own;
  sim_application_schedule(s, own, sim_below(&s->random_client, s->config.think_us + 1));
}

void sim_client_start(sim *s, unsigned index) {
  sim_client *client = &s->clients[index];
  sim_sent *rings[SIM_SOCKETS_MAX];
  size_t capacities[SIM_SOCKETS_MAX];
  uint32_t generation = client->generation;
  for (unsigned i = 0; i < SIM_SOCKETS_MAX; i++) {
    rings[i] = client->sockets[i].sent;
    capacities[i] = client->sockets[i].sent_capacity;
  }
  memset(client, 0, sizeof *client);
  for (unsigned i = 0; i < SIM_SOCKETS_MAX; i++) {
    client->sockets[i].sent = rings[i];
    client->sockets[i].sent_capacity = capacities[i];
    client->sockets[i].connection = SIM_NO_CONNECTION;
  }
  client->generation = generation;
  client->alive = true;
  client->index = index;
  client->wake_us = client->dies_us = SIM_NEVER;
  client->nodes = s->config.nodes;
  if (s->breach == SIM_BREACH_NODE_LISTS) {
    /* Some know all nodes, the rest only the last half. */
    client->nodes = index % 2 == 0 || s->config.nodes == 1 ? s->config.nodes : s->config.nodes / 2;
    client->base = s->config.nodes - client->nodes;
    s->breached = true;
  }
  sim_client_draw_clock(s, client);
  const char *name = sim_resource(0, NULL);
  unsigned prefixed = s->config.guard ? (unsigned)(s->seed % 2) : index % 2;
  if (rl_core_init(&client->core, name, prefixed == 0 ? 4 : 0) != REDLOCK_OK) {
    abort();
  }
  if (s->config.window != 0) {
    client->core.pacer.in_flight_limit = s->config.window;
    client->core.pacer.command_us = REDLOCK_SECONDS;
  }
  client->core.quorum = s->config.quorum;
  if (s->config.guard) {
    sim_guard_open(s, client);
  }
  if (s->config.notifications && rl_notify_open(&client->core) != REDLOCK_OK) {
    abort();
  }
  for (unsigned i = 0; i < client->nodes; i++) {
    sim_client_add_node(s, client, client->base + i);
  }
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_client_add_lock(s, client, i);
  }
  sim_client_wake(s, index, s->now_us);
}

void sim_client_close_socket(sim *s, sim_client *client, unsigned node) {
  sim_socket *socket = &client->sockets[node];
  if (socket->connection != SIM_NO_CONNECTION) {
    sim_network_close(s, socket->connection);
  }
  socket->connection = SIM_NO_CONNECTION;
  socket->open = socket->connected = socket->refused = socket->reset = socket->odd = false;
}

static void sim_client_hang_up(sim *s, sim_client *client) {
  for (unsigned i = 0; i < SIM_SOCKETS_MAX; i++) {
    sim_tap_dropped(s, client, i);
    sim_client_close_socket(s, client, i);
  }
}

/* The process is gone, and its clock with it: no client will release its keys. */
static void sim_client_abandon(sim *s, const sim_client *client) {
  s->over[client->index].count = 0;
  for (uint32_t i = 0; i < s->token_count; i++) {
    if (s->tokens[i].client == client->index) {
      s->tokens[i].abandoned = true;
      s->tokens[i].live = false;
    }
  }
}

void sim_client_kill(sim *s, unsigned index) {
  sim_client *client = &s->clients[index];
  if (!client->alive) {
    return;
  }
  uint64_t now_us = sim_client_clock(s, client);
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *own = &client->locks[i];
    if (own->lock != NULL) {
      if (!s->failed) { /* The picture of a violation shows the leases as they were. */
        sim_trace_lease(s, index, i, own->resource, SIM_NO_TOKEN, s->now_us);
      }
      rl_lock_free(own->lock, now_us);
      own->lock = NULL;
    }
  }
  sim_tap_output(s, client);
  check_killed(s, client);
  if (!s->failed) { /* A core that is wrong may not be able to free itself. */
    rl_core_free(&client->core);
  }
  sim_client_hang_up(s, client);
  sim_client_abandon(s, client);
  client->alive = false;
  client->wake_us = SIM_NEVER;
  client->generation++;
}

void sim_client_close(sim *s, unsigned index, uint64_t within_us) {
  sim_client *client = &s->clients[index];
  client->closing = true;
  client->close_by_us = s->now_us + within_us;
  client->reading_us = sim_client_clock(s, client);
  rl_core_close(&client->core, client->reading_us);
  sim_client_after_call(s, client);
  for (unsigned i = 0; i < s->config.locks; i++) {
    client->locks[i].due_us = SIM_NEVER;
  }
  sim_client_wake(s, index, s->now_us);
}

void sim_client_renew_lock(sim *s, unsigned index, unsigned which) {
  sim_client *client = &s->clients[index];
  sim_lock *own = &client->locks[which];
  sim_client_over(s, client, own->attempt);
  rl_lock_free(own->lock, client->reading_us);
  own->lock = NULL;
  sim_client_moves(s, client);
  if (own->lease != SIM_NO_TOKEN) {
    check_stats_lease_ended(client, NULL, own->deadline_us);
  }
  sim_client_over(s, client, own->lease);
  sim_trace_lease(s, index, which, own->resource, SIM_NO_TOKEN, s->now_us);
  sim_client_add_lock(s, client, which);
}

/* As a forked child would: everything is dropped, nothing is sent. */
void sim_client_fork(sim *s, unsigned index) {
  sim_client *client = &s->clients[index];
  rl_core_reset(&client->core);
  rl_core_reset_stats(&client->core);
  sim_client_hang_up(s, client);
  sim_client_abandon(s, client);
  client->reading_us = sim_client_clock(s, client);
  sim_client_after_call(s, client);
  memset(&client->account, 0, sizeof client->account); /* A child begins at zero. */
  for (unsigned i = 0; i < s->config.locks; i++) {
    rl_list_remove(&client->locks[i].lock->queue);
    client->locks[i].state = SIM_APPLICATION_IDLE;
    client->locks[i].inside = 0;
    sim_term_forget(&client->locks[i]);
    sim_application_schedule(s, &client->locks[i],
                             sim_below(&s->random_client, s->config.think_us));
  }
  client->in_turn = false;
  client->has_reading = false;
  sim_client_wake(s, index, s->now_us + 1);
}
