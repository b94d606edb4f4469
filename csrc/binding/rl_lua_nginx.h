/*
 * The core for drivers that own no sockets: OpenResty's, whose connections are cosockets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_NGINX_H
#define RL_LUA_NGINX_H

#include <lua.h>

/* Pushes the table of the functions that the driver is written with: redlock.core.nginx. */
void rl_lua_nginx_register(lua_State *L);

#endif /* RL_LUA_NGINX_H */
