/*
 * Leader election: which acquire of a client is next, and when.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_campaign.h"

#include "redlock.h"

#define RL_CAMPAIGN_FIRST_US REDLOCK_SECONDS
#define RL_CAMPAIGN_LONGEST_US (60 * REDLOCK_SECONDS)

void rl_campaign_begin(rl_campaign *campaign, redlock_duration limit_us) {
  campaign->stage = RL_CAMPAIGN_SEEKS;
  campaign->limit_us = limit_us;
  campaign->wait_us = limit_us != REDLOCK_NEVER ? limit_us : RL_CAMPAIGN_FIRST_US;
}

bool rl_campaign_is_due(const rl_campaign *campaign) {
  return campaign->stage == RL_CAMPAIGN_SEEKS;
}

void rl_campaign_acquired(rl_campaign *campaign, int result) {
  bool passes =
      result == REDLOCK_E_TAKEN || result == REDLOCK_E_UNAVAILABLE || result == REDLOCK_E_EXPIRED;
  if (result == REDLOCK_OK) {
    campaign->stage = RL_CAMPAIGN_LEADS;
  } else if (!passes || campaign->limit_us != REDLOCK_NEVER) {
    campaign->stage = RL_CAMPAIGN_OVER;
  }
  campaign->wait_us = rl_time_min(2 * campaign->wait_us, RL_CAMPAIGN_LONGEST_US);
}

void rl_campaign_returned(rl_campaign *campaign, bool resigns) {
  rl_campaign_begin(campaign, campaign->limit_us);
  if (resigns) {
    campaign->stage = RL_CAMPAIGN_OVER;
  }
}
