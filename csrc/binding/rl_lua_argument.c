/*
 * Checks of arguments that come from Lua.
 *
 * SPDX-License-Identifier: MIT
 *
 * The module's Lua code has checked most arguments already, with better messages. These checks keep
 * unexpected values of any script from the library.
 */
#include "rl_lua_argument.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

int rl_lua_misuse(lua_State *L, int level, const char *format, ...) {
  va_list arguments;

  luaL_where(L, level);
  va_start(arguments, format);
  lua_pushvfstring(L, format, arguments);
  va_end(arguments);
  lua_concat(L, 2);
  lua_error(L);
  for (;;) {
    /* lua_error() does not return; its declaration does not say so in every version. */
  }
}

double rl_lua_check_whole(lua_State *L, int index, const char *name, const char *unit, double low,
                          double high) {
  char limit[32], got[32];
  double value;

  /* luaL_checkinteger() truncates fractions in some versions and accepts NaN. "%f" of
     lua_pushfstring() looks different in each version. */
  (void)snprintf(limit, sizeof limit, "%.14g", low);
  if (lua_type(L, index) != LUA_TNUMBER) {
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must be an integer >= %s%s, got a %s", name,
                  limit, unit, luaL_typename(L, index));
  }
  value = (double)lua_tonumber(L, index);
  (void)snprintf(got, sizeof got, "%.14g", value);
  if (!(value >= low) || floor(value) != value) {
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must be an integer >= %s%s, got %s", name, limit,
                  unit, value != value ? "nan" : got);
  }
  if (value > high) {
    (void)snprintf(limit, sizeof limit, "%.14g", high);
    rl_lua_misuse(L, RL_LUA_WRAPPED, "redlock: %s must be at most %s%s, got %s", name, limit, unit,
                  got);
  }
  return value;
}

redlock_duration rl_lua_check_duration(lua_State *L, int index, const char *name, double low,
                                       double high) {
  return (redlock_duration)rl_lua_check_whole(L, index, name, " (milliseconds)", low, high) *
         REDLOCK_MILLISECONDS;
}
