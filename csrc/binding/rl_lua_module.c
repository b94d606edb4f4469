/*
 * The module redlock.core.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua.h"
#include "rl_lua_argument.h"
#include "rl_lua_call.h"
#include "rl_lua_client.h"
#include "rl_lua_credentials_methods.h"
#include "rl_lua_lock.h"
#include "rl_lua_loss_methods.h"
#include "rl_lua_nginx.h"
#include "rl_lua_option.h"
#include "rl_lua_reentry.h"
#include "rl_lua_result.h"
#include "rl_lua_sentinel.h"

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
  rl_lua_sentinel_ensure(L);
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
