/*
 * The guard: parameters of a run with one, the first lineage records, and nodes that lose data.
 *
 * SPDX-License-Identifier: MIT
 *
 * Without a guard a node that loses its keys stays away for longer than they live. With one it is
 * back at once, or never gone. A guard does not protect from a clock that is stepped forward by
 * more than lock_delay, which ends keys unnoticed: at most as many as the margin of their leases
 * tolerates (docs/safety.md).
 */
#include <stdlib.h>
#include <string.h>

#include "base/rl_sha1.h"
#include "lease/rl_guard_effects.h"
#include "node/rl_guard.h"
#include "sim.h"
#include "sim_key.h"
#include "sim_trace.h"
#include "sim_watch.h"

#define SIM_GUARD_CLOSE_US 700000  /* clocks are so near to the true time, unless they are wrong */
#define SIM_GUARD_WRONG_US 5000000 /* and those that are wrong are off by that at least */
#define SIM_GUARD_PPM 1000
#define SIM_GUARD_LONG_US 2000000 /* a ttl that makes a long run */
#define SIM_GUARD_LONG_PPM 100
#define SIM_GUARD_QUARANTINE_MIN_US 6000000u
#define SIM_GUARD_NOTICE_US 1000000u /* a quarantine begins so much later at most, as a rule */
#define SIM_GUARD_MOMENT_MAX_US 10000000u

static uint64_t sim_guard_below(sim *s, uint64_t below) {
  return sim_below(&s->random_watch, below);
}

uint64_t sim_guard_quarantine_us(const sim *s) {
  uint64_t max_us = s->config.guard_max_ttl_us, whole_us = max_us + max_us / 10 + 2002000;
  return !s->config.guard                         ? 0
         : whole_us < SIM_GUARD_QUARANTINE_MIN_US ? SIM_GUARD_QUARANTINE_MIN_US
                                                  : whole_us;
}

/* ------------------------------------------------------------------------- what a run is like */

static uint64_t sim_guard_scaled(uint64_t us, uint64_t to, uint64_t from) {
  return us == REDLOCK_NEVER ? us : us * to / from;
}

/*
 * Stretches all times: a quarantine is longer than hundreds of leases of some 10 ms. Some ttl
 * exceed the shortest quarantine.
 */
static void sim_guard_stretch(sim_config *config, sim_random *random) {
  uint64_t from_ms = config->ttl_us[0] / 1000, to_ms = sim_between(random, 300, 2000);
  if (sim_below(random, 4) == 0) {
    to_ms = sim_between(random, 5500, 9000);
  } else if (to_ms < from_ms) {
    return;
  }
  for (unsigned i = 0; i < 2; i++) {
    config->ttl_us[i] = config->ttl_us[i] / 1000 * to_ms / from_ms * 1000;
  }
  config->ttl_max_us =
      config->ttl_us[0] > config->ttl_us[1] ? config->ttl_us[0] : config->ttl_us[1];
  config->lock_delay_us = config->lock_delay_us / 1000 * to_ms / from_ms * 1000;
  config->node_timeout_us = sim_guard_scaled(config->node_timeout_us, to_ms, from_ms);
  config->retry_delay_us = sim_guard_scaled(config->retry_delay_us, to_ms, from_ms);
  config->retry_jitter_us = sim_guard_scaled(config->retry_jitter_us, to_ms, from_ms);
  config->wait_us = sim_guard_scaled(config->wait_us, to_ms, from_ms);
  config->think_us = sim_guard_scaled(config->think_us, to_ms, from_ms);
  config->extend_every_us = sim_guard_scaled(config->extend_every_us, to_ms, from_ms);
  config->max_hold_us = sim_guard_scaled(config->max_hold_us, to_ms, from_ms);
  config->fault_every_us = sim_guard_scaled(config->fault_every_us, to_ms, from_ms);
  config->length_us = 200 * config->ttl_us[0] + 5000000;
}

static void sim_guard_draw_faults(sim *s, sim_random *random) {
  sim_config *config = &s->config;
  config->weights[SIM_FAULT_CRASH_EMPTY] = 0;
  if (s->breach == SIM_BREACH_NONE) {
    sim_config_draw_weights(config, random, SIM_FAULTS_GUARD, SIM_FAULTS_GUARD);
  }
  if (config->lock_delay_us < 2000) {
    config->weights[SIM_FAULT_STEP_FORWARD] = 0;
  }
  if (s->breach == SIM_BREACH_NODE_LISTS) {
    /*
     * The first client makes a record that must not be made again; and any list of nodes attaches a
     * lease.
     */
    config->handovers = 0;
    config->weights[SIM_FAULT_CRASH_WITH_DATA] = 0;
    config->weights[SIM_FAULT_STEP_BACK] = config->weights[SIM_FAULT_STEP_FORWARD] = 0;
  }
  sim_config_weigh(config);
}

void sim_guard_draw(sim *s, sim_random *random) {
  sim_config *config = &s->config;
  bool drawn = sim_below(random, 3) == 0;
  if (!s->guarded && (!drawn || s->breach != SIM_BREACH_NONE)) {
    return;
  }
  unsigned most_ppm = sim_below(random, 4) == 0 ? 0 : SIM_GUARD_PPM;
  config->guard = true;
  sim_guard_stretch(config, random);
  if (config->ttl_us[0] > SIM_GUARD_LONG_US && most_ppm > SIM_GUARD_LONG_PPM) {
    most_ppm = SIM_GUARD_LONG_PPM; /* Else the clocks are seconds apart when the run ends. */
  }
  config->guard_max_ttl_us = config->ttl_max_us + config->lock_delay_us;
  if (sim_below(random, 4) == 0) {
    config->guard_max_ttl_us += sim_below(random, config->guard_max_ttl_us);
  }
  config->close_clocks = true;
  config->close_us = SIM_GUARD_CLOSE_US;
  config->client_ppm = config->client_ppm < most_ppm ? config->client_ppm : most_ppm;
  config->node_ppm = config->node_ppm < most_ppm ? config->node_ppm : most_ppm;
  config->forgetful = sim_below(random, 3) == 0 ? config->nodes
                      : config->nodes < 3       ? 1
                                                : (config->nodes - 1) / 2;
  config->ready = sim_below(random, 4) != 0 || s->breach != SIM_BREACH_NONE;
  config->events *= 2;
  sim_guard_draw_faults(s, random);
}

void sim_guard_open(sim *s, sim_client *client) {
  if (rl_guard_open(&client->core.guards, s->config.guard_max_ttl_us, NULL) != REDLOCK_OK) {
    abort();
  }
}

void sim_guard_ready(sim *s) {
  rl_core *core = &s->clients[0].core;
  if (!s->config.guard || !s->config.ready) {
    return;
  }
  rl_guard_effects_prepare(core);
  for (unsigned i = 0; i < s->config.nodes; i++) {
    sim_node *node = &s->nodes[i];
    sim_record *record = &node->data.records[s->config.databases ? 1 : 0][0];
    uint64_t created_us = sim_watch_wall_us(s, i) - sim_guard_quarantine_us(s);
    int length = snprintf(record->text, sizeof record->text, "%s %llu ready %s", node->run_id,
                          (ull)created_us, core->guards->fingerprint);
    record->used = true;
    record->length = (uint16_t)length;
    rl_sha1(record->sha1, record->text, record->length);
    record->key_length =
        (uint8_t)snprintf(record->key, sizeof record->key, "%s", core->guards->key);
    node->copy = node->data;
  }
}

uint64_t sim_guard_moment(sim *s) {
  if (!s->config.guard || s->phase != SIM_PHASE_SAFETY || sim_guard_below(s, 4) != 0) {
    return 0;
  }
  unsigned index = (unsigned)sim_guard_below(s, s->config.nodes);
  const sim_node *node = &s->nodes[index];
  const sim_record *record = sim_watch_record(node, s->config.databases ? 1 : 0);
  uint64_t ends_us = record == NULL ? 0 : sim_watch_born_us(record) + sim_guard_quarantine_us(s);
  if (ends_us <= sim_watch_wall_us(s, index)) {
    return 0;
  }
  uint64_t in_us = sim_clock_when(&node->clock, ends_us) - s->now_us + sim_guard_below(s, 4000);
  return in_us > SIM_GUARD_MOMENT_MAX_US ? 0 : in_us > 3000 ? in_us - 3000 : 1;
}

/* -------------------------------------------------------------------------- what is forgotten */

/* The key ends |step_us| before its time, or now. */
static void sim_guard_lost(sim *s, unsigned index, const sim_key *key, uint64_t step_us) {
  if (key->token < s->token_count && !key->foreign_type) {
    s->tokens[key->token].forgotten |= 1u << index;
    s->tokens[key->token].due_ms[index] = key->expire_ms + step_us / 1000;
    s->forgotten++;
    sim_client_forced(s, key->token);
    sim_count(s, SIM_FORGOTTEN_KEY);
  }
}

void sim_guard_forgets(sim *s, unsigned index, const sim_data *data) {
  sim_node *node = &s->nodes[index];
  for (unsigned i = 0; i < SIM_DATABASES_MAX * SIM_RESOURCES_MAX && s->config.guard; i++) {
    unsigned database = i / SIM_RESOURCES_MAX, resource = i % SIM_RESOURCES_MAX;
    const sim_key *key = sim_key_find(s, index, database, resource);
    const sim_key *instead = data == NULL ? NULL : &data->keys[database][resource];
    bool same = key != NULL && instead != NULL && instead->used && instead->token == key->token;
    if (key != NULL && !(same && instead->expire_ms >= key->expire_ms)) {
      sim_guard_lost(s, index, key, 0);
    }
    if (instead != NULL && instead->used && !same && instead->token < s->token_count) {
      s->tokens[instead->token].orphaned |= 1u << index; /* It is back from the past. */
    }
  }
  if (data == NULL) {
    memset(&node->data, 0, sizeof node->data);
  } else {
    node->data = *data;
  }
  node->lost_us = s->now_us;
}

void sim_guard_steps(sim *s, unsigned index, uint64_t step_us) {
  for (unsigned i = 0; i < SIM_DATABASES_MAX * SIM_RESOURCES_MAX; i++) {
    const sim_key *key = sim_key_find(s, index, i / SIM_RESOURCES_MAX, i % SIM_RESOURCES_MAX);
    if (key != NULL && step_us > s->config.lock_delay_us) {
      sim_guard_lost(s, index, key, step_us);
    }
  }
}

static bool sim_guard_quarantined(const sim *s, unsigned index) {
  const sim_node *node = &s->nodes[index];
  return !node->up || node->wrong_clock ||
         (node->lost_us != 0 &&
          s->now_us < node->lost_us + sim_guard_quarantine_us(s) + SIM_GUARD_NOTICE_US);
}

bool sim_guard_may_forget(const sim *s, unsigned index) {
  unsigned count = 1;
  for (unsigned i = 0; i < s->config.nodes && s->config.guard; i++) {
    count += i != index && sim_guard_quarantined(s, i);
  }
  return !s->config.guard || count <= s->config.forgetful;
}

/*
 * Returns true if so many other nodes hold the key, until its time, that no client finds a majority
 * without this node.
 */
static bool sim_guard_holders(sim *s, unsigned index, unsigned resource, uint32_t token) {
  unsigned holders = 0;
  for (unsigned i = 0; i < s->config.nodes; i++) {
    bool forgets = (s->tokens[token].forgotten >> i & 1) != 0; /* Its clock was stepped. */
    holders += i != index && !forgets && sim_key_holds(s, i, resource, token) != 0;
  }
  return holders >= s->config.nodes - (s->config.nodes / 2 + 1) + 1;
}

bool sim_guard_bears(sim *s, unsigned index, uint64_t step_us) {
  const sim_node *node = &s->nodes[index];
  if (node->lost_us != 0 && !node->wrong_clock &&
      s->now_us < node->lost_us + sim_guard_quarantine_us(s) + SIM_GUARD_NOTICE_US) {
    return false; /* The quarantine would be shorter; that of a wrong clock has not begun. */
  }
  for (unsigned i = 0; i < SIM_DATABASES_MAX * SIM_RESOURCES_MAX && step_us > 0; i++) {
    unsigned resource = i % SIM_RESOURCES_MAX;
    const sim_key *key = sim_key_find(s, index, i / SIM_RESOURCES_MAX, resource);
    if (key == NULL || key->token >= s->token_count || s->tokens[key->token].over) {
      continue;
    }
    const sim_token *token = &s->tokens[key->token];
    const rl_lock *lock = s->clients[token->client].locks[token->lock].lock;
    bool moves = !token->abandoned && (lock == NULL || rl_lock_is_in_flight(lock));
    if (!token->granted || moves || !sim_guard_holders(s, index, resource, key->token)) {
      return false; /* The grant may yet be counted, and the key is gone. */
    }
  }
  return true;
}

/* ------------------------------------------------------------------------------------- faults */

static int64_t sim_guard_ahead(const sim *s, unsigned index) {
  return (int64_t)sim_watch_wall_us(s, index) - (int64_t)(SIM_NODE_EPOCH_US + s->now_us);
}

/*
 * Returns true if the clock may be wrong. Those of a majority must have been right all the time,
 * because clients use the last known times.
 */
static bool sim_guard_may_be_wrong(const sim *s, unsigned index) {
  unsigned wrong = 1;
  for (unsigned i = 0; i < s->config.nodes; i++) {
    wrong += i != index && s->nodes[i].was_wrong;
  }
  return s->config.fenced == 0 && wrong <= s->config.nodes - (s->config.nodes / 2 + 1);
}

static void sim_guard_step(sim *s, unsigned index, int64_t step_us) {
  sim_node *node = &s->nodes[index];
  if (step_us > 0) {
    sim_guard_steps(s, index, (uint64_t)step_us);
    node->stepped_us = s->now_us;
  } else {
    node->back_step_us += (uint64_t)-step_us;
  }
  sim_clock_step(&node->clock, s->now_us, step_us);
  sim_trace_fault(s, index, s->now_us, "wall clock by %lld us", (long long)step_us);
}

static void sim_guard_set_right(sim *s, unsigned index) {
  int64_t ahead_us = sim_guard_ahead(s, index);
  if (ahead_us < 0 && !sim_guard_bears(s, index, (uint64_t)-ahead_us)) {
    return;
  }
  sim_count(s, SIM_INJECTED_CLOCK_RIGHT);
  sim_guard_step(s, index, -ahead_us);
  s->nodes[index].wrong_clock = false;
  s->nodes[index].lost_us = s->now_us;
}

/* Steps the clock forward by more than lock_delay: a little, or far away from the other clocks. */
static void sim_guard_far_step(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  bool wrong = sim_guard_may_be_wrong(s, index) && sim_guard_below(s, 2) == 0;
  int64_t most_us = s->config.close_us - sim_guard_ahead(s, index);
  uint64_t step_us = wrong            ? SIM_GUARD_WRONG_US + sim_guard_below(s, 60000000)
                     : most_us > 1000 ? 1000 + sim_guard_below(s, (uint64_t)most_us - 999)
                                      : 0;
  if (node->wrong_clock || step_us == 0 || !sim_guard_bears(s, index, step_us)) {
    return;
  }
  sim_count(s, wrong ? SIM_INJECTED_CLOCK_AHEAD : SIM_INJECTED_FAR_STEP);
  sim_guard_step(s, index, (int64_t)step_us);
  node->wrong_clock = wrong;
  node->was_wrong = node->was_wrong || wrong;
  node->lost_us = s->now_us;
}

/* Restarts a machine without its keys and with a wrong clock, or sets the wrong clock right. */
static void sim_guard_wrong_clock(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  int64_t away_us = SIM_GUARD_WRONG_US + (int64_t)sim_guard_below(s, 60000000);
  if (node->wrong_clock) {
    sim_guard_set_right(s, index);
  } else if (node->up && sim_guard_may_be_wrong(s, index)) {
    bool behind = sim_guard_below(s, 4) != 0;
    sim_count(s, behind ? SIM_INJECTED_CLOCK_BEHIND : SIM_INJECTED_CLOCK_AHEAD);
    sim_guard_forgets(s, index, NULL);
    sim_node_crash(s, index, true, 1 + sim_guard_below(s, 2000));
    sim_guard_step(s, index, behind ? -away_us : away_us);
    node->wrong_clock = node->was_wrong = true;
  }
}

static void sim_guard_promote(sim *s, unsigned index) {
  sim_node *node = &s->nodes[index];
  uint64_t way = sim_guard_below(s, 3);
  bool proxy = way == 0, back = way == 1;
  sim_count(s, proxy  ? SIM_INJECTED_SWITCHED
               : back ? SIM_INJECTED_FAILED_BACK
                      : SIM_INJECTED_PROMOTED);
  sim_trace_fault(s, index, s->now_us, "a replica that is behind takes over%s",
                  proxy  ? ", behind a proxy"
                  : back ? ", and gives what it has back"
                         : "");
  sim_guard_forgets(s, index, &node->copy);
  if (back) {
    sim_watch_promote(s, index);
    return;
  }
  node->scripts = 0;
  node->epoch++;
  sim_watch_restart(s, index);
  if (!proxy) {
    sim_network_node_died(s, index, false);
    return;
  }
  for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) { /* The other server has no subscriptions. */
    s->connections[i].subscribed = s->connections[i].subscribed && s->connections[i].node != index;
  }
}

void sim_guard_fault(sim *s, sim_fault kind) {
  unsigned index = (unsigned)sim_guard_below(s, s->config.nodes);
  for (unsigned i = 0; i < s->config.nodes && kind == SIM_FAULT_WRONG_CLOCK; i++) {
    index = s->nodes[i].wrong_clock && sim_guard_below(s, 2) == 0 ? i : index;
  }
  sim_node *node = &s->nodes[index];
  if (!node->up || (!node->wrong_clock && !sim_guard_may_forget(s, index))) {
    return;
  }
  switch (kind) {
  case SIM_FAULT_RESTART_EMPTY:
    sim_count(s, SIM_INJECTED_RESTART_EMPTY);
    sim_trace_fault(s, index, s->now_us, "restarted at once, empty");
    sim_node_crash(s, index, true, 1 + sim_guard_below(s, 2000));
    break;
  case SIM_FAULT_FLUSH:
    sim_count(s, SIM_INJECTED_FLUSH);
    sim_trace_fault(s, index, s->now_us, "FLUSHALL");
    sim_guard_forgets(s, index, NULL);
    break;
  case SIM_FAULT_PROMOTE:
    sim_guard_promote(s, index);
    break;
  case SIM_FAULT_RESTORE:
    sim_count(s, SIM_INJECTED_RESTORED);
    sim_trace_fault(s, index, s->now_us, "restarted with an older copy");
    sim_guard_forgets(s, index, &node->copy);
    sim_node_crash(s, index, false, 1 + sim_guard_below(s, 2000));
    break;
  case SIM_FAULT_FAR_STEP:
    sim_guard_far_step(s, index);
    break;
  default:
    sim_guard_wrong_clock(s, index);
    break;
  }
}

void sim_guard_stop(sim *s) {
  for (unsigned i = 0; i < s->config.nodes && s->config.guard; i++) {
    if (s->nodes[i].wrong_clock) {
      sim_guard_set_right(s, i);
    }
  }
}
