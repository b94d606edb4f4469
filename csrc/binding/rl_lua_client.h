/*
 * The client object.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_CLIENT_H
#define RL_LUA_CLIENT_H

#include "rl_lua.h"

/* Pushes a client object that is complete but for the client itself. */
rl_lua_client *rl_lua_client_push(lua_State *L);

#endif /* RL_LUA_CLIENT_H */
