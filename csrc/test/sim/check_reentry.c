/*
 * A lease lasts as long as one of its owner's locks counts on it, and ends with the last of them.
 * No lock waits for a lease of its own owner.
 *
 * SPDX-License-Identifier: MIT
 *
 * The counts are those that the application has learned (sim_application.c), not those of the
 * core's rings.
 */
#include "check.h"
#include "lease/rl_fence.h"
#include "lease/rl_reentry.h"

const sim_lock *check_reentry_holder(const sim *s, const sim_client *client, uint32_t token) {
  for (unsigned i = 0; i < s->config.locks; i++) {
    const rl_lock *lock = client->locks[i].lock;
    if (lock != NULL && lock->lease != NULL &&
        sim_tap_token(rl_attempt_token(lock->lease), REDLOCK_TOKEN_LENGTH) == token) {
      return &client->locks[i];
    }
  }
  return NULL;
}

/*
 * Returns true if an acquire of the lock counts already, and the application has not learned it
 * yet.
 */
static bool check_reentry_pending(const sim_lock *own, uint32_t token) {
  const rl_lock *transport = rl_ring_owner(own->lock);
  return own->state == SIM_APPLICATION_BUSY && own->operation == RL_OPERATION_ACQUIRE &&
         transport->lease != NULL &&
         sim_tap_token(rl_attempt_token(transport->lease), REDLOCK_TOKEN_LENGTH) == token;
}

unsigned check_reentry_count(const sim *s, const sim_client *client, uint32_t token) {
  unsigned count = 0;
  for (unsigned i = 0; i < s->config.locks; i++) {
    const sim_lock *own = &client->locks[i];
    count += own->lock != NULL && own->inside_token == token ? own->inside : 0;
    count += own->lock != NULL && check_reentry_pending(own, token);
  }
  return count;
}

static bool check_reentry_covers(const sim *s, const sim_lock *holder, const sim_lock *own) {
  return s->config.permits > 0 || holder->both ||
         (!own->named_both && holder->resource == own->named);
}

/* Returns true if the lock waits for a lease that it could share. */
static bool check_reentry_waits(const sim *s, const sim_client *client, const sim_lock *own) {
  const rl_lock *lock = own->lock;
  bool waits = lock != NULL && own->owner != 0 && own->state == SIM_APPLICATION_BUSY &&
               own->operation == RL_OPERATION_ACQUIRE && lock->attempt == NULL &&
               (lock->phase == RL_PHASE_QUEUED || lock->phase == RL_PHASE_DELAY);
  for (unsigned i = 0; i < s->config.locks && waits; i++) {
    const sim_lock *other = &client->locks[i];
    if (other != own && other->lock != NULL && other->owner == own->owner &&
        rl_lock_remaining(other->lock, client->reading_us) > 0 &&
        check_reentry_covers(s, other, own) &&
        (lock->current->fence != REDLOCK_YES || rl_fence_token(other->lock) != 0)) {
      return true;
    }
  }
  return false;
}

static void check_reentry_turned(sim *s, sim_client *client) {
  for (unsigned i = 0; i < s->config.locks && !client->closing; i++) {
    const sim_lock *own = &client->locks[i];
    if (check_reentry_waits(s, client, own)) {
      sim_violation(s, "reentry", "client %u, lock %u: waits for its own owner", client->index, i);
    }
    if (own->lock == NULL || own->inside == 0 || own->lock->lost) {
      continue;
    }
    const sim_lock *holder = check_reentry_holder(s, client, own->inside_token);
    if (holder == NULL) {
      sim_violation(s, "reentry",
                    "client %u, lock %u: the lease of token %u is gone, on which it counts",
                    client->index, i, own->inside_token);
    } else if (rl_ring_remaining(own->lock, client->reading_us) !=
               rl_lock_remaining(holder->lock, client->reading_us)) {
      sim_violation(s, "reentry", "client %u, lock %u: it does not see the lease of token %u",
                    client->index, i, own->inside_token);
    }
  }
}

void check_reentry_acquired(sim *s, const sim_client *client, const sim_lock *own) {
  const sim_lock *holder = check_reentry_holder(s, client, own->inside_token);
  if (holder == NULL || rl_lock_remaining(holder->lock, client->reading_us) == 0) {
    sim_violation(s, "reentry", "client %u was granted a lock that counts on nothing",
                  client->index);
  } else if (holder != own && (own->owner == 0 || holder->owner != own->owner)) {
    sim_violation(s, "reentry", "client %u: a lock of owner %u counts on one of owner %u",
                  client->index, own->owner, holder->owner);
  } else if (!check_reentry_covers(s, holder, own)) {
    sim_violation(s, "reentry", "client %u: a lock counts on a lease of other resources",
                  client->index);
  }
}

void check_reentry_released(sim *s, const sim_client *client, const sim_lock *own, uint32_t token) {
  bool stands = check_reentry_holder(s, client, token) != NULL;
  if (own->counting_down && !stands) {
    sim_violation(s, "reentry", "client %u: token %u is released, though others count on it",
                  client->index, token);
  } else if (!own->counting_down && stands) {
    sim_violation(s, "reentry", "client %u: the last release has not ended the lease of token %u",
                  client->index, token);
  }
}

const checker check_reentry = {
    .name = "reentry",
    .turned = check_reentry_turned,
};
