/*
 * Results: values that methods return to Lua.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_RESULT_H
#define RL_LUA_RESULT_H

#include "rl_lua.h"

/* Copies as much of |text| as fits, but no half of a UTF-8 sequence. NULL is an empty text. */
void rl_lua_copy(char *destination, size_t size, const char *text);

/* Copies a message and spells settings of TLS as Lua does: "tls_ca" becomes "tls.ca". */
void rl_lua_copy_message(char *destination, size_t size, const char *text);

/* Pushes a whole number below 2^53. */
void rl_lua_push_whole(lua_State *L, uint64_t number);

/* Pushes whole milliseconds, rounded down. */
void rl_lua_push_milliseconds(lua_State *L, redlock_duration duration);

/* Pushes fractional seconds; nil for NEVER. */
void rl_lua_push_seconds(lua_State *L, redlock_duration duration);

/* Set a field of the table on top of the stack. No field is set to an empty text or NULL. */
void rl_lua_set_text(lua_State *L, const char *field, const char *text);
void rl_lua_set_message(lua_State *L, const char *field, const char *message);
void rl_lua_set_whole(lua_State *L, const char *field, uint64_t number);
void rl_lua_set_boolean(lua_State *L, const char *field, bool value);

/* Sets field "latency": fractional milliseconds, nothing for NEVER. */
void rl_lua_set_latency(lua_State *L, redlock_duration latency_us);

/* Pushes true and returns 1, for a method that returns it. */
int rl_lua_push_true(lua_State *L);

/* Pushes nil, a message and a code; raises an error instead if the caller made a mistake. The
   message is redlock_strerror(error) if |message| is NULL or empty. */
int rl_lua_push_error(lua_State *L, int error, const char *message, int level);

/* Pushes the list of the codes that methods return. */
void rl_lua_push_codes(lua_State *L);

#endif /* RL_LUA_RESULT_H */
