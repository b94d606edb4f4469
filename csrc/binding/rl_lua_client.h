/*
 * The client object.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_CLIENT_H
#define RL_LUA_CLIENT_H

#include "rl_lua.h"

/* Pushes an empty client object with everything that it needs of the Lua state, but no client. */
rl_lua_client *rl_lua_client_push(lua_State *L);

/* Registers the class, and leaves its table of methods on the stack. */
void rl_lua_client_register(lua_State *L);

/* The functions of the module table. */
int rl_lua_client_new(lua_State *L);
int rl_lua_client_add(lua_State *L);
int rl_lua_client_carry(lua_State *L);
int rl_lua_client_next_ended(lua_State *L);
int rl_lua_client_close_now(lua_State *L);
int rl_lua_client_shut(lua_State *L);
int rl_lua_client_owed(lua_State *L);
int rl_lua_client_alarm(lua_State *L);
int rl_lua_client_now(lua_State *L);

#endif /* RL_LUA_CLIENT_H */
