/*
 * Operations that requests of nginx wait for.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_NGINX_WAIT_H
#define RL_LUA_NGINX_WAIT_H

#include "rl_lua_nginx_handle.h"

/* Adds the functions of operations that requests wait for to the table on top of the stack. */
void rl_lua_nginx_wait_register(lua_State *L);

/*
 * Writes the slots of the operations that have ended into the table at |list|, behind the first
 * |count|, and returns how many there are then.
 */
int rl_lua_nginx_wait_collect(lua_State *L, rl_lua_nginx *self, int list, int count);

/*
 * Releases what belonged to requests that have ended, and ends their operations; their slots go into
 * the table at |list|. Returns how many.
 */
int rl_lua_nginx_wait_bury(lua_State *L, rl_lua_nginx *self, int list);

/* Detaches all locks from the handle, which is being finalized. Calls no Lua. */
void rl_lua_nginx_wait_forget(rl_lua_nginx *self);

/* The same for one lock, which is being finalized. */
void rl_lua_nginx_wait_forget_lock(rl_lua_lock *self);

#endif /* RL_LUA_NGINX_WAIT_H */
