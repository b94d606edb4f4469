/*
 * The core for drivers that own no sockets: OpenResty's, whose connections are cosockets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_MUX_H
#define RL_LUA_MUX_H

#include "rl_lua.h"

#define RL_LUA_MUX "redlock.mux/1"

/* Pushes the table of the functions that the driver is written with: redlock.core.mux. */
void rl_lua_mux_register(lua_State *L);

/*
 * Gives up a reference to a client whose sockets are the driver's. With the last one, what is still
 * to be released goes out over connections of its own, for which at most 100 ms are spent: this is
 * how a worker that ends leaves nothing locked. Calls no Lua.
 */
void rl_lua_mux_free_client(redlock_client *client);

#endif /* RL_LUA_MUX_H */
