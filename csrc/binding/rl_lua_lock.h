/*
 * The lock object.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_LOCK_H
#define RL_LUA_LOCK_H

#include "rl_lua.h"

/* Writes the name of the lock's resource so that it can be printed anywhere, shortened if need be. */
void rl_lua_lock_show(const rl_lua_lock *self, char *shown, size_t size);

/* Never blocks and allocates nothing: the token goes to the client's releases. Calls no Lua. */
void rl_lua_lock_free(rl_lua_lock *self);

/* Pushes nil, a message and a code, or raises what is a mistake of the caller, for what an operation of |self|
   ended with, or why it was not begun. */
int rl_lua_push_failure(lua_State *L, rl_lua_lock *self, int error, int level);

/* Registers the class, and leaves its table of methods on the stack. */
void rl_lua_lock_register(lua_State *L);

/* Adds the functions for the module's own Lua code to the table on top of the stack. */
void rl_lua_lock_add_functions(lua_State *L);

#endif /* RL_LUA_LOCK_H */
