/*
 * Arguments: what Lua hands in, checked.
 *
 * SPDX-License-Identifier: MIT
 *
 * The Lua side of the module has checked most of this already, with better words. The checks here
 * make sure that no script can reach the library with something that it does not expect.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "rl_lua.h"
#include "rl_lua_credentials.h"
#include "rl_lua_loss.h"
#include "rl_lua_nginx_released.h"

/* The longest duration that is accepted, in milliseconds. */
#define DURATION_MAX ((double)(REDLOCK_TTL_MAX_US / REDLOCK_MILLISECONDS))

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

static void *check_self(lua_State *L, const char *class, const char *noun, const char *method,
                        int level) {
  void *userdata = luaL_testudata(L, 1, class);
  if (userdata == NULL) {
    rl_lua_misuse(L, level, "redlock: %s needs a %s before the colon, got %s%s", method, noun,
                  lua_isnoneornil(L, 1) ? "" : "a ",
                  lua_isnoneornil(L, 1) ? "nil" : luaL_typename(L, 1));
  }
  return userdata;
}

/* Lua code is told of losses, and asked for credentials, by the next call into the module. */
static void tell(lua_State *L, redlock_client *client) {
  if (client->tells && !client->told_by_driver) /* Before a function that may block. */
    rl_lua_loss_run(L, client);
  if (rl_lua_credentials_wanted(client) && rl_lua_credentials_run(L, client))
    lua_error(L);
}

rl_lua_client *rl_lua_check_client(lua_State *L, int level, const char *method) {
  rl_lua_client *self = check_self(L, RL_LUA_CLIENT, "client", method, level);
  if (self->client == NULL) {
    rl_lua_misuse(L, level, "redlock: %s on a client that has been collected", method);
  }
  rl_lua_tend(self->sentinel);
  tell(L, self->client);
  return self;
}

rl_lua_lock *rl_lua_check_lock(lua_State *L, int level, const char *method) {
  rl_lua_lock *self = check_self(L, RL_LUA_LOCK, "lock", method, level);
  if (!rl_lua_nginx_released_revive(L, self)) {
    rl_lua_misuse(L, level, "redlock: %s on a lock that has been collected", method);
  }
  rl_lua_tend(self->sentinel);
  tell(L, redlock_lock_client(self->lock));
  return self;
}

double rl_lua_check_whole(lua_State *L, int index, const char *name, const char *unit, double low,
                          double high, int level) {
  char limit[32], got[32];
  double value;

  /* luaL_checkinteger() cuts fractions off in some versions, and takes NaN for a number; "%f" of
     lua_pushfstring() looks different in each. */
  (void)snprintf(limit, sizeof limit, "%.14g", low);
  if (lua_type(L, index) != LUA_TNUMBER) {
    rl_lua_misuse(L, level, "redlock: %s must be an integer >= %s%s, got a %s", name, limit, unit,
                  luaL_typename(L, index));
  }
  value = (double)lua_tonumber(L, index);
  (void)snprintf(got, sizeof got, "%.14g", value);
  if (!(value >= low) || floor(value) != value) {
    rl_lua_misuse(L, level, "redlock: %s must be an integer >= %s%s, got %s", name, limit, unit,
                  value != value ? "nan" : got);
  }
  if (value > high) {
    (void)snprintf(limit, sizeof limit, "%.14g", high);
    rl_lua_misuse(L, level, "redlock: %s must be at most %s%s, got %s", name, limit, unit, got);
  }
  return value;
}

redlock_duration rl_lua_check_duration(lua_State *L, int index, const char *name, double low,
                                       int level) {
  return (redlock_duration)rl_lua_check_whole(L, index, name, " (milliseconds)", low, DURATION_MAX,
                                              level) *
         REDLOCK_MILLISECONDS;
}
