/*
 * Minimum hold: a release before |hold_at_least| is over keeps the keys until then.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease/rl_hold.h"

#include "lease/rl_fence.h"

/* Sets the end of a hold of |hold_us| that begins now. */
static void rl_hold_set(rl_attempt *lease, redlock_time now_us, redlock_duration hold_us) {
  redlock_time until_us = rl_time_min(rl_time_add(now_us, hold_us), RL_ATTEMPT_KEEP_MAX_US);
  lease->keep_until_us = (hold_us == 0 ? 0 : until_us) & RL_ATTEMPT_KEEP_MAX_US;
}

void rl_hold_granted(rl_lock *lock, redlock_time now_us, redlock_duration handed_us) {
  redlock_duration hold_us = rl_options_hold_us(lock->current);
  rl_hold_set(lock->lease, now_us, rl_time_max(hold_us, handed_us));
  lock->lease->fenced = rl_fence_is_on(lock);
  lock->lease->may_prolong = 0; /* of its tests */
}

void rl_hold_nested(rl_attempt *lease, redlock_time now_us, redlock_duration hold_us) {
  if (rl_time_add(now_us, hold_us) > lease->keep_until_us) {
    rl_hold_set(lease, now_us, hold_us);
  }
}

void rl_hold_forget(rl_attempt *lease) {
  if (lease != NULL) {
    lease->keep_until_us = 0;
  }
}

void rl_hold_answered(rl_attempt *attempt, uint32_t bit, bool granted) {
  if (attempt->keep_until_us != 0) {
    attempt->confirmed = granted ? attempt->confirmed | bit : attempt->confirmed & ~bit;
  }
}

bool rl_hold_is_broken(const rl_attempt *attempt, redlock_time now_us, uint32_t bit) {
  return rl_attempt_keep_ms(attempt, now_us) > 0 && (attempt->confirmed & bit) == 0;
}

void rl_hold_unanswered(rl_attempt *attempt, uint32_t bit) {
  attempt->may_prolong |= attempt->keep_until_us != 0 ? bit : 0;
}

bool rl_hold_note_late(rl_attempt *attempt, redlock_time now_us, uint32_t bit,
                       const rl_outstanding *command) {
  bool kept = rl_attempt_keep_ms(attempt, command->sent_us) > 0; /* It was no deletion. */
  bool slow = kept && rl_time_sub(now_us, command->sent_us) > RL_HOLD_LATE_US;
  if (slow) {
    rl_attempt_unanswered(attempt, now_us);
  }
  if (rl_attempt_keep_ms(attempt, now_us) == 0) {
    return slow;
  }
  attempt->may_prolong |= slow ? bit : attempt->may_set & bit;
  return (attempt->may_prolong & bit) != 0;
}
