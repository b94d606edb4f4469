/*
 * Checks of arguments that come from Lua.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_ARGUMENT_H
#define RL_LUA_ARGUMENT_H

#include "rl_lua.h"

/* Raises an error with the position of level |level|. */
int rl_lua_misuse(lua_State *L, int level, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((noreturn))
#endif
    ;

/*
 * Returns the whole number at |index|, from |low| to |high|, or raises misuse of argument |name|.
 */
double rl_lua_check_whole(lua_State *L, int index, const char *name, const char *unit, double low,
                          double high);

/* The same for a duration: milliseconds in Lua, and so are the bounds. */
redlock_duration rl_lua_check_duration(lua_State *L, int index, const char *name, double low,
                                       double high);

#endif /* RL_LUA_ARGUMENT_H */
