/*
 * No two leases of a resource are valid at once.
 *
 * SPDX-License-Identifier: MIT
 *
 * A lease is valid from its grant until its own client's clock reaches its deadline, or until it is
 * given up: its holder may act at any time in between. Two intervals that overlap share the start
 * of one of them, so this is checked at each grant.
 */
#include "check.h"

/* Returns true if an operator has ended the lease, which its holder learns only when it asks. */
static bool check_exclusion_forced(const sim *s, const sim_lock *lock) {
  return lock->lease < s->token_count && s->tokens[lock->lease].forced != 0;
}

/* Returns true if the two want a resource in common. */
static bool check_exclusion_meet(const sim_lock *one, const sim_lock *other) {
  return one->both || other->both || one->resource == other->resource;
}

static void check_exclusion_granted(sim *s, const sim_client *client, const sim_lock *lock) {
  for (unsigned i = 0; i < s->config.clients; i++) {
    const sim_client *other = &s->clients[i];
    for (unsigned k = 0; other->alive && k < s->config.locks; k++) {
      const sim_lock *theirs = &other->locks[k];
      uint64_t ends_us = theirs->ends_us;
      if (s->breach == SIM_BREACH_LATE_HOLDER) { /* It does not stop at its deadline. */
        ends_us += theirs->ttl_us / 2;
      }
      if (theirs == lock || !check_exclusion_meet(lock, theirs) || theirs->lease == SIM_NO_TOKEN) {
        continue;
      }
      sim_count(s, SIM_CHECK_OVERLAP);
      if (ends_us > s->now_us && lock->ends_us > s->now_us) {
        if (check_exclusion_forced(s, lock) || check_exclusion_forced(s, theirs)) {
          sim_count(s, SIM_FORCED_OVERLAP);
          continue;
        }
        sim_violation(s, "exclusion",
                      "client %u was given resource %u with token %u, but client %u holds it with "
                      "token %u for another %llu us",
                      client->index, lock->resource, lock->lease, i, theirs->lease,
                      (ull)(ends_us - s->now_us));
      }
    }
  }
}

const checker check_exclusion = {
    .name = "exclusion",
    .granted = check_exclusion_granted,
};
