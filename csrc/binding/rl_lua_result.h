/*
 * Results: what goes back to Lua.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_RESULT_H
#define RL_LUA_RESULT_H

#include "rl_lua.h"

/* Copies as much of |text| as fits; NULL is an empty text. Cuts no UTF-8 sequence in two. */
void rl_lua_copy(char *destination, size_t size, const char *text);

/* The same for a message, which calls a setting of TLS as C does: it becomes "tls.ca", as Lua spells it. */
void rl_lua_copy_message(char *destination, size_t size, const char *text);

/* Pushes a whole number below 2^53. */
void rl_lua_push_whole(lua_State *L, uint64_t number);

/* Pushes whole milliseconds, rounded down. */
void rl_lua_push_milliseconds(lua_State *L, redlock_duration duration);

/* Sets a field of the table on top of the stack: fractional milliseconds, nothing for NEVER. */
void rl_lua_set_latency(lua_State *L, redlock_duration latency);

/*
 * Pushes nil, a message and a code, or raises what is a mistake of the caller. |message| may be NULL
 * or empty: the error's own sentence is used then.
 */
int rl_lua_push_error(lua_State *L, int error, const char *message, int level);

/* Pushes the list of the codes that are returned. */
void rl_lua_push_codes(lua_State *L);

#endif /* RL_LUA_RESULT_H */
