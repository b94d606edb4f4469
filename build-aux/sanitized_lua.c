/*
 * A Lua interpreter for the sanitizer runs: as much of lua(1) as busted and the specs need.
 *
 *     sanitized-lua [-e code | -l module]... [script [argument...]]
 *
 * SPDX-License-Identifier: MIT
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int traceback(lua_State *L) {
  lua_getglobal(L, "debug");
  lua_getfield(L, -1, "traceback");
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 2);
  lua_call(L, 2, 1);
  return 1;
}

static lua_State *interrupted;

static void stop(lua_State *L, lua_Debug *about) {
  (void)about;
  lua_sethook(L, NULL, 0, 0);
  luaL_error(L, "interrupted!");
}

/* Ctrl-C does what it does in lua(1). */
static void handle(int number) {
  signal(number, SIG_DFL);
  lua_sethook(interrupted, stop, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

/* Calls the function below |arguments| values, as lua(1) does. */
static int call(lua_State *L, int arguments) {
  int handler = lua_gettop(L) - arguments;
  lua_pushcfunction(L, traceback);
  lua_insert(L, handler);
  interrupted = L;
  signal(SIGINT, handle);
  int status = lua_pcall(L, arguments, 0, handler);
  signal(SIGINT, SIG_DFL);
  if (status != 0) {
    const char *message = lua_tostring(L, -1);
    fprintf(stderr, "sanitized-lua: %s\n", message != NULL ? message : "(error is not a string)");
    lua_pop(L, 1);
  }
  lua_remove(L, handler);
  return status;
}

static int load_failed(lua_State *L) {
  fprintf(stderr, "sanitized-lua: %s\n", lua_tostring(L, -1));
  return 1;
}

static int run(lua_State *L, int argc, char **argv) {
  int i = 1;
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    int arguments = 0;
    if (strcmp(argv[i], "-e") == 0) {
      if (luaL_loadbuffer(L, argv[i + 1], strlen(argv[i + 1]), "=(command line)") != 0) {
        return load_failed(L);
      }
    } else {
      lua_getglobal(L, "require");
      lua_pushstring(L, argv[i + 1]);
      arguments = 1;
    }
    if (call(L, arguments) != 0) {
      return 1;
    }
  }
  lua_newtable(L);
  for (int j = 0; j < argc; j++) {
    lua_pushstring(L, argv[j]);
    lua_rawseti(L, -2, j - i);
  }
  lua_setglobal(L, "arg");
  if (i >= argc) {
    return 0;
  }
  if (luaL_loadfile(L, argv[i]) != 0) {
    return load_failed(L);
  }
  for (int j = i + 1; j < argc; j++) {
    lua_pushstring(L, argv[j]);
  }
  return call(L, argc - i - 1);
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  if (L == NULL) {
    return 1;
  }
  luaL_openlibs(L);
  int status = run(L, argc, argv);
  lua_close(L);
  return status == 0 ? 0 : 1;
}
