/*
 * The doctor: what was found, as a list of tables.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_DOCTOR_H
#define RL_LUA_DOCTOR_H

#include "rl_lua.h"

/* (lock that was examined with) -> { { severity =, name =, node =, message = }, ... }. */
int rl_lua_lock_findings(lua_State *L);

#endif /* RL_LUA_DOCTOR_H */
