/*
 * The anchor outlives all other objects of a Lua state. It keeps the lingering clients and the
 * count of unseen memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "rl_lua_object.h"

/* Time that closing a Lua state may take to send what is left. */
#define DRAIN_BUDGET (100 * REDLOCK_MILLISECONDS)

static int anchor_gc(lua_State *L) {
  rl_lua_anchor *self = luaL_testudata(L, 1, RL_LUA_ANCHOR_CLASS);

  if (self == NULL || self->finished)
    return 0;
  /* Clients that a later finalizer creates must not join a list that is never processed again. */
  self->finished = 1;
  if (self->linger.first != NULL)
    rl_linger_drain(&self->linger, DRAIN_BUDGET);
  return 0;
}

void rl_lua_anchor_ensure(lua_State *L) {
  static const luaL_Reg metamethods[] = {{"__gc", anchor_gc}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{NULL, NULL}};
  rl_lua_anchor *self;

  rl_lua_class(L, RL_LUA_ANCHOR_CLASS, "redlock.anchor", metamethods, methods);
  lua_pop(L, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, RL_LUA_ANCHOR);
  if (lua_isnil(L, -1)) {
    self = lua_newuserdata(L, sizeof *self);
    memset(self, 0, sizeof *self);
    luaL_getmetatable(L, RL_LUA_ANCHOR_CLASS);
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, RL_LUA_ANCHOR);
  }
  lua_pop(L, 1);
}
