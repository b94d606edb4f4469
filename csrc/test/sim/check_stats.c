/*
 * The statistics of a client agree with the simulator's own account.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each call of the application ends once, and each lease begins with one acquire that succeeded.
 * Each reply is at most one vote, and a lease needs as many granted votes as the quorum. A lease
 * that ended at its deadline or by a denial is lost once. After a breach the account of the replies
 * is that of a broken node, and is not compared.
 */
#include "check.h"

static uint64_t check_stats_sum(const redlock_outcomes *outcomes) {
  return outcomes->ok + outcomes->taken + outcomes->unavailable + outcomes->expired +
         outcomes->lost + outcomes->held + outcomes->not_held + outcomes->closed +
         outcomes->cancelled + outcomes->error;
}

static const redlock_outcomes *check_stats_of(const sim_client *client, rl_stats_kind kind) {
  return &client->core.stats.operations[kind];
}

static uint64_t check_stats_count(const rl_histogram *histogram) {
  redlock_histogram info;
  rl_histogram_read(histogram, &info);
  return info.count;
}

/* |what| of the core is |counted|, and should be from |low| to |high|. */
static void check_stats_between(sim *s, const sim_client *client, const char *what,
                                uint64_t counted, uint64_t low, uint64_t high) {
  if (counted < low || counted > high) {
    sim_violation(s, "stats", "client %u counts %llu %s instead of %llu to %llu", client->index,
                  (ull)counted, what, (ull)low, (ull)high);
  }
}

/* Notes a lease that is gone. |lock| is NULL if its lock was freed. */
void check_stats_lease_ended(sim_client *client, const rl_lock *lock, uint64_t deadline_us) {
  if (lock != NULL && lock->lost) {
    client->account.denied++;
  } else if (client->reading_us >= deadline_us) {
    client->account.expired++;
  }
}

static void check_stats_operations(sim *s, const sim_client *client) {
  const sim_account *account = &client->account;
  const rl_stats *stats = &client->core.stats;
  bool owners = s->config.reentrant != 0;
  for (unsigned kind = 0; kind < RL_STATS_KINDS; kind++) {
    /* A nested acquire that extends counts as an extend if its lock is freed. */
    uint64_t nested = owners && kind == RL_STATS_EXTEND ? account->calls[RL_STATS_ACQUIRE] : 0;
    uint64_t least = owners && kind == RL_STATS_ACQUIRE ? 0 : account->ended[kind];
    if (kind != RL_STATS_AUTO_EXTEND) {
      check_stats_between(s, client, "operations", check_stats_sum(&stats->operations[kind]), least,
                          account->calls[kind] + nested);
    }
  }
  /* A nested acquire succeeds without a lease of its own. */
  uint64_t more = owners ? account->calls[RL_STATS_ACQUIRE] : account->leases;
  check_stats_between(s, client, "granted acquires", stats->operations[RL_STATS_ACQUIRE].ok,
                      account->leases, more);
  check_stats_between(s, client, "durations of acquires", check_stats_count(&stats->acquire_time),
                      account->leases, more);
  check_stats_between(s, client, "attempts", stats->attempts, account->attempts, account->draws);
}

static void check_stats_locks(sim *s, const sim_client *client) {
  unsigned held = 0, expired = 0, waiting = 0, acquiring = 0;
  for (unsigned i = 0; i < s->config.locks; i++) {
    const sim_lock *own = &client->locks[i];
    bool leased = own->lock != NULL && own->lease != SIM_NO_TOKEN;
    held += leased && own->deadline_us > client->reading_us;
    expired += leased && own->deadline_us <= client->reading_us;
    if (own->lock != NULL && rl_lock_is_busy(own->lock) &&
        own->lock->operation == RL_OPERATION_ACQUIRE) {
      acquiring++;
      waiting += own->lock->phase == RL_PHASE_DELAY || own->lock->phase == RL_PHASE_QUEUED ? 1 : 0;
    }
  }
  const rl_stats *stats = &client->core.stats;
  const sim_account *account = &client->account;
  check_stats_between(s, client, "held locks",
                      rl_core_count_leases(&client->core, client->reading_us), held, held);
  check_stats_between(s, client, "waiting acquires", rl_core_waiting(&client->core), waiting,
                      acquiring);
  check_stats_between(s, client, "expired leases", stats->lost_expired + stats->lost_max_hold,
                      account->expired, account->expired + expired);
  check_stats_between(s, client, "denied leases", stats->lost_denied, account->denied,
                      s->config.reentrant != 0 ? account->leases : account->denied);
}

static void check_stats_nodes(sim *s, const sim_client *client) {
  const sim_account *account = &client->account;
  uint64_t granted = 0;
  for (unsigned i = 0; i < client->nodes; i++) {
    const rl_node_stats *stats = &client->core.nodes[i]->stats;
    uint64_t positive = stats->votes[REDLOCK_VOTE_GRANTED];
    granted += positive;
    if (s->breach != SIM_BREACH_NONE || account->odd) {
      continue;
    }
    check_stats_between(s, client, "granted votes", positive, 0, account->granted[i]);
    check_stats_between(s, client, "votes by replies",
                        positive + stats->votes[REDLOCK_VOTE_TAKEN] + stats->late, 0,
                        account->replies[i]);
    check_stats_between(s, client, "latencies", check_stats_count(&stats->latency),
                        account->replies[i], account->replies[i]);
    check_stats_between(s, client, "heals", stats->heals, account->heals[i],
                        account->heals[i] + account->backfills[i]);
  }
  uint64_t needed = account->leases * sim_config_quorum(&s->config, client->nodes);
  check_stats_between(s, client, "granted votes of all nodes", granted, needed, UINT64_MAX);
}

static void check_stats_turned(sim *s, sim_client *client) {
  check_stats_operations(s, client);
  check_stats_locks(s, client);
  check_stats_nodes(s, client);
}

static void check_stats_granted(sim *s, const sim_client *client, const sim_lock *own) {
  (void)own;
  s->clients[client->index].account.leases++;
}

/* Nothing is in flight: each call has ended. */
static void check_stats_settled(sim *s) {
  for (unsigned i = 0; i < s->config.clients; i++) {
    const sim_client *client = &s->clients[i];
    uint64_t acquires = check_stats_sum(check_stats_of(client, RL_STATS_ACQUIRE));
    uint64_t extends = check_stats_sum(check_stats_of(client, RL_STATS_EXTEND));
    uint64_t calls =
        client->account.calls[RL_STATS_ACQUIRE] + client->account.calls[RL_STATS_EXTEND];
    if (client->alive) {
      check_stats_between(s, client, "operations at rest", acquires + extends, calls, calls);
    }
  }
}

const checker check_stats = {
    .name = "stats",
    .granted = check_stats_granted,
    .turned = check_stats_turned,
    .settled = check_stats_settled,
};
