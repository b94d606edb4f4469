/*
 * C functions of nginx's driver, which has cosockets instead of sockets of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_NGINX_H
#define RL_LUA_NGINX_H

#include <lua.h>

/* Adds the table "nginx" of these functions to the module table on top of the stack. */
void rl_lua_nginx_register(lua_State *L);

#endif /* RL_LUA_NGINX_H */
