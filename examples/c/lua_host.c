/*
 * A program that embeds Lua, makes the client, and hands it to a script as its argument. The module
 * is linked in: LUA_PATH only has to find lua/redlock.lua.
 *
 *     lua_host script.lua 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
 *     cc lua_host.c -lredlock-lua5.4 -llua5.4 -lhiredis -pthread   (instead of -lredlock)
 *
 * SPDX-License-Identifier: MIT
 */
#include <redlock.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdio.h>

/* Runs protected: everything in here may raise. Takes the script's name and the client. */
static int run_script(lua_State *L) {
  const char *script = lua_touserdata(L, 1);
  redlock_client *client = lua_touserdata(L, 2);
  luaL_openlibs(L);

  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, luaopen_redlock_core);
  lua_setfield(L, -2, "redlock.core");
  lua_getglobal(L, "require");
  lua_pushliteral(L, "redlock");
  lua_call(L, 1, 0);

  if (luaL_loadfile(L, script) != 0) {
    return lua_error(L);
  }
  redlock_lua_push_client(L, client);
  lua_call(L, 1, 0);
  return 0;
}

static int host(redlock_client *client, char *script) {
  int status = 1;
  lua_State *L = luaL_newstate();
  if (L == NULL) {
    return status;
  }
  lua_pushcfunction(L, run_script);
  lua_pushlightuserdata(L, script);
  lua_pushlightuserdata(L, client);
  if (lua_pcall(L, 2, 0, 0) == 0) {
    status = 0;
  } else {
    const char *what = lua_tostring(L, -1);
    fprintf(stderr, "%s\n", what != NULL ? what : "an error that is no string");
  }
  lua_close(L);
  return status;
}

int main(int argc, char **argv) {
  char message[256];
  redlock_client *client = NULL;
  int status = 1;

  if (argc < 3) {
    fprintf(stderr, "usage: %s script.lua address...\n", argv[0]);
    return 2;
  }
  int error = redlock_client_new(&client, NULL, message, sizeof message);
  for (int i = 2; i < argc && error == REDLOCK_OK; i++) {
    error = redlock_client_add(client, argv[i], message, sizeof message);
  }
  if (error != REDLOCK_OK) {
    fprintf(stderr, "%s\n", message);
  } else {
    status = host(client, argv[1]);
  }
  redlock_client_free(client);
  return status;
}
