/*
 * Debug hooks that are set while C waits: Ctrl-C.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rl_lua_hook.h"

#include <stddef.h>

/* Returns the main thread; in Lua 5.1, which cannot find it, and in LuaJIT, whose hooks are global,
   |L|. */
static lua_State *main_thread(lua_State *L) {
  lua_State *main = L;

#if LUA_VERSION_NUM >= 502
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  main = lua_tothread(L, -1);
  lua_pop(L, 1);
#endif
  return main;
}

static int is_new(lua_State *L, lua_Hook known) {
  lua_Hook hook = lua_gethook(L);

  return hook != NULL && hook != known;
}

void rl_lua_hook_note(lua_State *L, rl_lua_hook *known, bool runs) {
  *known = (rl_lua_hook){.main = main_thread(L)};
  if (!runs) {
    known->own = lua_gethook(L);
    known->of_main = lua_gethook(known->main);
  }
}

int rl_lua_hook_is_new(lua_State *L, const rl_lua_hook *known) {
  return is_new(L, known->own) || is_new(known->main, known->of_main);
}

static int nothing(lua_State *L) {
  (void)L;
  return 0;
}

int rl_lua_hook_run(lua_State *L, rl_lua_hook *known) {
  if (!is_new(L, known->own)) {
    lua_sethook(L, lua_gethook(known->main), lua_gethookmask(known->main),
                lua_gethookcount(known->main));
  }
  /* Do not run a hook again that has returned. */
  known->own = lua_gethook(L);
  known->of_main = lua_gethook(known->main);
  lua_pushcfunction(L, nothing);
  return lua_pcall(L, 0, 0, 0);
}
