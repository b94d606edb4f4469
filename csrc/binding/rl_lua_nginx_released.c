/*
 * Frees the lock of a released lock object of nginx, and recreates it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_nginx_released.h"

#include <string.h>

#include "api/rl_handle.h"
#include "client/rl_client.h"
#include "lock/rl_result.h"
#include "lock/rl_round.h"
#include "rl_lua_lock.h"
#include "rl_lua_memory.h"
#include "rl_lua_nginx_handle.h"

#define NOT_KEPT "the reason is not kept after the release"

/* Behind the object: its own options, if any, a vote of each node, and the resource. */
static rl_options *options_of(rl_lua_nginx_lock *self) {
  return (rl_options *)(self + 1);
}

static rl_vote *votes_of(rl_lua_nginx_lock *self) {
  return (rl_vote *)(options_of(self) + (self->base.has_options ? 1 : 0));
}

static unsigned char *resource_of(rl_lua_nginx_lock *self, const rl_core *core) {
  return (unsigned char *)(votes_of(self) + core->node_count);
}

size_t rl_lua_nginx_released_size(const rl_lua_client *client, size_t resource_length,
                                  int has_options) {
  return sizeof(rl_lua_nginx_lock) + (has_options ? sizeof(rl_options) : 0) +
         client->client->core.node_count * sizeof(rl_vote) + resource_length;
}

void rl_lua_nginx_released_free(rl_lua_lock *self) {
  rl_lua_nginx_lock *kept = rl_lua_nginx_lock_of(self);
  redlock_lock *lock = self->lock;
  const rl_lock *known = rl_lock_of(lock);
  const rl_core *core = known->core;
  const void *resource;

  if (self->worker == NULL || rl_lock_is_busy(known) || rl_ring_owner(known)->lease != NULL ||
      known->unreleased != NULL || known->resource->count > 1)
    return;
  if (self->has_options)
    *options_of(kept) = *rl_lock_options(known);
  memcpy(votes_of(kept), rl_result_votes(known), core->node_count * sizeof(rl_vote));
  resource = redlock_lock_resource(lock, &kept->resource_length);
  memcpy(resource_of(kept, core), resource, kept->resource_length);
  kept->result = rl_lock_result(known);
  kept->abandoned = known->abandoned;
  kept->freed = 1;
  rl_lua_lock_free(self);
}

int rl_lua_nginx_released_revive(lua_State *L, rl_lua_lock *self) {
  rl_lua_nginx_lock *kept = rl_lua_nginx_lock_of(self);
  redlock_client *client = rl_lua_nginx_of(self->worker)->client;
  redlock_resource resource;
  rl_lock *lock;

  if (client == NULL || !kept->freed)
    return 0;
  resource.bytes = resource_of(kept, &client->core);
  resource.length = kept->resource_length;
  if (rl_handle_new(&self->lock, client, &resource, 1,
                    self->has_options ? options_of(kept) : &client->core.options) != REDLOCK_OK) {
    self->lock = NULL;
    return 0;
  }
  kept->freed = 0;
  redlock_lock_set_data(self->lock, self);
  lock = rl_lock_of(self->lock);
  lock->operation = self->operation;
  rl_lock_set_result(lock, kept->result);
  lock->abandoned = kept->abandoned != 0;
  memcpy(lock->votes, votes_of(kept), client->core.node_count * sizeof(rl_vote));
  for (unsigned i = 0; i < client->core.node_count; i++) {
    if (lock->votes[i].settled && rl_vote_counts_as(lock->votes[i].vote) == RL_COUNT_FAILED)
      rl_round_set_reason(lock, i, NOT_KEPT);
  }
  rl_lua_memory_take(L, &self->client->anchor->memory, self->bytes);
  return 1;
}
