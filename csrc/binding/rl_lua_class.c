/*
 * Classes of userdata.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_class.h"

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
