/*
 * A worker's other uses of locks: several resources in one lock, hand-overs, caller-supplied
 * tokens, nested locks, and inspections.
 *
 * SPDX-License-Identifier: MIT
 */
#include "chaos_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEVERAL_WAIT_US (2 * REDLOCK_SECONDS) /* Two are free at once less often. */

static void ways_count(const worker *self, chaos_way way) {
  atomic_fetch_add(&self->shared->ways[way], 1);
}

static unsigned ways_resource(worker *self) {
  return (unsigned)sim_below(&self->random, CHAOS_RESOURCES);
}

static redlock_lock *ways_lock(const worker *self, const unsigned *resources, size_t count) {
  char names[2];
  redlock_resource list[2];
  redlock_lock *lock = NULL;
  for (size_t i = 0; i < count; i++) {
    names[i] = (char)('a' + resources[i]);
    list[i] = (redlock_resource){&names[i], 1};
  }
  if (redlock_lock_new_many(&lock, self->client, list, count, NULL) != REDLOCK_OK) {
    chaos_fail("no lock could be made");
  }
  return lock;
}

static int ways_acquire(worker *self, const char *name, redlock_lock *lock,
                        const redlock_options *options) {
  worker_call call = worker_begin(self, name, worker_budget(options));
  int result = redlock_lock_acquire(lock, options, NULL);
  worker_end(self, &call, result);
  worker_hear(self, lock);
  return result;
}

static void ways_release(worker *self, redlock_lock *lock) {
  worker_call call = worker_begin(self, "release", CHAOS_NODE_TIMEOUT_US);
  worker_end(self, &call, redlock_lock_release(lock));
}

/* In any order: no order makes two that want the same wait for each other. */
static void ways_several(worker *self) {
  unsigned first = ways_resource(self);
  unsigned pair[2] = {first, (first + 1 + (unsigned)sim_below(&self->random, CHAOS_RESOURCES - 1)) %
                                 CHAOS_RESOURCES};
  redlock_options options = worker_draw_options(self);
  options.wait_us = SEVERAL_WAIT_US;
  redlock_lock *lock =
      ways_lock(self, pair, worker_misbehaves(self, CHAOS_TAKES_ONE_OF_TWO) ? 1 : 2);
  if (ways_acquire(self, "acquire", lock, &options) == REDLOCK_OK) {
    worker_enter_by(self, pair[0], lock, 0);
    worker_enter_by(self, pair[1], lock, 1);
    worker_hold_on(self, pair[0], &options);
    worker_prolong(self, pair[1]);
    worker_leave(self, pair[0]);
    worker_leave(self, pair[1]);
    ways_release(self, lock);
    ways_count(self, CHAOS_WAY_SEVERAL);
  }
  redlock_lock_free(lock);
}

/* Returns a free slot, which the caller may write; or NULL. */
static chaos_text *ways_place(const worker *self) {
  for (unsigned i = 0; i < CHAOS_TEXTS; i++) {
    int expected = 0;
    if (atomic_compare_exchange_strong(&self->shared->texts[i].users, &expected, -1)) {
      return &self->shared->texts[i];
    }
  }
  return NULL;
}

static void ways_detach(worker *self) {
  unsigned resource = ways_resource(self);
  redlock_options options = worker_draw_options(self);
  chaos_text *place = ways_place(self);
  if (place == NULL) {
    return;
  }
  int users = 0;
  redlock_lock *lock = ways_lock(self, &resource, 1);
  if (ways_acquire(self, "acquire", lock, &options) == REDLOCK_OK) {
    size_t length = 0;
    worker_enter_by(self, resource, lock, 0);
    (void)snprintf(place->token, sizeof place->token, "%s", self->holds[resource].token);
    place->resource = resource;
    chaos_pause(sim_below(&self->random, 30 * REDLOCK_MILLISECONDS));
    if (self->holds[resource].held &&
        redlock_lock_detach(lock, place->text, sizeof place->text, &length) == REDLOCK_OK) {
      users = 2;
      ways_count(self, CHAOS_WAY_DETACHED);
      if (!worker_misbehaves(self, CHAOS_KEEPS_DETACHED)) {
        worker_detached(self, resource);
      }
    } else {
      worker_leave(self, resource);
      ways_release(self, lock);
    }
  }
  atomic_store(&place->users, users);
  if (self->holds[resource].held) {
    chaos_pause(options.ttl_us / 2);
    worker_leave(self, resource);
  }
  redlock_lock_free(lock);
}

static void ways_attached(worker *self, const chaos_text *text) {
  chaos_log(self->log, "w%u.%u attach %u %s %llu", self->index, self->generation, text->resource,
            text->token, (ull)redlock_now());
}

static void ways_use_attached(worker *self, const chaos_text *text, redlock_lock *lock) {
  redlock_options options = worker_draw_options(self);
  int result = ways_acquire(self, "attach", lock, &options);
  if (result == REDLOCK_OK) {
    worker_enter_by(self, text->resource, lock, 0);
    ways_attached(self, text);
    ways_count(self, CHAOS_WAY_ATTACHED);
    worker_hold_on(self, text->resource, &options);
    worker_leave(self, text->resource);
    ways_release(self, lock);
  } else if (result == REDLOCK_E_LOST) {
    ways_count(self, CHAOS_WAY_REFUSED);
    if (worker_misbehaves(self, CHAOS_LOGS_ATTACHED)) {
      ways_attached(self, text);
    }
  }
}

/* A text that waits for a reader, or NULL. */
static chaos_text *ways_waiting(const worker *self) {
  unsigned first = self->index;
  for (unsigned i = 0; i < CHAOS_TEXTS; i++) {
    chaos_text *place = &self->shared->texts[(first + i) % CHAOS_TEXTS];
    if (atomic_load(&place->users) > 0) {
      return place;
    }
  }
  return NULL;
}

static void ways_attach(worker *self) {
  chaos_text *place = ways_waiting(self);
  chaos_text text;
  redlock_lock *lock = NULL;
  int users = place == NULL ? 0 : atomic_load(&place->users);
  if (users <= 0) {
    return;
  }
  text.resource = place->resource;
  memcpy(text.token, place->token, sizeof text.token);
  memcpy(text.text, place->text, sizeof text.text);
  /* A slower reader may have read another text by now. */
  if (!atomic_compare_exchange_strong(&place->users, &users, users - 1)) {
    return;
  }
  if (redlock_lock_attach(&lock, self->client, text.text, strlen(text.text), NULL) != REDLOCK_OK) {
    chaos_fail("a text that was detached cannot be attached");
  }
  ways_use_attached(self, &text, lock);
  redlock_lock_free(lock);
}

static void ways_supplied(worker *self) {
  unsigned resource = ways_resource(self);
  redlock_options options = worker_draw_options(self);
  redlock_lock *lock = ways_lock(self, &resource, 1);
  char token[REDLOCK_TOKEN_LENGTH + 1];
  bool again = worker_misbehaves(self, CHAOS_REUSES_TOKEN);
  (void)snprintf(token, sizeof token, "given-%u-%u-%llu", again ? 0 : self->index,
                 again ? 0 : self->generation, again ? 0 : (ull)redlock_now());
  if (redlock_lock_give_token(lock, token, strlen(token)) != REDLOCK_OK) {
    chaos_fail("a token could not be given");
  }
  if (ways_acquire(self, "acquire", lock, &options) == REDLOCK_OK) {
    worker_enter_by(self, resource, lock, 0);
    worker_hold_on(self, resource, &options);
    worker_leave(self, resource);
    ways_release(self, lock);
    ways_count(self, CHAOS_WAY_SUPPLIED);
  }
  redlock_lock_free(lock);
}

/* The lease goes on until the last of the two is released, whichever that is. */
static void ways_nested(worker *self) {
  unsigned resource = ways_resource(self);
  redlock_options options = worker_draw_options(self);
  redlock_lock *locks[2] = {ways_lock(self, &resource, 1), ways_lock(self, &resource, 1)};
  for (unsigned i = 0; i < 2; i++) {
    if (redlock_lock_set_owner(locks[i], "chaos", 5) != REDLOCK_OK) {
      chaos_fail("an owner could not be set");
    }
  }
  if (ways_acquire(self, "acquire", locks[0], &options) == REDLOCK_OK) {
    worker_enter_by(self, resource, locks[0], 0);
    worker_hold_on(self, resource, &options);
    bool counts = ways_acquire(self, "nested", locks[1], &options) == REDLOCK_OK;
    unsigned last = counts ? (unsigned)sim_below(&self->random, 2) : 0;
    if (counts) {
      ways_release(self, locks[1 - last]);
      self->holds[resource].lock = locks[last];
      worker_hold_on(self, resource, &options);
      ways_count(self, CHAOS_WAY_NESTED);
    }
    if (worker_misbehaves(self, CHAOS_COUNTS_TOO_MANY)) {
      ways_release(self, locks[last]);
      chaos_pause(options.ttl_us / 2);
      worker_leave(self, resource);
    } else {
      worker_leave(self, resource);
      ways_release(self, locks[last]);
    }
  }
  redlock_lock_free(locks[0]);
  redlock_lock_free(locks[1]);
}

static void ways_inspect(worker *self) {
  unsigned resource = ways_resource(self);
  redlock_lock *lock = ways_lock(self, &resource, 1);
  redlock_holder_info holder;
  worker_call call = worker_begin(self, "inspect", CHAOS_NODE_TIMEOUT_US);
  int result = redlock_lock_inspect(lock);
  redlock_time ended_us = redlock_now();
  worker_end(self, &call, result);
  if (redlock_lock_holder(lock, &holder) == REDLOCK_OK) {
    bool wrong = worker_misbehaves(self, CHAOS_LOGS_WRONG_HOLDER);
    chaos_log(self->log, "w%u.%u inspect %u %s %llu %llu", self->index, self->generation, resource,
              wrong ? "another" : (const char *)holder.token, (ull)call.started_us, (ull)ended_us);
    ways_count(self, CHAOS_WAY_INSPECTED);
  }
  redlock_lock_free(lock);
}

void worker_use_otherwise(worker *self) {
  if (worker_misbehaves(self, CHAOS_REUSES_TOKEN)) {
    ways_supplied(self);
    return;
  }
  if (ways_waiting(self) != NULL) { /* Leases do not live for long. */
    ways_attach(self);
    return;
  }
  switch (sim_below(&self->random, 5)) {
  case 0:
    ways_several(self);
    break;
  case 1:
    ways_detach(self);
    break;
  case 2:
    ways_supplied(self);
    break;
  case 3:
    ways_nested(self);
    break;
  default:
    ways_inspect(self);
    break;
  }
}
