/*
 * Frees the lock of a released lock object of nginx, and recreates it.
 *
 * SPDX-License-Identifier: MIT
 *
 * A request acquires a lock, releases it and ends. With a large heap, hundreds of thousands of such
 * objects wait for the garbage collector. Lua does not see the library's memory, which exceeds that
 * of the objects. So the release frees the lock. The object keeps the result, the votes and the
 * resource, and the next use recreates the lock. Locks on several resources are not freed.
 */
#ifndef RL_LUA_NGINX_RELEASED_H
#define RL_LUA_NGINX_RELEASED_H

#include <stddef.h>

#include "rl_lua_nginx_handle.h"

/* Functions of rl_lua_worker.h. The object has room for the copies behind its own bytes. */
size_t rl_lua_nginx_released_size(const rl_lua_client *client, size_t resource_length,
                                  int has_options);
int rl_lua_nginx_released_revive(lua_State *L, rl_lua_lock *self);

/* Frees a lock that was released, unless an operation or a lease still needs it. Calls no Lua. */
void rl_lua_nginx_released_free(rl_lua_lock *self);

#endif /* RL_LUA_NGINX_RELEASED_H */
