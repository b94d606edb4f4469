/*
 * The lease owner of a lock of a re-entrant client: the coroutine that acquires it, the request, or
 * a name.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each coroutine and each request of nginx has a number, which is never reused, unlike an address.
 * A table with weak keys has the numbers of coroutines and keeps none of them alive. nginx reuses
 * the coroutines of its requests: if nginx does not report the end of requests, ngx.ctx keeps the
 * number (lua/redlock/nginx.lua).
 */
#ifndef RL_LUA_REENTRY_H
#define RL_LUA_REENTRY_H

#include "rl_lua.h"

/* Bytes of a name. A byte for the kind and a pointer precede it. */
#define RL_LUA_OWNER_NAME_MAX (REDLOCK_OWNER_MAX - 9)

/* Values of option 'reentrant'. */
typedef enum rl_lua_reentrant {
  RL_LUA_REENTRANT_UNSET = 0,
  RL_LUA_REENTRANT_NO,
  RL_LUA_REENTRANT_YES,
  RL_LUA_REENTRANT_NAMED /* the string is the owner's name */
} rl_lua_reentrant;

/* Reads the option from the table at |index|, if that is one. Pushes a name, and nothing else. */
rl_lua_reentrant rl_lua_reentry_read(lua_State *L, int index);

/* Stores the option of a new lock in the lock object on top of the stack. */
void rl_lua_reentry_note_lock(lua_State *L, rl_lua_lock *self);

/* Sets the owner before the lock at index 1 is acquired. nginx's request is at |request|, or that
   is 0. Returns REDLOCK_OK, or an error. */
int rl_lua_reentry_own(lua_State *L, rl_lua_lock *self, int request);

/* (function): sets the function that returns the number of the running request, or raises outside
   of one. */
int rl_lua_reentry_number_by(lua_State *L);

#endif /* RL_LUA_REENTRY_H */
