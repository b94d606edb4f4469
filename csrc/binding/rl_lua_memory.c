/*
 * Memory that Lua's collector does not see.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_memory.h"

#include "rl_lua_compat.h"

#define RL_LUA_MEMORY_BATCH ((size_t)32 * 1024)

/* Lua 5.1 does not know this request; LuaJIT, which loads modules built for 5.1, does. */
#ifndef LUA_GCISRUNNING
#define LUA_GCISRUNNING 9
#endif

void rl_lua_memory_take(lua_State *L, rl_lua_memory *memory, size_t bytes) {
  size_t seen, batch;

  memory->unseen += bytes;
  memory->untold += bytes;
  if (memory->untold < RL_LUA_MEMORY_BATCH)
    return;
  batch = memory->untold;
  memory->untold = 0;
  seen = (size_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024;
  if (memory->unseen < seen / 2)
    return;
  switch (lua_gc(L, LUA_GCISRUNNING, 0)) {
  case 0:
    break; /* The program has stopped the collector. */
  case 1:
    (void)lua_gc(L, LUA_GCSTEP, rl_lua_gc_step(batch));
    break;
  default:
    /* A step would restart a stopped collector. Garbage of the same size does not. */
    (void)lua_newuserdata(L, batch);
    lua_pop(L, 1);
    break;
  }
}

void rl_lua_memory_give_back(rl_lua_memory *memory, size_t bytes) {
  memory->unseen -= bytes < memory->unseen ? bytes : memory->unseen;
}
