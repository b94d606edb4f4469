/*
 * What is left of a lock of nginx that was released.
 *
 * SPDX-License-Identifier: MIT
 *
 * A request takes a lock, releases it and ends, and the object waits for the garbage collector: beside
 * a large heap, with hundreds of thousands of others. What the library keeps for a lock is more than the
 * object, and Lua does not see it. So it is given back with the release. What the object may still be
 * asked fits into it, and if it is used again, the lock is made again. A lock on several resources is kept.
 */
#ifndef RL_LUA_NGINX_RELEASED_H
#define RL_LUA_NGINX_RELEASED_H

#include <stddef.h>

#include "rl_lua_nginx_handle.h"

/* The functions of rl_lua_worker.h. The object has room for what is left behind its own bytes. */
size_t rl_lua_nginx_released_size(const rl_lua_client *client, size_t resource_length,
                                  int has_options);
int rl_lua_nginx_released_revive(lua_State *L, rl_lua_lock *self);

/* The lock has been released: gives it back, if nothing of it is needed any more. Calls no Lua. */
void rl_lua_nginx_released_give_back(rl_lua_lock *self);

#endif /* RL_LUA_NGINX_RELEASED_H */
