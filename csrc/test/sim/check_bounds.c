/*
 * Memory and queues are bounded, and when all is quiet nothing is left in them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check.h"
#include "lease/rl_attach.h"

#define CHECK_BOUNDS_BEHIND_US 5000
#define CHECK_BOUNDS_OWED 4096 /* far more than a few locks need, far below the core's own limit */

static void check_bounds_killed(sim *s, const sim_client *client) {
  const rl_core *core = &client->core;
  size_t outstanding = 0, held = 0, busy = 0, leases = 0;
  for (unsigned i = 0; i < client->nodes; i++) {
    const rl_node *node = core->nodes[i];
    outstanding += node->link.outstanding_count;
    if (node->link.outstanding_count > CHECK_BOUNDS_OWED ||
        node->link.outstanding_count != client->sockets[i].sent_count) {
      sim_violation(s, "bounds", "client %u: node %u has %u replies outstanding, %zu were sent",
                    client->index, i, node->link.outstanding_count, client->sockets[i].sent_count);
    }
    const sim_socket *socket = &client->sockets[i];
    if (socket->up && socket->sent_count > 0 && s->breach == SIM_BREACH_NONE &&
        client->advance_us > socket->heard_us + RL_LINK_SILENCE_US) {
      sim_violation(
          s, "bounds",
          "client %u: node %u has been silent for %llu us with replies outstanding, and is kept",
          client->index, i, (ull)(client->advance_us - socket->heard_us));
    }
    if (rl_buffer_length(&node->link.output) > RL_LINK_OUTPUT_MAX) {
      sim_violation(s, "bounds", "client %u: %zu bytes wait for node %u", client->index,
                    rl_buffer_length(&node->link.output), i);
    }
  }
  for (unsigned i = 0; i < s->config.locks; i++) {
    const rl_lock *lock = client->locks[i].lock;
    held += lock == NULL ? 0 : 4 + (size_t)(rl_lock_attach(lock) != NULL);
    busy += lock != NULL && rl_lock_is_in_flight(lock);
    leases += lock != NULL && lock->lease != NULL;
  }
  if (core->busy_count != busy || core->lease_count != leases) {
    sim_violation(s, "bounds", "client %u counts %zu operations and %zu leases, has %zu and %zu",
                  client->index, core->busy_count, core->lease_count, busy, leases);
  }
  if (core->attempts.live > outstanding + core->releases->count + held) {
    sim_violation(s, "bounds", "client %u: %zu attempts are kept for %zu replies and %zu releases",
                  client->index, core->attempts.live, outstanding, core->releases->count);
  }
}

static void check_bounds_turned(sim *s, sim_client *client) {
  check_bounds_killed(s, client);
}

/*
 * A node that has not answered for longer than an attempt may last would be too late. The commands
 * of an acquire would only pile up there.
 */
static void check_bounds_sent(sim *s, const sim_client *client, unsigned node,
                              const sim_sent *sent) {
  const sim_socket *socket = &client->sockets[node];
  const sim_lock *lock = &client->locks[s->tokens[sent->token].lock];
  uint64_t patience_us = check_budget_round_us(lock);
  if (sent->kind != SIM_COMMAND_SET || s->tokens[sent->token].granted) {
    return;
  }
  patience_us = patience_us > CHECK_BOUNDS_BEHIND_US ? patience_us : CHECK_BOUNDS_BEHIND_US;
  if (socket->sent_count > 0 &&
      sent->at_us > socket->sent[socket->sent_head].at_us + patience_us + CHECK_BOUNDS_BEHIND_US) {
    sim_violation(s, "bounds", "client %u asks node %u, which has not answered for %llu us",
                  client->index, node, (ull)(sent->at_us - socket->sent[socket->sent_head].at_us));
  }
}

static void check_bounds_rest(sim *s, const sim_client *client) {
  const rl_core *core = &client->core;
  size_t held = 0;
  for (unsigned i = 0; i < s->config.locks; i++) {
    const rl_lock *lock = client->locks[i].lock;
    held += lock == NULL
                ? 0
                : (size_t)(lock->lease != NULL) + (lock->unreleased != NULL) +
                      (lock->attempt != NULL) + (lock->failed != NULL) +
                      (rl_lock_attach(lock) != NULL); /* An attach was refused, and not tried. */
  }
  if (core->attempts.live != held || core->releases->count != 0) {
    sim_violation(s, "bounds", "client %u is quiet, but keeps %zu attempts and %zu releases",
                  client->index, core->attempts.live, core->releases->count);
  }
}

static void check_bounds_settled(sim *s) {
  for (unsigned i = 0; i < s->config.clients; i++) {
    check_bounds_rest(s, &s->clients[i]);
  }
}

const checker check_bounds = {
    .name = "bounds",
    .turned = check_bounds_turned,
    .killed = check_bounds_killed,
    .sent = check_bounds_sent,
    .settled = check_bounds_settled,
};
