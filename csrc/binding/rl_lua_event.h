/*
 * Option 'on_event': the function that receives the events of a client.
 *
 * SPDX-License-Identifier: MIT
 *
 * Only the user value of the client object refers to the function, as for 'credentials'. Events are
 * reported where losses are (rl_lua_loss.h).
 */
#ifndef RL_LUA_EVENT_H
#define RL_LUA_EVENT_H

#include "rl_lua.h"

#define RL_LUA_ON_EVENT 10 /* in the user value of the client */

/* Creates the table that maps clients to their objects, unless the Lua state has one. */
void rl_lua_event_init(lua_State *L);

/*
 * Stores on_event of the options at |index| in the client object on top of the stack, and turns
 * events on. Returns REDLOCK_OK or REDLOCK_E_NO_MEMORY.
 */
int rl_lua_event_note_client(lua_State *L, rl_lua_client *self, int index);

/* Takes the next event. Pushes on_event, a table and nil, and returns 3; or returns 0. */
int rl_lua_event_take(lua_State *L, redlock_client *client);

#endif /* RL_LUA_EVENT_H */
