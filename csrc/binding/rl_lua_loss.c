/*
 * Options 'on_lost' and 'on_event': the functions that losses and events are reported to.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_loss.h"

#include <stdint.h>

#include "client/rl_client.h"
#include "client/rl_poll.h"
#include "lock/rl_events.h"
#include "rl_lua_result.h"
#include "rl_lua_worker.h"

#define OBJECTS                                                                                    \
  "redlock.objects/1" /* registry: objects of locks and clients by address, weak values */
#define DISPATCHER "redlock.dispatcher/1" /* registry: function that calls an on_lost */

void rl_lua_push_weak(lua_State *L, const char *name, const char *mode) {
  lua_getfield(L, LUA_REGISTRYINDEX, name);
  if (!lua_isnil(L, -1))
    return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_newtable(L);
  lua_pushstring(L, mode);
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, name);
}

/* Maps |address| to the object at |index|, while that lives. */
static void note_object(lua_State *L, int index, const void *address) {
  rl_lua_push_weak(L, OBJECTS, "v");
  lua_pushnumber(L, (lua_Number)(uintptr_t)address);
  lua_pushvalue(L, index);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/* Pushes the object that was last noted with |address|, or nil. */
static void push_object(lua_State *L, const void *address) {
  rl_lua_push_weak(L, OBJECTS, "v");
  lua_pushnumber(L, (lua_Number)(uintptr_t)address);
  lua_rawget(L, -2);
  lua_remove(L, -2);
}

bool rl_lua_keep_option(lua_State *L, int index, const char *name, int slot) {
  bool is_set;

  if (!lua_istable(L, index))
    return false;
  lua_getuservalue(L, -1);
  lua_getfield(L, index, name);
  is_set = !lua_isnil(L, -1);
  lua_rawseti(L, -2, slot);
  lua_pop(L, 1);
  return is_set;
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

void rl_lua_loss_note_client(lua_State *L, rl_lua_client *self) {
  if (rl_lua_keep_option(L, 1, "on_lost", RL_LUA_ON_LOST_CLIENT))
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
  lua_pop(L, 1);
  (void)rl_lua_keep_option(L, RL_LUA_ARGUMENT, "on_lost", RL_LUA_ON_LOST_LOCK);
  redlock_lock_client(self->lock)->has_on_lost = true;
}

void rl_lua_loss_watch(lua_State *L, const redlock_lock *lock) {
  note_object(L, 1, lock);
}

int rl_lua_loss_find(lua_State *L, const redlock_lock *lock) {
  rl_lua_lock *self;

  push_object(L, lock);
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

/* ------------------------------------------------------------------------------------- events */

int rl_lua_event_note_client(lua_State *L, rl_lua_client *self) {
  if (!rl_lua_keep_option(L, 1, "on_event", RL_LUA_ON_EVENT))
    return REDLOCK_OK;
  note_object(L, lua_gettop(L), self->client);
  self->client->has_on_event = true;
  return redlock_client_on_event(self->client, NULL, NULL);
}

/* Pushes the client's on_event and returns true; or returns false if its object is garbage. */
static bool push_on_event(lua_State *L, const redlock_client *client) {
  rl_lua_client *self;

  push_object(L, client);
  self = luaL_testudata(L, -1, RL_LUA_CLIENT);
  if (self == NULL || self->client != client) { /* The address may have been reused. */
    lua_pop(L, 1);
    return false;
  }
  lua_getuservalue(L, -1);
  lua_rawgeti(L, -1, RL_LUA_ON_EVENT);
  lua_insert(L, -3);
  lua_pop(L, 2);
  return true;
}

static void push_event(lua_State *L, const redlock_event_info *info) {
  bool has_code = info->event == REDLOCK_EVENT_LOST || info->event == REDLOCK_EVENT_WARNED;

  lua_createtable(L, 0, 5);
  if (info->resource != NULL) { /* First: it is borrowed. */
    lua_pushlstring(L, info->resource, info->resource_length);
    lua_setfield(L, -2, "resource");
  }
  rl_lua_set_text(L, "event", redlock_event_name(info->event));
  rl_lua_set_text(L, "node", info->node);
  rl_lua_set_text(L, "reason", has_code ? redlock_error_name(info->error) : info->reason);
  rl_lua_push_seconds(L, rl_time_sub(redlock_now(), info->at_us));
  lua_setfield(L, -2, "ago");
  if (info->event == REDLOCK_EVENT_WAITED) {
    rl_lua_set_text(L, "result", redlock_error_name(info->error));
    rl_lua_push_seconds(L, info->waited_us);
    lua_setfield(L, -2, "waited");
  }
  if (info->missed > 0) {
    rl_lua_push_whole(L, info->missed);
    lua_setfield(L, -2, "missed");
  }
}

static int take_event(lua_State *L, redlock_client *client) {
  redlock_event_info info;

  luaL_checkstack(L, 8, "redlock: on_event");
  client->has_on_event = client->has_on_event && push_on_event(L, client);
  if (!client->has_on_event)
    return 0; /* With the object its function is gone: a driver must not wait for it. */
  if (redlock_client_next_event(client, &info) != REDLOCK_OK) {
    lua_pop(L, 1);
    return 0;
  }
  push_event(L, &info);
  lua_pushnil(L);
  return 3;
}

/* ---------------------------------------------------------------------------------- reporting */

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
  return take_event(L, client);
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
