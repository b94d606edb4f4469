/*
 * What drivers written in Lua see of credentials.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_credentials_methods.h"

#include "rl_lua_credentials.h"
#include "rl_lua_object.h"

/* (client): a driver in Lua asks the function. */
static int credentials_by_driver(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "redlock.new()");

  rl_client_enter(self->client);
  self->client->asked_by_driver = true;
  rl_client_leave(self->client);
  return 0;
}

/* (client) -> its function, the name and the number of the next node that it is to be asked for; or nothing. */
static int credentials_next(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "next_asked()");
  char name[RL_LUA_NAME_SIZE];
  unsigned node;

  if (self->client->settings.credentials != rl_lua_credentials_later ||
      !rl_lua_credentials_take(self->client, 0, &node, name))
    return 0;
  rl_lua_credentials_push(L, 1);
  lua_pushstring(L, name);
  lua_pushinteger(L, (lua_Integer)node + 1);
  return 3;
}

/* (client, number of a node, what pcall() has returned of the function ...). */
static int credentials_give(lua_State *L) {
  rl_lua_client *self = rl_lua_check_client(L, RL_LUA_WRAPPED, "give_credentials()");
  lua_Integer node = luaL_checkinteger(L, 2);
  rl_lua_credentials_answer answer;

  lua_settop(L, 5);
  rl_lua_credentials_read(L, 3, &answer);
  rl_lua_credentials_give(self->client, (unsigned)(node - 1), &answer);
  return 0;
}

/* (client) -> its function, or nil. */
static int credentials_of(lua_State *L) {
  (void)rl_lua_check_client(L, RL_LUA_WRAPPED, "credentials_of()");
  rl_lua_credentials_push(L, 1);
  return 1;
}

void rl_lua_credentials_register(lua_State *L) {
  static const luaL_Reg functions[] = {{"asked_by_driver", credentials_by_driver},
                                       {"next_asked", credentials_next},
                                       {"give_credentials", credentials_give},
                                       {"credentials_of", credentials_of},
                                       {NULL, NULL}};

  luaL_setfuncs(L, functions, 0);
}
