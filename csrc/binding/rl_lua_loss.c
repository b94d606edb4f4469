/*
 * Option 'on_lost': the function that a loss is reported to.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_loss.h"

#include <stdint.h>

#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "rl_lua_event.h"
#include "rl_lua_worker.h"

#define WATCHED "redlock.watched/1"       /* registry: locks by address, weak values */
#define DISPATCHER "redlock.dispatcher/1" /* registry: function that calls an on_lost */

void rl_lua_loss_init(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, WATCHED);
  if (lua_isnil(L, -1)) {
    lua_newtable(L);
    lua_newtable(L);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, WATCHED);
  }
  lua_pop(L, 1);
}

int rl_lua_loss_has_option(lua_State *L, int index) {
  int has;

  if (!lua_istable(L, index))
    return 0;
  lua_getfield(L, index, "on_lost");
  has = !lua_isnil(L, -1);
  lua_pop(L, 1);
  return has;
}

void rl_lua_loss_note_client(lua_State *L, rl_lua_client *self, int index) {
  if (!rl_lua_loss_has_option(L, index))
    return;
  lua_getuservalue(L, -1);
  lua_getfield(L, index, "on_lost");
  lua_rawseti(L, -2, RL_LUA_ON_LOST_CLIENT);
  lua_pop(L, 1);
  self->client->has_on_lost = true;
}

void rl_lua_loss_push_own(lua_State *L, rl_lua_lock *self, int index) {
  lua_getuservalue(L, index);
  if (self->has_own_value)
    return;
  lua_createtable(L, RL_LUA_ON_LOST_CALL, 0);
  for (int i = 1; i <= RL_LUA_ON_LOST_CLIENT; i++) {
    lua_rawgeti(L, -2, i);
    lua_rawseti(L, -2, i);
  }
  lua_remove(L, -2);
  lua_pushvalue(L, -1);
  lua_setuservalue(L, index);
  self->has_own_value = 1;
}

void rl_lua_loss_note_lock(lua_State *L, rl_lua_lock *self) {
  if (!rl_lua_loss_has_option(L, RL_LUA_ARGUMENT))
    return;
  rl_lua_loss_push_own(L, self, lua_gettop(L));
  lua_getfield(L, RL_LUA_ARGUMENT, "on_lost");
  lua_rawseti(L, -2, RL_LUA_ON_LOST_LOCK);
  lua_pop(L, 1);
  redlock_lock_client(self->lock)->has_on_lost = true;
}

void rl_lua_loss_watch(lua_State *L, const redlock_lock *lock) {
  lua_getfield(L, LUA_REGISTRYINDEX, WATCHED);
  lua_pushnumber(L, (lua_Number)(uintptr_t)lock);
  lua_pushvalue(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

int rl_lua_loss_find(lua_State *L, const redlock_lock *lock) {
  rl_lua_lock *self;

  lua_getfield(L, LUA_REGISTRYINDEX, WATCHED);
  lua_pushnumber(L, (lua_Number)(uintptr_t)lock);
  lua_rawget(L, -2);
  lua_remove(L, -2);
  self = luaL_testudata(L, -1, RL_LUA_LOCK);
  if (self != NULL && self->lock == lock) /* The address may have been reused. */
    return 1;
  lua_pop(L, 1);
  return 0;
}

void rl_lua_loss_prepare_call(lua_State *L, rl_lua_lock *self) {
  redlock_client *client = redlock_lock_client(self->lock);

  if (lua_istable(L, RL_LUA_ARGUMENT)) {
    lua_getfield(L, RL_LUA_ARGUMENT, "on_lost");
  } else {
    lua_pushnil(L);
  }
  if (!lua_isnil(L, -1)) {
    rl_lua_loss_push_own(L, self, 1);
    lua_pop(L, 1);
    client->has_on_lost = true;
  }
  if (client->has_on_lost)
    rl_lua_loss_watch(L, self->lock);
}

void rl_lua_loss_note_call(lua_State *L, rl_lua_lock *self) {
  /* A nested acquire without on_lost keeps the function of the outer one. */
  if (self->has_own_value && !(lua_isnil(L, -1) && rl_ring_is_reacquired(rl_lock_of(self->lock)))) {
    lua_getuservalue(L, 1);
    lua_insert(L, -2);
    lua_rawseti(L, -2, RL_LUA_ON_LOST_CALL); /* Preallocated: raises nothing. */
  }
  lua_pop(L, 1);
}

void rl_lua_loss_push(lua_State *L, int index) {
  lua_getuservalue(L, index);
  for (int i = RL_LUA_ON_LOST_CALL; i >= RL_LUA_ON_LOST_CLIENT; i--) {
    lua_rawgeti(L, -1, i);
    if (!lua_isnil(L, -1) || i == RL_LUA_ON_LOST_CLIENT)
      break;
    lua_pop(L, 1);
  }
  lua_remove(L, -2);
}

void rl_lua_loss_replace(lua_State *L, rl_lua_lock *self) {
  rl_lua_loss_push_own(L, self, 1);
  lua_insert(L, -2);
  lua_rawseti(L, -2, RL_LUA_ON_LOST_CALL);
  lua_pop(L, 1);
}

int rl_lua_loss_take(lua_State *L, redlock_client *client) {
  redlock_lock *lost;

  luaL_checkstack(L, 8, "redlock: on_lost");
  while (client->has_on_lost && (lost = redlock_client_next_lost(client)) != NULL) {
    int reason = redlock_lock_lost(lost, NULL);
    if (!rl_lua_loss_find(L, lost))
      continue;
    rl_lua_lock *self = lua_touserdata(L, -1);
    bool ended = self->worker != NULL && self->worker->functions->owner_has_ended(self);
    /* Skip the function of a request that has ended: its variables may be gone. */
    if (reason != REDLOCK_OK && !ended) {
      rl_lua_loss_push(L, -1);
      if (!lua_isnil(L, -1)) {
        lua_insert(L, -2);
        lua_pushstring(L, redlock_error_name(reason));
        return 3;
      }
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  return rl_lua_event_take(L, client);
}

/* (client as a pointer): calls the dispatcher, which catches errors, for each loss and event. */
static int report_all(lua_State *L) {
  redlock_client *client = lua_touserdata(L, 1);

  for (;;) {
    lua_settop(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, DISPATCHER);
    if (lua_isnil(L, -1) || rl_lua_loss_take(L, client) == 0)
      return 0;
    lua_call(L, 3, 0);
  }
}

void rl_lua_loss_dispatch_by(lua_State *L) {
  lua_setfield(L, LUA_REGISTRYINDEX, DISPATCHER);
}

void rl_lua_loss_run(lua_State *L, redlock_client *client) {
  bool processed;

  if (client->reports_losses)
    return;
  luaL_checkstack(L, 4, "redlock: on_lost");
  lua_pushcfunction(L, report_all);
  lua_pushlightuserdata(L, client);
  client->reports_losses = true;
  processed = redlock_client_timeout(client) == 0;
  if (processed)
    (void)redlock_client_process(client, NULL, 0);
  if (lua_pcall(L, 1, 0, 0) != 0)
    lua_pop(L, 1); /* Out of memory: only lock:lost() reports this loss. */
  client->reports_losses = false;
  if (processed) {
    /* The loop did not run this turn: wake it for the operations that have ended. */
    rl_client_enter(client);
    rl_poll_wake(client);
    rl_client_leave(client);
  }
}
