/*
 * Options: a Lua table becomes a struct of redlock.h, by the table of all options.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_OPTION_H
#define RL_LUA_OPTION_H

#include "rl_lua.h"

/*
 * Fills the struct |of| from the Lua table at |index|, by |table|; nil there, or in place of the whole
 * table, is 0 in the struct. Returns whether there was a table. Strings of the struct stay on the Lua
 * stack, and live as long as they do.
 */
int rl_lua_read_options(lua_State *L, int index, const rl_option_table *table, void *of, int level);

/*
 * The same for the options of a lock, whose auto_extend may be a table, and whose on_lost wants to be
 * told.
 */
int rl_lua_read_keeping(lua_State *L, int index, redlock_options *given, int level);

/* The same for the options of a lock, or of a call, that go over those |above|. */
int rl_lua_read_lock_options(lua_State *L, int index, const rl_options *above,
                             redlock_options *given, int level);

/*
 * Returns true if not one whole millisecond could be left of a lease with |given| over |above|, so that it
 * could never be acquired, and then a sentence.
 */
int rl_lua_lease_is_nothing(const rl_options *above, const redlock_options *given, char *message,
                            size_t size);

/* Returns true if option 'owner' of the table at |index| is "worker"; |absent| when it is nil. For nginx. */
int rl_lua_read_owner(lua_State *L, int index, int absent, int level);

/* Pushes { lock = rows, client = rows, node = rows, host = rows }; a row is { name =, field =, kind =, ... }. */
void rl_lua_push_option_tables(lua_State *L);

#endif /* RL_LUA_OPTION_H */
