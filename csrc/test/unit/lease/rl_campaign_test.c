/*
 * Leader election: which acquire is next.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_campaign.h"
#include "redlock.h"
#include "rl_test.h"

TEST(acquires_of_campaign_wait_for_longer_and_longer) {
  static const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
  rl_campaign campaign;
  rl_campaign_begin(&campaign, REDLOCK_NEVER);
  for (unsigned i = 0; i < COUNT_OF(seconds); i++) {
    assert_true(rl_campaign_is_due(&campaign));
    assert_true(campaign.wait_us == seconds[i] * REDLOCK_SECONDS);
    rl_campaign_acquired(&campaign, i % 3 == 0   ? REDLOCK_E_TAKEN
                                    : i % 3 == 1 ? REDLOCK_E_UNAVAILABLE
                                                 : REDLOCK_E_EXPIRED);
  }
}

/* CAM-3 */
TEST(no_acquire_is_due_before_the_function_has_returned) {
  rl_campaign campaign;
  rl_campaign_begin(&campaign, REDLOCK_NEVER);
  rl_campaign_acquired(&campaign, REDLOCK_E_TAKEN);
  rl_campaign_acquired(&campaign, REDLOCK_OK);
  assert_false(rl_campaign_is_due(&campaign));
  rl_campaign_returned(&campaign, false);
  assert_true(rl_campaign_is_due(&campaign));
  assert_true(campaign.wait_us == REDLOCK_SECONDS);
  rl_campaign_acquired(&campaign, REDLOCK_OK);
  rl_campaign_returned(&campaign, true);
  assert_false(rl_campaign_is_due(&campaign));
}

TEST(limited_campaign_is_one_acquire) {
  rl_campaign campaign;
  rl_campaign_begin(&campaign, 5 * REDLOCK_SECONDS);
  assert_true(campaign.wait_us == 5 * REDLOCK_SECONDS);
  rl_campaign_acquired(&campaign, REDLOCK_OK);
  rl_campaign_returned(&campaign, false);
  assert_true(rl_campaign_is_due(&campaign));
  assert_true(campaign.wait_us == 5 * REDLOCK_SECONDS);
  rl_campaign_acquired(&campaign, REDLOCK_E_TAKEN);
  assert_false(rl_campaign_is_due(&campaign));
}

TEST(failure_that_does_not_pass_ends_campaign) {
  static const int results[] = {REDLOCK_E_CANCELLED, REDLOCK_E_CLOSED, REDLOCK_E_NO_MEMORY,
                                REDLOCK_E_SYSTEM, REDLOCK_E_INVALID};
  for (unsigned i = 0; i < COUNT_OF(results); i++) {
    rl_campaign campaign;
    rl_campaign_begin(&campaign, REDLOCK_NEVER);
    rl_campaign_acquired(&campaign, results[i]);
    assert_false(rl_campaign_is_due(&campaign));
  }
}
