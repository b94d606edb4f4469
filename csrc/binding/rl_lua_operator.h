/*
 * Results of an operator's questions: inspect and doctor.
 *
 * SPDX-License-Identifier: MIT
 *
 * The module's Lua code creates a lock for each question, and drops it afterwards.
 */
#ifndef RL_LUA_OPERATOR_H
#define RL_LUA_OPERATOR_H

#include "rl_lua.h"

/* (lock of inspect) -> { holder =, ttl =, nodes = { { node =, state =, ... }, ... } }. */
int rl_lua_lock_keys(lua_State *L);

/* (lock of doctor) -> { { severity =, name =, node =, message = }, ... }. */
int rl_lua_lock_findings(lua_State *L);

#endif /* RL_LUA_OPERATOR_H */
