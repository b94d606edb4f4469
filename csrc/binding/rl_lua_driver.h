/*
 * Functions for drivers that are written in Lua: losses and credentials.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_DRIVER_H
#define RL_LUA_DRIVER_H

#include "rl_lua.h"

/* Adds the functions to the module table on top of the stack. */
void rl_lua_driver_register(lua_State *L);

#endif /* RL_LUA_DRIVER_H */
