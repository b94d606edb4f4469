/*
 * What Lua sees of losses.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_LOSS_METHODS_H
#define RL_LUA_LOSS_METHODS_H

#include "rl_lua.h"

/* Adds the functions of drivers and of the module's own Lua code to the table on top of the stack. */
void rl_lua_loss_register(lua_State *L);

#endif /* RL_LUA_LOSS_METHODS_H */
