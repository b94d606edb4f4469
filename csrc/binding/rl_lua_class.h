/*
 * Classes of userdata.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_CLASS_H
#define RL_LUA_CLASS_H

#include "rl_lua.h"

/* Makes class |name| from its metamethods and methods, and leaves the methods on the stack. */
void rl_lua_class(lua_State *L, const char *name, const char *public_name,
                  const luaL_Reg *metamethods, const luaL_Reg *methods);

#endif /* RL_LUA_CLASS_H */
