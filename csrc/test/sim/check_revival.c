/*
 * No lease comes back to life, none grows shorter. Between its start and its last extension no
 * other client can have held it, because an extension counts only before the old deadline. The same
 * holds from its detach to its attach, of which there is one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check.h"

/* The application could have read the clock now, and would have seen an expired lease. */
static void check_revival_clock_read(sim *s, sim_client *client) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    sim_lock *lock = &client->locks[i];
    if (lock->lease != SIM_NO_TOKEN && client->reading_us >= lock->deadline_us &&
        !lock->over_seen) {
      lock->over_seen = true;
    }
  }
}

static void check_revival_changed(sim *s, const sim_client *client, const sim_lock *lock,
                                  uint32_t before, uint32_t after) {
  uint64_t reading_us = client->reading_us;
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
                  client->index, after, (ull)(lock->deadline_us - deadline_us));
  } else if (before == after && (lock->over_seen || reading_us >= lock->deadline_us)) {
    sim_violation(s, "revival", "client %u: token %u was extended %llu us after it had expired",
                  client->index, after, (ull)(reading_us - lock->deadline_us));
  }
}

static void check_revival_granted(sim *s, const sim_client *client, const sim_lock *lock) {
  bool over = lock->ends_us <= s->now_us; /* The client was paused: it will not hold it. */
  over = over || s->tokens[lock->lease].forced != 0;
  for (unsigned i = 0; i < (lock->both ? 2u : 1u) && !over; i++) {
    unsigned resource = lock->resource ^ i;
    if (lock->attaches && s->taken_us[resource] > lock->detached_us) {
      sim_violation(
          s, "revival",
          "client %u attached what was detached %llu us ago, but resource %u was taken %llu "
          "us after that",
          client->index, (ull)(s->now_us - lock->detached_us), resource,
          (ull)(s->taken_us[resource] - lock->detached_us));
    }
    s->taken_us[resource] = s->now_us;
  }
}

const checker check_revival = {
    .name = "revival",
    .granted = check_revival_granted,
    .clock_read = check_revival_clock_read,
    .changed = check_revival_changed,
};
