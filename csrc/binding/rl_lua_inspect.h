/*
 * What an operator asks of a lock: what the nodes hold.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_INSPECT_H
#define RL_LUA_INSPECT_H

#include "rl_lua.h"

/* (lock that was inspected) -> { holder =, ttl =, nodes = { { node =, state =, ... }, ... } }. */
int rl_lua_lock_keys(lua_State *L);

#endif /* RL_LUA_INSPECT_H */
