/*
 * Arguments: what Lua hands in, checked.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_ARGUMENT_H
#define RL_LUA_ARGUMENT_H

#include "rl_lua.h"

/* Raises a sentence at the line that called level |level|. */
int rl_lua_misuse(lua_State *L, int level, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((noreturn))
#endif
    ;

/* A whole number between |low| and |high| at |index|, or misuse of |name|. */
double rl_lua_check_whole(lua_State *L, int index, const char *name, const char *unit, double low,
                          double high, int level);

/* The same for a duration: milliseconds in Lua. */
redlock_duration rl_lua_check_duration(lua_State *L, int index, const char *name, double low,
                                       int level);

#endif /* RL_LUA_ARGUMENT_H */
