/*
 * A lease ends before the majority of its keys does, on whatever clocks.
 *
 * SPDX-License-Identifier: MIT
 *
 * Checked when the lease begins or is prolonged, with true time on both sides. So a slow client and
 * fast nodes show an allowance for drift that is too small by a microsecond.
 */
#include "check.h"

static void check_validity_counted(sim *s, const sim_client *client, const sim_lock *lock) {
  unsigned kept = 0;
  uint64_t shortest_us = SIM_NEVER;
  for (unsigned i = 0; i < client->nodes; i++) {
    if (sim_tap_is_twin(s, &s->tokens[lock->lease], client->base + i)) {
      continue; /* It is the first one, and keeps no other key. */
    }
    uint64_t dies_us = sim_key_keeps(s, client->base + i, lock, lock->lease);
    if (s->config.guard && (s->tokens[lock->lease].forgotten >> (client->base + i) & 1) != 0) {
      kept++; /* It has lost the key, and does not vote; or the margin tolerates it. */
    } else if (dies_us != 0 && dies_us >= lock->ends_us) {
      kept++;
    } else if (dies_us != 0 && lock->ends_us - dies_us < shortest_us) {
      shortest_us = lock->ends_us - dies_us;
    }
  }
  bool forced = lock->lease < s->token_count && s->tokens[lock->lease].forced != 0;
  if (lock->ends_us > s->now_us && kept < sim_config_quorum(&s->config, client->nodes) && !forced) {
    sim_violation(
        s, "validity",
        "client %u counts on resource %u for another %llu us, but only %u of %u nodes keep "
        "token %u so long (the nearest lacks %lld us)",
        client->index, lock->resource, (ull)(lock->ends_us - s->now_us), kept, client->nodes,
        lock->lease, shortest_us == SIM_NEVER ? -1ll : (long long)shortest_us);
  }
}

/* Checks a backfill: the key lives for the rest of the lease, and no longer. */
static void check_validity_backfill(sim *s, const sim_client *client, const sim_lock *lock,
                                    uint64_t ttl_us) {
  const rl_lock *core = lock->lock;
  const sim_config *config = &s->config;
  uint64_t drift_us = (uint64_t)((double)config->ttl_max_us * config->drift_factor) + 3000;
  uint64_t left_us = rl_lock_remaining(core, client->reading_us) + config->lock_delay_us;
  if (rl_lock_is_in_flight(core) || core->lease == NULL) {
    sim_violation(s, "votes", "client %u gives a node a key while it does something with the lock",
                  client->index);
  } else if (ttl_us < left_us ||
             (ttl_us > left_us + drift_us + 1000 && !core->extended)) { /* else it may be a heal */
    sim_violation(s, "validity",
                  "client %u gives a node a key for %llu us, of which %llu us are left",
                  client->index, (ull)ttl_us, (ull)left_us);
  }
}

static void check_validity_sent(sim *s, const sim_client *client, unsigned node,
                                const sim_sent *sent) {
  (void)node;
  if (sent->backfills) {
    check_validity_backfill(s, client, &client->locks[s->tokens[sent->token].lock], sent->ttl_us);
  }
}

const checker check_validity = {
    .name = "validity",
    .granted = check_validity_counted,
    .extended = check_validity_counted,
    .sent = check_validity_sent,
};
