/*
 * Option 'on_event': the function that receives the events of a client.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_event.h"

#include <stdint.h>

#include "lock/rl_events.h"
#include "rl_lua_result.h"

#define CLIENTS "redlock.clients/1" /* registry: objects of clients by address, weak values */

void rl_lua_event_init(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, CLIENTS);
  if (lua_isnil(L, -1)) {
    lua_newtable(L);
    lua_newtable(L);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, CLIENTS);
  }
  lua_pop(L, 1);
}

int rl_lua_event_note_client(lua_State *L, rl_lua_client *self, int index) {
  if (!lua_istable(L, index))
    return REDLOCK_OK;
  lua_getfield(L, index, "on_event");
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return REDLOCK_OK;
  }
  lua_getuservalue(L, -2);
  lua_insert(L, -2);
  lua_rawseti(L, -2, RL_LUA_ON_EVENT);
  lua_pop(L, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, CLIENTS);
  lua_pushnumber(L, (lua_Number)(uintptr_t)self->client);
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  self->client->has_on_event = true;
  return redlock_client_on_event(self->client, NULL, NULL);
}

/* Pushes the client's on_event and returns 1; or returns 0 if its object is garbage. */
static int push_function(lua_State *L, const redlock_client *client) {
  rl_lua_client *self;

  lua_getfield(L, LUA_REGISTRYINDEX, CLIENTS);
  lua_pushnumber(L, (lua_Number)(uintptr_t)client);
  lua_rawget(L, -2);
  lua_remove(L, -2);
  self = luaL_testudata(L, -1, RL_LUA_CLIENT);
  if (self == NULL || self->client != client) { /* The address may have been reused. */
    lua_pop(L, 1);
    return 0;
  }
  lua_getuservalue(L, -1);
  lua_rawgeti(L, -1, RL_LUA_ON_EVENT);
  lua_insert(L, -3);
  lua_pop(L, 2);
  return 1;
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

int rl_lua_event_take(lua_State *L, redlock_client *client) {
  redlock_event_info info;

  luaL_checkstack(L, 8, "redlock: on_event");
  client->has_on_event = client->has_on_event && push_function(L, client);
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
