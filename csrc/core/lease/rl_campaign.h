/*
 * Leader election: which acquire of a client is next, and when. The terms of a leader follow each
 * other.
 *
 * SPDX-License-Identifier: MIT
 *
 *   CAM-1. A campaign is a row of acquires. The first waits for a second, each further one for
 *          twice as long, at most for a minute. So failures are reported soon, and a waiter seldom
 *          gives up its tickets. With a limit a campaign is one acquire.
 *   CAM-2. A granted acquire begins a term. A failure that may pass is followed by the next
 *          acquire, any other one by the end.
 *   CAM-3. A term ends when the program's function returns, even if the lease ended before. No
 *          acquire is due before: otherwise two terms of one client would overlap.
 *   CAM-4. Then the lock is released, and the next campaign begins, unless the program resigns.
 */
#ifndef RL_CAMPAIGN_H
#define RL_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rl_time.h"

typedef enum rl_campaign_stage {
  RL_CAMPAIGN_SEEKS, /* an acquire is due, or in flight */
  RL_CAMPAIGN_LEADS, /* the function of the program runs */
  RL_CAMPAIGN_OVER
} rl_campaign_stage;

typedef struct rl_campaign {
  rl_campaign_stage stage;
  redlock_duration limit_us; /* of one campaign; REDLOCK_NEVER: none */
  redlock_duration wait_us;  /* of the next acquire */
} rl_campaign;

/* Begins the first campaign. */
void rl_campaign_begin(rl_campaign *campaign, redlock_duration limit_us);

/* CAM-3. Returns true if the next acquire may begin; |campaign->wait_us| is its time limit. */
bool rl_campaign_is_due(const rl_campaign *campaign);

/* CAM-2. The acquire has ended with |result|. */
void rl_campaign_acquired(rl_campaign *campaign, int result);

/* CAM-4. The function of the program has returned. */
void rl_campaign_returned(rl_campaign *campaign, bool resigns);

#endif
