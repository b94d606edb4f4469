/*
 * The module redlock.core.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua.h"
#include "rl_lua_argument.h"
#include "rl_lua_client.h"
#include "rl_lua_credentials.h"
#include "rl_lua_operation.h"
#include "rl_lua_option.h"
#include "rl_lua_reentry.h"
#include "rl_lua_result.h"

int luaopen_redlock_core(lua_State *L) {
  luaL_checkversion(L);
  lua_settop(L, 0);
  rl_lua_anchor_ensure(L);
  rl_lua_credentials_register(L);
  lua_newtable(L);
  rl_lua_client_register(L);
  rl_lua_lock_register(L);
  rl_lua_driver_register(L);
  rl_lua_nginx_register(L);
  rl_lua_push_option_tables(L);
  lua_setfield(L, -2, "options");
  rl_lua_push_operations(L);
  lua_setfield(L, -2, "operations");
  rl_lua_push_codes(L);
  lua_setfield(L, -2, "codes");
  lua_pushstring(L, redlock_version());
  lua_setfield(L, -2, "VERSION");
  lua_pushinteger(L, REDLOCK_RESOURCES_MAX);
  lua_setfield(L, -2, "RESOURCES_MAX");
  lua_pushinteger(L, REDLOCK_TOKEN_MAX);
  lua_setfield(L, -2, "TOKEN_MAX");
  lua_pushcfunction(L, rl_lua_label_complaint);
  lua_setfield(L, -2, "label_complaint");
  lua_pushinteger(L, RL_LUA_OWNER_NAME_MAX);
  lua_setfield(L, -2, "OWNER_NAME_MAX");
  return 1;
}

int redlock_lua_push_client(lua_State *L, redlock_client *client) {
  rl_lua_client *self;

  luaL_checkstack(L, 4, "redlock_lua_push_client");
  lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_ANCHOR);
  if (lua_isnil(L, -1)) {
    rl_lua_misuse(L, RL_LUA_DIRECT, "redlock: require \"redlock\" before a client is pushed");
  }
  lua_pop(L, 1);
  self = rl_lua_client_push(L);
  self->client = redlock_client_ref(client);
  return 1;
}
