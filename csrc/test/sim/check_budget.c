/*
 * Every operation ends within its budget.
 *
 * SPDX-License-Identifier: MIT
 *
 * Measured by the client's own clock, without the time for which the client was paused.
 */
#include "check.h"

#define CHECK_BUDGET_SLACK_US 2000 /* per attempt: time of the turns of the loop */

uint64_t check_budget_round_us(const sim_lock *lock) {
  if (lock->options.node_timeout_us != 0) {
    return lock->options.node_timeout_us;
  }
  uint64_t tenth_us = lock->options.ttl_us / 10;
  return tenth_us < 100 * REDLOCK_MILLISECONDS ? tenth_us : 100 * REDLOCK_MILLISECONDS;
}

static void check_budget_lock(sim *s, const sim_client *client, const sim_lock *lock) {
  const rl_options *options = &lock->options;
  uint64_t now_us = client->advance_us;
  uint64_t spent_us = now_us > lock->begun_us ? now_us - lock->begun_us : 0;
  uint64_t paused_us = client->paused_us - lock->paused_us + lock->waited_us;
  uint64_t bound_us = check_budget_round_us(lock);
  uint64_t attempts = 1;
  if (lock->operation == RL_OPERATION_ACQUIRE) {
    bool waits = options->wait_us != REDLOCK_NEVER && options->wait_us != 0;
    if (waits && spent_us >= options->wait_us && lock->begun_us < now_us) {
      sim_violation(s, "budget", "client %u: acquire goes on after its budget of %llu us",
                    client->index, (ull)options->wait_us);
    }
    attempts = options->wait_us == 0                          ? 1
               : options->retry_count == REDLOCK_RETRIES_NONE ? 1
               : options->retry_count > 0                     ? (uint64_t)options->retry_count + 1
               : waits                                        ? UINT32_MAX
                                                              : 4;
    if (s->config.permits > 0 && attempts < UINT32_MAX) {
      attempts *= CHECK_BUDGET_ROUNDS;
    }
    if (lock->attempts > attempts) {
      sim_violation(s, "budget", "client %u: acquire makes %u attempts, may make %llu",
                    client->index, lock->attempts, (ull)attempts);
    }
    /*
     * A queued or notified waiter makes no attempts: their number becomes a number of pauses, of 1
     * ms at least. A waiter that asks the nodes before its first attempt waits for their answers
     * for a round at most.
     */
    uint64_t delay_us = options->retry_delay_us > REDLOCK_MILLISECONDS ? options->retry_delay_us
                                                                       : REDLOCK_MILLISECONDS;
    uint64_t delays = attempts == 1 ? 0 : attempts;
    uint64_t rounds = attempts == 1 || !s->config.notifications ? attempts : attempts + 1;
    bound_us = rounds * bound_us + delays * (delay_us + options->retry_jitter_us);
  }
  if (spent_us > bound_us + paused_us + attempts * CHECK_BUDGET_SLACK_US) {
    sim_violation(s, "budget", "client %u: operation %d takes %llu us, may take %llu",
                  client->index, (int)lock->operation, (ull)spent_us, (ull)(bound_us + paused_us));
  }
}

/*
 * While much is outstanding, operations are paced: an acquire for its budget or its ttl at most,
 * each time, an extend until the lease ends, a release for the ttl.
 */
static void check_budget_pacing(sim *s, const sim_client *client, sim_lock *lock) {
  uint64_t now_us = client->advance_us;
  uint64_t paused_us = client->paused_us - lock->paused_us;
  bool waits = lock->lock->phase == RL_PHASE_SEND && rl_lock_is_busy(lock->lock);
  bool again = lock->pacing_due_us != 0 && lock->pacing_due_us != lock->lock->timer.due_us;
  if (!waits || again) {
    lock->waited_us +=
        lock->waiting_us != 0 && now_us > lock->waiting_us ? now_us - lock->waiting_us : 0;
    lock->waiting_us = 0;
  }
  lock->pacing_due_us = waits ? lock->lock->timer.due_us : 0;
  if (!waits) {
    return;
  }
  if (lock->waiting_us == 0) {
    lock->waiting_us = client->reading_us > now_us ? client->reading_us : now_us;
  }
  uint64_t until_us = lock->waiting_us + lock->options.ttl_us;
  if (lock->operation == RL_OPERATION_EXTEND) {
    until_us = lock->deadline_us;
  } else if (lock->operation == RL_OPERATION_ACQUIRE && lock->options.wait_us != 0) {
    uint64_t budget_us = lock->begun_us + lock->options.wait_us;
    until_us =
        lock->options.wait_us != REDLOCK_NEVER && budget_us < until_us ? budget_us : until_us;
  }
  if (now_us > until_us + paused_us + CHECK_BUDGET_SLACK_US) {
    sim_violation(s, "budget", "client %u: operation %d waits for its launch since %llu us",
                  client->index, (int)lock->operation, (ull)(now_us - lock->waiting_us));
  }
}

/* A node that is known not to answer is not waited for. */
static void check_budget_waits(sim *s, const sim_client *client, const sim_lock *lock) {
  for (unsigned i = 0; i < client->nodes; i++) {
    const rl_node *node = client->core.nodes[i];
    if (node->link.phase == RL_LINK_DOWN && node->connect_at_us > client->reading_us &&
        lock->lock->phase == RL_PHASE_ROUND && !lock->lock->votes[i].settled) {
      sim_violation(s, "budget", "client %u: operation %d waits for node %u, which is down",
                    client->index, (int)lock->operation, i);
    }
  }
}

static void check_budget_turned(sim *s, sim_client *client) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *lock = &client->locks[i];
    if (lock->lock != NULL && lock->state == SIM_APPLICATION_BUSY && s->breach == SIM_BREACH_NONE) {
      check_budget_pacing(s, client, lock);
    }
    if (lock->lock != NULL && lock->state == SIM_APPLICATION_BUSY && lock->sent &&
        rl_lock_result(lock->lock) == REDLOCK_PENDING && lock->lock->phase != RL_PHASE_SEND &&
        s->breach == SIM_BREACH_NONE) {
      check_budget_lock(s, client, lock);
      check_budget_waits(s, client, lock);
    }
  }
}

const checker check_budget = {
    .name = "budget",
    .turned = check_budget_turned,
};
