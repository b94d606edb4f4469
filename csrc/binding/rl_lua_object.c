/*
 * Classes of userdata, and the client or lock that a method is called on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_object.h"

#include "rl_lua_argument.h"
#include "rl_lua_credentials.h"
#include "rl_lua_loss.h"
#include "rl_lua_worker.h"

void rl_lua_class(lua_State *L, const char *name, const char *public_name,
                  const luaL_Reg *metamethods, const luaL_Reg *methods) {
  if (!luaL_newmetatable(L, name)) {
    /* The module was loaded before in this state: its objects and the new ones are of one class. */
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
    return;
  }
  luaL_setfuncs(L, metamethods, 0);
  lua_pushstring(L, public_name);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__name");
  lua_setfield(L, -2, "__metatable");
  /* A table of its own, so that scripts do not find the metamethods as methods. */
  lua_newtable(L);
  luaL_setfuncs(L, methods, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__index");
  lua_remove(L, -2);
}

static void *check_self(lua_State *L, const char *class, const char *noun, const char *method,
                        int level) {
  void *userdata = luaL_testudata(L, 1, class);
  if (userdata == NULL) {
    const char *kind = luaL_testudata(L, 1, RL_LUA_CLIENT) != NULL ? "redlock client"
                       : luaL_testudata(L, 1, RL_LUA_LOCK) != NULL ? "redlock lock"
                                                                   : luaL_typename(L, 1);
    rl_lua_misuse(L, level, "redlock: %s needs a %s before the colon, got %s%s", method, noun,
                  lua_isnoneornil(L, 1) ? "" : "a ", lua_isnoneornil(L, 1) ? "nil" : kind);
  }
  return userdata;
}

/*
 * Each call into the module reports losses and events, and asks for credentials, unless a driver in
 * Lua does.
 */
static void serve(lua_State *L, rl_lua_anchor *anchor, redlock_client *client) {
  rl_lua_tend(anchor);
  if ((client->has_on_lost || client->has_on_event) &&
      !client->driver_reports_losses) /* First: the credentials function may block. */
    rl_lua_loss_run(L, client);
  if (rl_lua_credentials_wanted(client) && rl_lua_credentials_run(L, client))
    lua_error(L);
}

rl_lua_client *rl_lua_check_client(lua_State *L, int level, const char *method) {
  rl_lua_client *self = check_self(L, RL_LUA_CLIENT, "client", method, level);

  if (self->client == NULL)
    rl_lua_misuse(L, level, "redlock: %s on a client that has been collected", method);
  serve(L, self->anchor, self->client);
  return self;
}

rl_lua_lock *rl_lua_check_lock(lua_State *L, int level, const char *method) {
  rl_lua_lock *self = check_self(L, RL_LUA_LOCK, "lock", method, level);

  if (!rl_lua_worker_revive(L, self))
    rl_lua_misuse(L, level, "redlock: %s on a lock that has been collected", method);
  serve(L, self->client->anchor, redlock_lock_client(self->lock));
  return self;
}
