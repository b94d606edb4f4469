/*
 * No lease comes back to life, none grows shorter. Between its beginning and its last extension
 * nobody else can have held it: an extension counts only if the old deadline had not passed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check.h"

/* The application could have looked now, and would have seen a lease that has run out. */
void check_revival_observed(sim *s, sim_client *client, uint64_t reading_us) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *lock = &client->locks[i];
    if (lock->lease != SIM_NO_TOKEN && reading_us >= lock->deadline_us && !lock->over_seen) {
      lock->over_seen = true;
    }
  }
}

void check_revival(sim *s, sim_client *client, sim_lock *lock, uint32_t before, uint32_t after,
                   uint64_t reading_us) {
  uint64_t deadline_us = lock->lock->deadline_us;
  if (after == SIM_NO_TOKEN) {
    return;
  }
  if (after >= s->token_count) {
    sim_violation(s, "revival", "a lease with a token that was never drawn");
  } else if (before != after && s->tokens[after].granted) {
    sim_violation(s, "revival", "client %u has token %u again, which was over", client->index,
                  after);
  } else if (before == after && deadline_us < lock->deadline_us) {
    sim_violation(s, "revival", "client %u: the lease of token %u has become shorter by %llu us",
                  client->index, after, (unsigned long long)(lock->deadline_us - deadline_us));
  } else if (before == after && (lock->over_seen || reading_us >= lock->deadline_us)) {
    sim_violation(s, "revival", "client %u: token %u was extended %llu us after it had run out",
                  client->index, after, (unsigned long long)(reading_us - lock->deadline_us));
  }
}
