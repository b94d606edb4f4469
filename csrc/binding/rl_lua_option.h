/*
 * Options: converts a Lua table to a struct of redlock.h by the option tables of the core.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_OPTION_H
#define RL_LUA_OPTION_H

#include "rl_lua.h"

/*
 * Fills the struct |of| by |table| from the Lua table at |index|; nil there, or instead of the Lua
 * table, is 0 in the struct. Returns 1 if there is a Lua table. The struct borrows strings that are
 * on the Lua stack.
 */
int rl_lua_read_options(lua_State *L, int index, const rl_option_table *table, void *of);

/* Reads options of a lock, with the parts of auto_extend, and sets notify_lost if there is an
   on_lost. */
int rl_lua_read_lease_options(lua_State *L, int index, redlock_options *given);

/* Reads options of a lock or a call into |given|, and checks that they fit together with those of
   |above|. Returns |given|, or NULL if there are none. */
const redlock_options *rl_lua_read_lock_options(lua_State *L, const rl_options *above,
                                                redlock_options *given);

/* Returns true and writes a message if a lease with |given| over |above| never has a whole
   millisecond left, so that it could never be acquired. */
int rl_lua_lease_is_empty(const rl_options *above, const redlock_options *given, char *message,
                          size_t size);

/* Returns true if option 'owner' of the table at |index| is "worker"; |absent| if it is nil. */
int rl_lua_read_owner(lua_State *L, int index, int absent);

/* (string) -> nothing if it may be a label, or why not. */
int rl_lua_label_complaint(lua_State *L);

/* Pushes { lock = rows, client = rows, node = rows, host = rows }; a row is { name =, field =, kind
   =, ... }. */
void rl_lua_push_option_tables(lua_State *L);

#endif /* RL_LUA_OPTION_H */
