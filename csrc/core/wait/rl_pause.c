/*
 * Pauses: when the attempts of an acquire are made.
 *
 * SPDX-License-Identifier: MIT
 *
 * Copies of the budget: csrc/test/sim/check_budget.c, option.budget() in
 * lua/redlock/fake_option.lua.
 */
#include "wait/rl_pause.h"

#include "options/rl_backoff.h"
#include "wait/rl_wait_state.h"

redlock_duration rl_pause_reply_time(const rl_core *core) {
  redlock_duration fastest_us[REDLOCK_NODES_MAX] = {0}; /* gcc -O3 warns without. */
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_link *link = &core->nodes[i]->link;
    bool known = link->phase == RL_LINK_UP && link->fastest_us != REDLOCK_NEVER;
    redlock_duration reply_us = known ? link->fastest_us : 0;
    unsigned at = i;
    for (; at > 0 && fastest_us[at - 1] > reply_us; at--) {
      fastest_us[at] = fastest_us[at - 1];
    }
    fastest_us[at] = reply_us;
  }
  return fastest_us[rl_core_quorum(core, RL_OPERATION_ACQUIRE) - 1];
}

/* Added to the time that the nodes need: drivers may wake up late. */
#define RL_PAUSE_LAST_US (5 * REDLOCK_MILLISECONDS)

/* So many pauses are drawn; further ones count with their mean length. */
#define RL_PAUSE_DRAWN_MAX 64

redlock_time rl_pause_last_attempt_at(const rl_lock *lock) {
  return rl_time_sub(lock->budget_ends_us,
                     rl_time_add(rl_pause_reply_time(lock->core), RL_PAUSE_LAST_US));
}

redlock_duration rl_pause_next(const rl_lock *lock, uint64_t random, redlock_time from_us) {
  redlock_duration left_us = rl_time_sub(rl_pause_last_attempt_at(lock), from_us);
  return left_us < RL_BACKOFF_ATTEMPT_MIN_US
             ? REDLOCK_NEVER
             : rl_time_min(rl_backoff_attempt(lock->current, random), left_us);
}

void rl_pause_limit(rl_lock *lock, redlock_time now_us) {
  if (lock->attempts_left == RL_LOCK_ATTEMPTS_ALL || lock->limited) {
    return;
  }
  lock->limited = true;
  /* Before its first attempt a waiter has one more of them than pauses. */
  uint64_t pauses = rl_time_min(lock->attempts_left, rl_options_attempts(lock->current) - 1);
  uint64_t drawn = rl_time_min(pauses, RL_PAUSE_DRAWN_MAX);
  redlock_time end_us = now_us;
  for (uint64_t i = 0; i < drawn; i++) {
    end_us =
        rl_time_add(end_us, rl_backoff_attempt(lock->current, rl_wait_state_random(lock->core)));
  }
  redlock_duration mean_us = rl_backoff_attempt_mean(lock->current);
  if (pauses > drawn) {
    bool ends = mean_us < REDLOCK_NEVER / pauses;
    end_us = ends ? rl_time_add(end_us, (pauses - drawn) * mean_us) : REDLOCK_NEVER;
  }
  lock->budget_ends_us = rl_time_min(lock->budget_ends_us, end_us);
}

bool rl_pause_quorum_is_alive(const rl_lock *lock, redlock_time now_us) {
  const rl_core *core = lock->core;
  redlock_duration timeout_us = rl_options_node_timeout(lock->current, lock->ttl_us);
  unsigned count = 0;
  for (unsigned i = 0; i < core->node_count; i++) {
    const rl_link *link = &core->nodes[i]->link;
    int vote = lock->votes[i].vote;
    bool refused = vote == REDLOCK_VOTE_ERROR || vote == REDLOCK_VOTE_QUARANTINED;
    count += link->phase == RL_LINK_UP && !refused && rl_link_silence(link, now_us) <= timeout_us;
  }
  return count >= rl_core_quorum(core, RL_OPERATION_ACQUIRE);
}
