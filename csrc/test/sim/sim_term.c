/*
 * Leaders: locks whose use is that of redlock_client_lead().
 *
 * SPDX-License-Identifier: MIT
 */
#include "sim_term.h"

#include <string.h>

#include "check.h"
#include "lock/rl_ring.h"
#include "sim_application.h"

void sim_term_draw(sim *s) {
  sim_config *config = &s->config;
  bool drawn = sim_below(&s->random_term, 4) == 0;
  unsigned clients = (unsigned)sim_between(&s->random_term, 1, 15);
  if ((!drawn && !s->leading) || config->fenced == 0 || s->breach != SIM_BREACH_NONE) {
    return;
  }
  config->leading = clients & ~config->reentrant;
  config->auto_extending |= config->leading;
}

bool sim_term_leads(const sim *s, const sim_client *client, const sim_lock *own) {
  return (s->config.leading >> client->index & 1) != 0 && own == &client->locks[0];
}

void sim_term_options(const sim *s, const sim_client *client, const sim_lock *own,
                      rl_options *options) {
  if (!sim_term_leads(s, client, own)) {
    return;
  }
  options->fence = options->auto_extend = REDLOCK_YES;
  if (!sim_application_calm(s)) {
    options->retry_count = 0;
    options->wait_us = own->term.campaign.wait_us;
  }
}

bool sim_term_campaigns(sim *s, const sim_client *client, sim_lock *own) {
  rl_campaign *campaign = &own->term.campaign;
  if (campaign->wait_us == 0 || campaign->stage == RL_CAMPAIGN_OVER) {
    rl_campaign_begin(campaign,
                      REDLOCK_NEVER); /* The program leads again, or for the first time. */
  }
  if (!rl_campaign_is_due(campaign)) {
    return false;
  }
  check_campaigned(s, client, own);
  return true;
}

void sim_term_acquired(sim *s, const sim_client *client, sim_lock *own, int result) {
  if (!sim_term_leads(s, client, own)) {
    return;
  }
  rl_campaign_acquired(&own->term.campaign, result);
  if (result == REDLOCK_OK) {
    own->term.runs = true;
    sim_count(s, SIM_TERM_BEGUN);
    check_led(s, client, own);
  }
}

sim_term_step sim_term_use(sim *s, const sim_client *client, sim_lock *own, uint64_t reading_us) {
  bool lost = rl_ring_remaining(own->lock, reading_us) == 0;
  bool goes_on = sim_below(&s->random_term, lost ? 2 : 4) != 0;
  if (!own->term.runs) {
    return SIM_TERM_RETURNS; /* A release has failed. */
  }
  if (goes_on && !sim_application_calm(s)) {
    sim_count_if(s, lost, SIM_TERM_OUTLIVED);
    if (lost && rl_campaign_is_due(&own->term.campaign)) {
      check_campaigned(s, client, own);
      return SIM_TERM_CAMPAIGNS;
    }
    return SIM_TERM_GOES_ON;
  }
  bool resigns = sim_below(&s->random_term, 8) == 0;
  sim_count(s, lost ? SIM_TERM_LOST : resigns ? SIM_TERM_RESIGNED : SIM_TERM_RETURNED);
  rl_campaign_returned(&own->term.campaign, resigns);
  own->term.runs = false;
  return SIM_TERM_RETURNS;
}

void sim_term_forget(sim_lock *own) {
  memset(&own->term, 0, sizeof own->term);
}
