/*
 * The object that a method is called on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_object.h"

#include "rl_lua_argument.h"
#include "rl_lua_credentials.h"
#include "rl_lua_loss.h"
#include "rl_lua_sentinel.h"
#include "rl_lua_worker.h"

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
  if (!rl_lua_worker_revive(L, self)) {
    rl_lua_misuse(L, level, "redlock: %s on a lock that has been collected", method);
  }
  rl_lua_tend(self->sentinel);
  tell(L, redlock_lock_client(self->lock));
  return self;
}
