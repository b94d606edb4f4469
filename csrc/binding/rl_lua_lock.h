/*
 * The lock object.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_LOCK_H
#define RL_LUA_LOCK_H

#include "rl_lua.h"

/* Writes the lock's resources as printable ASCII, shortened if necessary. */
void rl_lua_lock_show(const rl_lua_lock *self, char *shown, size_t size);

/* Frees the lock of the object. Never blocks, allocates nothing and calls no Lua: the client
   releases the token. */
void rl_lua_lock_free(rl_lua_lock *self);

/* Reports why an operation of |self| failed, or did not start: pushes nil, message and code, or
   raises misuse. */
int rl_lua_push_failure(lua_State *L, rl_lua_lock *self, int error, int level);

#endif /* RL_LUA_LOCK_H */
