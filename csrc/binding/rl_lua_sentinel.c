/*
 * The object that outlives all others in a Lua state.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_sentinel.h"

#include <string.h>

#include "rl_lua_class.h"

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

void rl_lua_sentinel_ensure(lua_State *L) {
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
