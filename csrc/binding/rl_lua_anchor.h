/*
 * The anchor outlives all other objects of a Lua state. It keeps the lingering clients and the
 * count of unseen memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_ANCHOR_H
#define RL_LUA_ANCHOR_H

#include "rl_lua.h"

/* Creates the anchor of the Lua state, unless there is one. */
void rl_lua_anchor_ensure(lua_State *L);

#endif /* RL_LUA_ANCHOR_H */
