/*
 * The module redlock.core, and the object that outlives all others in a Lua state.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "rl_lua.h"
#include "rl_lua_call.h"
#include "rl_lua_credentials.h"
#include "rl_lua_loss.h"
#include "rl_lua_nginx.h"
#include "rl_lua_reentry.h"

/* How long the closing of a Lua state may take to send what is left. */
#define DRAIN_BUDGET (100 * REDLOCK_MILLISECONDS)

void rl_lua_tend(rl_lua_sentinel *sentinel) {
  if (sentinel->linger.first != NULL)
    rl_linger_process(&sentinel->linger);
}

static int sentinel_gc(lua_State *L) {
  rl_lua_sentinel *self = luaL_testudata(L, 1, RL_LUA_SENTINEL_CLASS);

  if (self == NULL || self->finished)
    return 0;
  /* Objects that a later finalizer makes must not be handed to a list that nobody looks at. */
  self->finished = 1;
  if (self->linger.first != NULL)
    rl_linger_drain(&self->linger, DRAIN_BUDGET);
  return 0;
}

void rl_lua_class(lua_State *L, const char *name, const char *public_name,
                  const luaL_Reg *metamethods, const luaL_Reg *methods) {
  if (!luaL_newmetatable(L, name)) {
    /* The module was loaded before in this state: its objects and the new ones are one class. */
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
    return;
  }
  luaL_setfuncs(L, metamethods, 0);
  lua_pushstring(L, public_name);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__name");
  lua_setfield(L, -2, "__metatable");
  /* A table of its own, so that scripts do not find the metamethods as methods. */
  lua_newtable(L);
  luaL_setfuncs(L, methods, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__index");
  lua_remove(L, -2);
}

static void ensure_sentinel(lua_State *L) {
  static const luaL_Reg metamethods[] = {{"__gc", sentinel_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{NULL, NULL}};
  rl_lua_sentinel *self;

  rl_lua_class(L, RL_LUA_SENTINEL_CLASS, "redlock.sentinel", metamethods, methods);
  lua_pop(L, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_SENTINEL);
  if (lua_isnil(L, -1)) {
    self = lua_newuserdata(L, sizeof *self);
    memset(self, 0, sizeof *self);
    luaL_getmetatable(L, RL_LUA_SENTINEL_CLASS);
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, RL_LUA_SENTINEL);
  }
  lua_pop(L, 1);
}

int luaopen_redlock_core(lua_State *L) {
  static const luaL_Reg functions[] = {{"client", rl_lua_client_new},
                                       {"add", rl_lua_client_add},
                                       {"carry", rl_lua_client_carry},
                                       {"close", rl_lua_client_close_now},
                                       {"shut", rl_lua_client_shut},
                                       {"owed", rl_lua_client_owed},
                                       {"alarm", rl_lua_client_alarm},
                                       {"now", rl_lua_client_now},
                                       {"next_ended", rl_lua_client_next_ended},
                                       {NULL, NULL}};

  luaL_checkversion(L);
  lua_settop(L, 0);
  ensure_sentinel(L);
  lua_newtable(L);
  luaL_setfuncs(L, functions, 0);
  rl_lua_lock_add_functions(L);
  rl_lua_loss_register(L);
  rl_lua_credentials_register(L);
  rl_lua_client_register(L);
  lua_setfield(L, -2, "client_methods");
  rl_lua_lock_register(L);
  lua_setfield(L, -2, "lock_methods");
  rl_lua_nginx_register(L);
  lua_setfield(L, -2, "nginx");
  rl_lua_push_option_tables(L);
  lua_setfield(L, -2, "options");
  rl_lua_push_calls(L);
  lua_setfield(L, -2, "calls");
  rl_lua_push_codes(L);
  lua_setfield(L, -2, "codes");
  lua_pushstring(L, redlock_version());
  lua_setfield(L, -2, "VERSION");
  lua_pushinteger(L, REDLOCK_RESOURCES_MAX);
  lua_setfield(L, -2, "RESOURCES_MAX");
  lua_pushinteger(L, REDLOCK_TOKEN_MAX);
  lua_setfield(L, -2, "TOKEN_MAX");
  lua_pushinteger(L, RL_LUA_OWNER_NAME_MAX);
  lua_setfield(L, -2, "OWNER_NAME_MAX");
  return 1;
}

int redlock_lua_push_client(lua_State *L, redlock_client *client) {
  rl_lua_client *self;

  luaL_checkstack(L, 4, "redlock_lua_push_client");
  lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_SENTINEL);
  if (lua_isnil(L, -1)) {
    rl_lua_misuse(L, RL_LUA_DIRECT, "redlock: require \"redlock\" before a client is pushed");
  }
  lua_pop(L, 1);
  self = rl_lua_client_push(L);
  self->client = redlock_client_ref(client);
  return 1;
}
