/*
 * Memory that Lua's collector does not see.
 *
 * SPDX-License-Identifier: MIT
 *
 * A lock object is small for Lua, but large in the library. A collector that counts only the former
 * lets garbage pile up. When the unseen memory is large, the binding makes the collector take as
 * many steps as for Lua memory.
 */
#ifndef RL_LUA_MEMORY_H
#define RL_LUA_MEMORY_H

#include <stddef.h>

#include <lua.h>

typedef struct rl_lua_memory {
  size_t unseen; /* bytes in use */
  size_t untold; /* bytes of these that were taken since the last step */
} rl_lua_memory;

/* Accounts for |bytes| that were allocated. May run finalizers. */
void rl_lua_memory_take(lua_State *L, rl_lua_memory *memory, size_t bytes);

/* Accounts for |bytes| that were freed. Only counts, so that finalizers may call it. */
void rl_lua_memory_give_back(rl_lua_memory *memory, size_t bytes);

#endif /* RL_LUA_MEMORY_H */
