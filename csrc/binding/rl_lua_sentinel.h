/*
 * The object that outlives all others in a Lua state.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_SENTINEL_H
#define RL_LUA_SENTINEL_H

#include "rl_lua.h"

/* Sends what collected clients have left to send. */
void rl_lua_tend(rl_lua_sentinel *sentinel);

/* Makes the sentinel of the Lua state, if it has none yet. */
void rl_lua_sentinel_ensure(lua_State *L);

#endif /* RL_LUA_SENTINEL_H */
