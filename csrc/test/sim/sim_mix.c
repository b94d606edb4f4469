/*
 * A mix of all kinds of waiters, without faults: each lock acquires again after each release.
 *
 * SPDX-License-Identifier: MIT
 *
 * Four clients have three locks each: waiters of one resource, of the other and of both, locks with
 * owners, with caller-supplied tokens, and in half of the runs a lock that polls. Each lock has a
 * wait list of its own, because its poll_interval differs.
 */
#include "sim_mix.h"

#include <string.h>

#include "check.h"
#include "sim.h"

#define SIM_MIX_CLIENTS 4
#define SIM_MIX_GRANTS 300
#define SIM_MIX_WARM_UP_US REDLOCK_SECONDS /* until all clients hear the nodes, and queue */
#define SIM_MIX_POLL_US (2 * REDLOCK_SECONDS)

static const uint8_t sim_mix_kinds[SIM_MIX_LOCKS] = {
    SIM_MIX_SINGLE, SIM_MIX_PAIR,  SIM_MIX_SUPPLIED, SIM_MIX_SINGLE, SIM_MIX_PAIR,  SIM_MIX_OWNED,
    SIM_MIX_SINGLE, SIM_MIX_OTHER, SIM_MIX_OWNED,    SIM_MIX_SINGLE, SIM_MIX_OTHER, SIM_MIX_SINGLE};

/* Nothing but locks, waits and releases. */
static void sim_mix_simplify(sim_config *config) {
  memset(config->weights, 0, sizeof config->weights);
  sim_config_weigh(config);
  config->clients = SIM_MIX_CLIENTS;
  config->locks = SIM_MIX_LOCKS / SIM_MIX_CLIENTS;
  config->resources = 2;
  config->events = 0;
  config->tail = config->pause = config->stale = 0;
  config->window = config->extends = config->cancels = config->frees = config->blocking = 0;
  config->auto_extending = config->handovers = config->fire_and_forget = config->supplied = 0;
  config->operators = config->forces = config->leading = config->fenced = config->several = 0;
  config->permits = 0;
  config->hold_us = 0;
  config->guard = config->twins = config->lacks_scripts = false;
  config->lost = config->late = config->dies = config->fair = config->patient = 0;
}

void sim_mix_draw(sim *s) {
  sim_config *config = &s->config;
  sim_random *random = &s->random_mix;
  if (!s->mixing) {
    return;
  }
  sim_mix_simplify(config);
  config->mix = config->notifications = true;
  config->waiters_max = SIM_WAITERS_MAX;
  config->ttl_us[0] = config->ttl_us[1] = config->ttl_max_us = 2 * REDLOCK_SECONDS;
  config->lock_delay_us = 0;
  config->delay_from_us = 20;
  config->delay_to_us = sim_between(random, 50, 1000);
  config->mix_hold_us = sim_between(random, 2000, 20000);
  config->poll_interval_us = SIM_MIX_POLL_US;
  config->reentrant = (1u << SIM_MIX_CLIENTS) - 1;
  memset(&s->mix, 0, sizeof s->mix);
  memcpy(s->mix.kinds, sim_mix_kinds, sizeof s->mix.kinds);
  if (sim_below(random, 2) == 0) {
    s->mix.kinds[SIM_MIX_LOCKS - 1] = SIM_MIX_POLLING;
  }
  for (unsigned i = SIM_MIX_LOCKS - 1; i > 0; i--) {
    unsigned other = (unsigned)sim_below(random, i + 1);
    uint8_t kind = s->mix.kinds[i];
    s->mix.kinds[i] = s->mix.kinds[other];
    s->mix.kinds[other] = kind;
  }
}

uint64_t sim_mix_turn_us(const sim *s) {
  return s->config.mix_hold_us + 8 * s->config.delay_to_us + 2000;
}

uint64_t sim_mix_begin(sim *s) {
  s->mix.measured_us = s->now_us + SIM_MIX_WARM_UP_US;
  return check_liveness_bound_us(s) + SIM_MIX_WARM_UP_US + 4 * SIM_MIX_GRANTS * sim_mix_turn_us(s);
}

bool sim_mix_is_over(const sim *s) {
  return !s->config.mix || s->mix.granted >= SIM_MIX_GRANTS;
}

unsigned sim_mix_index(const sim *s, const sim_client *client, const sim_lock *own) {
  return client->index * s->config.locks + (unsigned)(own - client->locks);
}

bool sim_mix_is(const sim *s, const sim_client *client, const sim_lock *own, sim_mix_kind kind) {
  return s->config.mix && s->mix.kinds[sim_mix_index(s, client, own)] == kind;
}

void sim_mix_resources(const sim *s, const sim_client *client, sim_lock *own) {
  if (s->config.mix) {
    own->resource = sim_mix_is(s, client, own, SIM_MIX_OTHER);
    own->both = sim_mix_is(s, client, own, SIM_MIX_PAIR);
  }
}

void sim_mix_options(sim *s, const sim_client *client, const sim_lock *own, rl_options *options) {
  unsigned index = sim_mix_index(s, client, own);
  if (!s->config.mix) {
    return;
  }
  options->poll_interval_us = SIM_MIX_POLL_US + index;
  if (sim_mix_is(s, client, own, SIM_MIX_POLLING)) {
    options->notify = REDLOCK_NO;
    options->retry_delay_us = options->retry_jitter_us = s->config.mix_hold_us / 4;
  }
  if (s->mix.since_us[index] == 0) {
    s->mix.since_us[index] = s->now_us;
  }
}
