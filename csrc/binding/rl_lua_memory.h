/*
 * Memory that Lua's collector does not see.
 *
 * SPDX-License-Identifier: MIT
 *
 * A lock object is small for Lua, and what the library keeps for it is not. A collector that counts
 * the one and not the other lets garbage pile up, so it is told: once that what it does not see is
 * worth a look beside what it does see, it makes the steps that it would have made for as much memory
 * of its own.
 */
#ifndef RL_LUA_MEMORY_H
#define RL_LUA_MEMORY_H

#include <stddef.h>

#include <lua.h>

typedef struct rl_lua_memory {
  size_t unseen; /* bytes in use */
  size_t untold; /* of these, taken since the collector was told last */
} rl_lua_memory;

/* |bytes| are in use now. May run finalizers, as whatever allocates in Lua may. */
void rl_lua_memory_take(lua_State *L, rl_lua_memory *memory, size_t bytes);

/* They are not any more. For finalizers: does nothing but count. */
void rl_lua_memory_give_back(rl_lua_memory *memory, size_t bytes);

#endif /* RL_LUA_MEMORY_H */
