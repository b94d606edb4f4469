/*
 * Operations that requests of nginx wait for.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_NGINX_WAIT_H
#define RL_LUA_NGINX_WAIT_H

#include "rl_lua_nginx_handle.h"

/* Adds the functions to the table on top of the stack. */
void rl_lua_nginx_wait_register(lua_State *L);

/* Appends the sleepers of operations that have ended to the table at |list|, which has |count|
   entries. Returns the new number of entries. */
int rl_lua_nginx_wait_collect(lua_State *L, rl_lua_nginx *self, int list, int count);

/* Releases the locks of requests that have ended, and cancels their operations. Writes their
   sleepers into the table at |list| and returns their number. */
int rl_lua_nginx_wait_release_ended(lua_State *L, rl_lua_nginx *self, int list);

/* Detaches all locks from a handle that is being finalized. Calls no Lua. */
void rl_lua_nginx_wait_forget(rl_lua_nginx *self);

/* Detaches one lock that is being finalized. Calls no Lua. */
void rl_lua_nginx_wait_forget_lock(rl_lua_lock *self);

#endif /* RL_LUA_NGINX_WAIT_H */
