/*
 * The object that a method is called on: the client or the lock at index 1.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_OBJECT_H
#define RL_LUA_OBJECT_H

#include "rl_lua.h"

/* The object at index 1, or misuse of |method|. */
rl_lua_client *rl_lua_check_client(lua_State *L, int level, const char *method);
rl_lua_lock *rl_lua_check_lock(lua_State *L, int level, const char *method);

#endif /* RL_LUA_OBJECT_H */
