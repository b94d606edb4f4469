/*
 * client:stats().
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_STATS_H
#define RL_LUA_STATS_H

#include "rl_lua.h"

/* (client) -> table: redlock.Stats in types.lua. */
int rl_lua_stats(lua_State *L);

#endif /* RL_LUA_STATS_H */
