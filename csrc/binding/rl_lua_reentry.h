/*
 * Whose a lock of a re-entrant client is: the coroutine that acquires it, the request, or a name.
 *
 * SPDX-License-Identifier: MIT
 *
 * A coroutine has a number for as long as it exists, and a request of nginx has one: a number is never used
 * twice, as addresses are. That of a coroutine stands in a table of the Lua state with weak keys, which keeps
 * nothing alive. nginx uses the coroutines of its requests again: where it does not tell of their ends, it is
 * ngx.ctx that has the number (lua/redlock/nginx.lua).
 */
#ifndef RL_LUA_REENTRY_H
#define RL_LUA_REENTRY_H

#include "rl_lua.h"

/* Bytes of a name: a byte that says what it is goes before it, and a pointer. */
#define RL_LUA_OWNER_NAME_MAX (REDLOCK_OWNER_MAX - 9)

/* What option 'reentrant' has said. */
typedef enum rl_lua_reentrant {
  RL_LUA_REENTRANT_UNSAID = 0,
  RL_LUA_REENTRANT_NO,
  RL_LUA_REENTRANT_YES,
  RL_LUA_REENTRANT_NAMED /* the string is the owner's name */
} rl_lua_reentrant;

/*
 * Reads it from the options at |index|; what is no table says nothing. A name is left on the stack, else
 * nothing is.
 */
rl_lua_reentrant rl_lua_reentry_read(lua_State *L, int index, int level);

/* The lock on top of the stack was made with the options at |index|. */
void rl_lua_reentry_note_lock(lua_State *L, rl_lua_lock *self, int index);

/*
 * The lock at index 1 is about to be acquired with the options at |index|: says whose it is. That of nginx
 * is at |request|, or 0. Returns REDLOCK_OK, or an error.
 */
int rl_lua_reentry_own(lua_State *L, rl_lua_lock *self, int index, int request);

/* (function): returns the number of the request that runs, or raises an error where there is none. */
int rl_lua_reentry_number_by(lua_State *L);

#endif /* RL_LUA_REENTRY_H */
