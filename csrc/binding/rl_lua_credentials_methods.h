/*
 * What drivers written in Lua see of credentials.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_CREDENTIALS_METHODS_H
#define RL_LUA_CREDENTIALS_METHODS_H

#include "rl_lua.h"

/* Adds the functions of drivers to the table on top of the stack. */
void rl_lua_credentials_register(lua_State *L);

#endif /* RL_LUA_CREDENTIALS_METHODS_H */
