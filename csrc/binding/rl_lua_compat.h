/*
 * Functions that some Lua versions lack.
 *
 * SPDX-License-Identifier: MIT
 *
 *                         5.1   LuaJIT 2.1   5.2   5.3   5.4
 *     luaL_testudata       -       (x)        x     x     x     (x): not used, see below
 *     luaL_setfuncs        -       (x)        x     x     x
 *     lua_setuservalue     -        -         x     x     x     (5.1, LuaJIT: environment)
 *     luaL_checkversion    -        -         x     x     x
 *     64-bit lua_Integer   ?        ?         ?     x     x     (?: as wide as a pointer)
 *
 * 5.5 has all that 5.4 has. Its lua_gc() takes the size of a step as a size_t in bytes, and older
 * versions take an int in units of 1024 bytes.
 *
 * A user value must be a table, because 5.1, LuaJIT and 5.2 take nothing else.
 */
#ifndef RL_LUA_COMPAT_H
#define RL_LUA_COMPAT_H

#include <stddef.h>

#include <lauxlib.h>
#include <lua.h>

#if LUA_VERSION_NUM < 502

#define lua_setuservalue(L, index) ((void)lua_setfenv((L), (index)))
#define lua_getuservalue(L, index) lua_getfenv((L), (index))
#define luaL_checkversion(L) ((void)(L))

/* LuaJIT 2.1 has these two, but Lua 5.1 has not, and a module that was built for either is to load
   in both: they share the place where modules are installed. */

static inline void *rl_lua_testudata(lua_State *L, int index, const char *name) {
  void *userdata = lua_touserdata(L, index);
  if (userdata == NULL || !lua_getmetatable(L, index))
    return NULL;
  luaL_getmetatable(L, name);
  if (!lua_rawequal(L, -1, -2))
    userdata = NULL;
  lua_pop(L, 2);
  return userdata;
}
#define luaL_testudata rl_lua_testudata

static inline void rl_lua_setfuncs(lua_State *L, const luaL_Reg *functions) {
  for (; functions->name != NULL; functions++) {
    lua_pushcfunction(L, functions->func);
    lua_setfield(L, -2, functions->name);
  }
}
#define luaL_setfuncs(L, functions, upvalues) rl_lua_setfuncs((L), (functions))

#endif /* LUA_VERSION_NUM < 502 */

#if LUA_VERSION_NUM >= 505
#define rl_lua_gc_step(bytes) ((size_t)(bytes))
#else
#define rl_lua_gc_step(bytes) ((int)((bytes) / 1024))
#endif

#endif /* RL_LUA_COMPAT_H */
