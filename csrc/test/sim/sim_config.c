/*
 * The parameters of a run: drawn from its seed, so that some faults are off in some runs, and every
 * mixture occurs.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "base/rl_validity.h"
#include "sim.h"
#include "sim_hold.h"
#include "sim_native.h"
#include "sim_term.h"

#define SIM_CONFIG_OFTEN 40 /* weight of a frequent fault; others have at most 24 */

/* Any bytes may be a name. The first four are the prefix of some of the clients. */
static const char sim_resource_0[] = "app:orders 42";
static const char sim_resource_1[] = "app:\0\r\n%s$3\r\n\xc3\xa9*";

const char *sim_resource(unsigned resource, size_t *length) {
  if (length != NULL) {
    *length = (resource == 0 ? sizeof sim_resource_0 : sizeof sim_resource_1) - 1;
  }
  return resource == 0 ? sim_resource_0 : sim_resource_1;
}

const char *sim_slot(unsigned resource, size_t *length) {
  *length = sizeof SIM_SEMAPHORE "/1" - 1;
  return resource == 0 ? SIM_SEMAPHORE "/1" : SIM_SEMAPHORE "/2";
}

redlock_duration sim_config_hold_us(const sim_config *config) {
  return config->hold_us == 0 ? 0 : rl_validity_ttl_for(config->hold_us, config->drift_factor);
}

uint64_t sim_config_life_us(const sim_config *config) {
  uint64_t hold_us = sim_config_hold_us(config);
  uint64_t life_us = config->ttl_max_us > hold_us ? config->ttl_max_us : hold_us;
  return (life_us + config->lock_delay_us) * 13 / 10 + 10000;
}

static uint64_t sim_config_ttl(sim_random *random) {
  uint64_t ttl_ms;
  switch (sim_below(random, 4)) {
  case 0:
    ttl_ms = sim_between(random, 20, 60);
    break;
  case 1:
    ttl_ms = sim_between(random, 500, 2000);
    break;
  default:
    ttl_ms = sim_between(random, 60, 500);
    break;
  }
  return ttl_ms * 1000;
}

static void sim_config_draw_times(sim_config *config, sim_random *random) {
  static const double factors[] = {0.001, 0.01, 0.01, 0.05, 0.2};
  config->ttl_us[0] = sim_config_ttl(random);
  config->ttl_us[1] =
      sim_below(random, 2) == 0
          ? config->ttl_us[0]
          : sim_between(random, config->ttl_us[0] / 2000, config->ttl_us[0] / 500) * 1000;
  config->ttl_max_us =
      config->ttl_us[0] > config->ttl_us[1] ? config->ttl_us[0] : config->ttl_us[1];
  uint64_t ttl_us = config->ttl_us[0];
  config->drift_factor = factors[sim_below(random, sizeof factors / sizeof factors[0])];
  /* Clients and nodes share the drift that the factor allows: that is the bound of the theorem. */
  unsigned bound_ppm = (unsigned)(config->drift_factor * 1000000.0);
  config->client_ppm = (unsigned)sim_below(random, bound_ppm + 1);
  config->node_ppm = bound_ppm - config->client_ppm;
  if (sim_below(random, 3) == 0) {
    config->lock_delay_us = sim_between(random, 1, 2 * ttl_us / 1000) * 1000;
  }
  static const unsigned eighths[] = {0, 0, 2, 4, 8, 12, 16};
  config->node_timeout_us = ttl_us * eighths[sim_below(random, 7)] / 8;
  config->retry_count = (int)sim_below(random, 5) - 1;
  config->retry_delay_us = sim_below(random, ttl_us);
  config->retry_jitter_us = sim_below(random, config->retry_delay_us + 1000);
  config->wait_us = REDLOCK_NEVER;
  if (sim_below(random, 3) == 0) {
    config->wait_us = sim_below(random, 4) == 0 ? 0 : sim_below(random, 4 * ttl_us);
  }
}

static void sim_config_draw_network(sim_config *config, sim_random *random) {
  uint64_t ttl_us = config->ttl_us[0];
  switch (sim_below(random, 4)) {
  case 0:
    config->delay_from_us = 20;
    config->delay_to_us = 200;
    break;
  case 1:
    config->delay_from_us = 1;
    config->delay_to_us = ttl_us / 8;
    break;
  case 2:
    config->delay_from_us = ttl_us / 40;
    config->delay_to_us = ttl_us / 20;
    break;
  default:
    config->delay_from_us = 100;
    config->delay_to_us = ttl_us / 40 + 200;
    break;
  }
  static const unsigned tails[] = {0, 50, 100, 300, 1000};
  static const unsigned pieces[] = {0, 0, 1000, 5000};
  static const unsigned writes[] = {0, 0, 0, 1000};
  static const unsigned pauses[] = {0, 0, 5, 20, 60};
  config->tail = tails[sim_below(random, 5)];
  config->pieces = pieces[sim_below(random, 4)];
  config->partial_write = writes[sim_below(random, 4)];
  config->pause = pauses[sim_below(random, 5)];
  config->stale = pauses[sim_below(random, 5)];
}

sim_fault_group sim_config_fault_group(unsigned fault) {
#define SIM_FAULT_GROUP(fault, name, group) SIM_FAULTS_##group,
  static const sim_fault_group groups[] = {SIM_FAULTS(SIM_FAULT_GROUP)};
#undef SIM_FAULT_GROUP
  return groups[fault];
}

void sim_config_draw_weights(sim_config *config, sim_random *random, sim_fault_group from,
                             sim_fault_group to) {
  for (unsigned i = 0; i < SIM_FAULT_KINDS; i++) {
    sim_fault_group group = sim_config_fault_group(i);
    if (group >= from && group <= to) {
      config->weights[i] = sim_below(random, 2) == 0 ? 0 : (uint16_t)sim_between(random, 1, 8);
    }
  }
}

void sim_config_weigh(sim_config *config) {
  config->weight_sum = 0;
  for (unsigned i = 0; i < SIM_FAULT_KINDS; i++) {
    config->weight_sum += config->weights[i];
  }
  config->fault_every_us = config->weight_sum == 0 ? 0 : config->fault_every_us;
}

static void sim_config_draw_faults(sim *s, sim_config *config, sim_random *random) {
  static const uint64_t eighths[] = {2, 4, 8, 16, 40, 100};
  config->fault_every_us =
      sim_below(random, 12) == 0 ? 0 : config->ttl_us[0] * eighths[sim_below(random, 6)] / 8;
  sim_config_draw_weights(config, random, SIM_FAULTS_NODE, SIM_FAULTS_CLIENT);
  if (config->lock_delay_us < 2000) {
    config->weights[SIM_FAULT_STEP_FORWARD] = 0;
  }
  /* Connections break more often than machines do. */
  config->weights[SIM_FAULT_BREAK] = (uint16_t)(config->weights[SIM_FAULT_BREAK] * 3);
  for (unsigned i = 0; i < 3; i++) {
    config->break_weights[i] = (unsigned)sim_below(random, 4);
  }
  if (s->often >= 0) {
    config->weights[s->often] = SIM_CONFIG_OFTEN;
  }
  bool at_times = s->breach == SIM_BREACH_RESTART_EMPTY || s->breach == SIM_BREACH_STEP_FORWARD ||
                  s->breach == SIM_BREACH_EVICTION || s->breach == SIM_BREACH_FLUSH ||
                  s->breach == SIM_BREACH_FAILOVER || s->breach == SIM_BREACH_FOREIGN_DELETE ||
                  s->breach == SIM_BREACH_WALL_CLOCK || s->breach == SIM_BREACH_REPLY_LOST ||
                  s->breach == SIM_BREACH_COUNTERS_LOST;
  if (at_times) {
    config->weights[SIM_FAULT_ASSUMPTION] = 10;
  }
  if ((at_times || s->often >= 0) && config->fault_every_us == 0) {
    config->fault_every_us = config->ttl_us[0];
  }
  sim_config_weigh(config);
}

/* Locks with owners, and operators. */
static void sim_config_draw_owners(sim *s, sim_random *random) {
  sim_config *config = &s->config;
  unsigned handovers = config->handovers, fire_and_forget = config->fire_and_forget,
           supplied = config->supplied;
  if (sim_below(random, 4) == 0) {
    config->reentrant = (unsigned)sim_between(random, 1, 15);
    config->handovers = config->fire_and_forget = config->supplied = 0;
    config->locks = (unsigned)sim_between(random, 2, SIM_LOCKS_MAX);
  }
  if (sim_below(random, 3) == 0 &&
      (s->breach == SIM_BREACH_NONE || s->breach == SIM_BREACH_FORCE_SPREADS)) {
    config->operators = (unsigned)sim_between(random, 1, 15);
    config->forces = sim_below(random, 3) == 0 ? 0 : (unsigned)sim_between(random, 1000, 9000);
  }
  if (sim_below(random, 2) == 0 && s->breach == SIM_BREACH_NONE) {
    config->handovers = handovers; /* In half of the runs with owners, too. */
    config->fire_and_forget = fire_and_forget;
    config->supplied = supplied;
  }
}

/*
 * Fencing tokens. Counters may be lost only where the clocks of the nodes are within 2 s of the
 * true time. Then a node that has lost its counters is back 6 s later (docs/safety.md).
 */
static void sim_config_draw_fences(sim *s, sim_random *random) {
  static const unsigned chances[] = {10000, 5000, 5000, 5000};
  sim_config *config = &s->config;
  if (sim_below(random, 3) != 0 && !s->fenced && s->breach != SIM_BREACH_COUNTERS_LOST) {
    return;
  }
  config->fenced = chances[sim_below(random, 4)];
  config->close_clocks = sim_below(random, 2) == 0;
  config->close_us = SIM_CLOSE_US;
  if (!config->close_clocks) {
    config->weights[SIM_FAULT_CRASH_EMPTY] = 0;
    sim_config_weigh(config);
  } else {
    config->client_ppm = config->client_ppm < SIM_CLOSE_PPM ? config->client_ppm : SIM_CLOSE_PPM;
    config->node_ppm = config->node_ppm < SIM_CLOSE_PPM ? config->node_ppm : SIM_CLOSE_PPM;
  }
}

unsigned sim_config_quorum(const sim_config *config, unsigned nodes) {
  return config->quorum != 0 ? config->quorum : nodes / 2 + 1;
}

/* Not where nodes may stay in quarantine for good: all may be needed. */
static void sim_config_draw_quorum(sim *s, sim_random *random) {
  sim_config *config = &s->config;
  bool drawn = sim_below(random, 6) == 0;
  uint64_t quorum = sim_between(random, config->nodes / 2 + 1, config->nodes);
  if (drawn && s->breach == SIM_BREACH_NONE && config->weights[SIM_FAULT_WRONG_CLOCK] == 0 &&
      config->weights[SIM_FAULT_FAR_STEP] == 0) {
    config->quorum = (unsigned)quorum;
  }
}

/*
 * Needs a quorum without the second vote of the server that is two nodes. Excludes a guard, because
 * the clock of that server would count twice.
 */
static void sim_config_draw_twins(sim *s, sim_random *random) {
  sim_config *config = &s->config;
  bool drawn = sim_below(random, 6) == 0;
  config->twins = drawn && s->breach == SIM_BREACH_NONE && config->quorum == 0 &&
                  config->nodes >= 3 && !config->guard;
}

/* All locks are the same semaphore. Its slots are the two resources. */
static void sim_config_draw_permits(sim *s) {
  sim_config *config = &s->config;
  if (s->permits) {
    config->permits = SIM_PERMITS;
    config->resources = SIM_PERMITS;
    config->several = config->supplied = config->operators = config->forces = 0;
  }
}

void sim_config_draw(sim *s, sim_random *random) {
  static const unsigned nodes[] = {1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7};
  static const unsigned chances[] = {0, 300, 1000, 3000};
  sim_config *config = &s->config;
  memset(config, 0, sizeof *config);
  config->nodes = nodes[sim_below(random, sizeof nodes / sizeof nodes[0])];
  config->nodes = s->nodes_wanted > 0 ? s->nodes_wanted : config->nodes;
  config->clients = (unsigned)sim_between(random, 2, SIM_CLIENTS_MAX);
  config->locks = sim_below(random, 3) == 0 ? 2 : 1;
  config->resources = config->clients * config->locks > 3 && sim_below(random, 2) == 0 ? 2 : 1;
  config->databases = sim_below(random, 4) == 0 || s->breach == SIM_BREACH_DATABASES;
  config->passwords = sim_below(random, 4) == 0;
  sim_config_draw_times(config, random);
  sim_config_draw_network(config, random);
  sim_config_draw_faults(s, config, random);
  config->think_us = config->ttl_us[0] / (sim_below(random, 2) == 0 ? 8 : 1);
  config->extends = (unsigned)sim_below(random, 6);
  config->cancels = chances[sim_below(random, 4)];
  config->frees = chances[sim_below(random, 4)];
  config->events = sim_between(random, 600, 2600);
  config->length_us = 200 * config->ttl_us[0] + 5000000;
  config->blocking = sim_below(random, 3) == 0 ? (unsigned)sim_below(random, 16) : 0;
  config->window = sim_below(random, 3) == 0 ? (unsigned)sim_between(random, 1, 3) : 0;
  config->auto_extending = sim_below(random, 3) == 0 ? (unsigned)sim_between(random, 1, 15) : 0;
  config->extend_every_us =
      sim_below(random, 3) == 0 ? sim_between(random, 1, config->ttl_us[0]) : 0;
  config->max_hold_us = sim_below(random, 3) == 0
                            ? sim_between(random, config->ttl_us[0] / 2, 6 * config->ttl_us[0])
                            : 0;
  if (sim_below(random, 4) == 0) {
    config->several = (unsigned)sim_between(random, 1, 15);
    config->resources = 2;
  }
  config->handovers = sim_below(random, 3) == 0 ? (unsigned)sim_between(random, 500, 5000) : 0;
  config->fire_and_forget =
      sim_below(random, 3) == 0 ? (unsigned)sim_between(random, 1000, 9000) : 0;
  config->supplied = sim_below(random, 4) == 0 ? (unsigned)sim_between(random, 1000, 9000) : 0;
  sim_config_draw_owners(s, random);
  sim_config_draw_fences(s, random);
  sim_guard_draw(s, random);
  sim_config_draw_quorum(s, random);
  sim_waiting_draw(s, random);
  sim_config_draw_twins(s, random);
  sim_term_draw(s);
  sim_config_draw_permits(s);
  sim_hold_draw(s);
  sim_native_draw(s, random);
  sim_mix_draw(s);
}

unsigned sim_config_server(const sim_config *config, unsigned node) {
  return config->twins && node == config->nodes - 1 ? 0 : node;
}
