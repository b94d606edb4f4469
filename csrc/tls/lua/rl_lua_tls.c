/*
 * The Lua module redlock.tls: the transport, for redlock.core.
 *
 * SPDX-License-Identifier: MIT
 *
 * A module of its own, so that only programs that ask for TLS load OpenSSL. lua/redlock/client.lua
 * loads it when a node wants it. It returns a userdata with a metatable of its own, which
 * set_transport() in rl_lua_client.c checks.
 */
#include <lauxlib.h>
#include <lua.h>

#include "redlock_tls.h"

#define RL_LUA_TRANSPORT "redlock.transport/1" /* as in csrc/binding/rl_lua.h */

REDLOCK_EXTERN int luaopen_redlock_tls(lua_State *L);

int luaopen_redlock_tls(lua_State *L) {
  const redlock_transport **self = lua_newuserdata(L, sizeof(const redlock_transport *));

  *self = redlock_tls();
  luaL_newmetatable(L, RL_LUA_TRANSPORT);
  lua_pushliteral(L, "redlock.transport");
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  return 1;
}
