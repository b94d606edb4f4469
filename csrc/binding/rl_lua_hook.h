/*
 * Debug hooks that are set while C waits: Ctrl-C.
 *
 * SPDX-License-Identifier: MIT
 *
 * The SIGINT handlers of lua(1) and luajit(1) only set a hook, which raises an error in the next
 * Lua code. A call that blocks in C must therefore run such a hook.
 */
#ifndef RL_LUA_HOOK_H
#define RL_LUA_HOOK_H

#include <stdbool.h>

#include <lua.h>

#include "redlock.h"

/* Time between two looks for a hook: a signal just before the wait, or in another thread, does not
   end it. */
#define RL_LUA_HOOK_PATIENCE (100 * REDLOCK_MILLISECONDS)

typedef struct rl_lua_hook {
  lua_State *main; /* thread whose hook signal handlers set, whatever coroutine runs */
  lua_Hook own;    /* hooks that were set before */
  lua_Hook of_main;
} rl_lua_hook;

/*
 * Notes the hooks that are set before the wait, which do not end it. A wait that |runs| hooks notes
 * none, so that it also runs one that a signal has set just before.
 */
void rl_lua_hook_note(lua_State *L, rl_lua_hook *known, bool runs);

/* Returns true if a hook has been set since. */
int rl_lua_hook_is_new(lua_State *L, const rl_lua_hook *known);

/* Runs the hook. Returns 0; or the status of lua_pcall(), with the error on the stack for the
   caller to raise. */
int rl_lua_hook_run(lua_State *L, rl_lua_hook *known);

#endif /* RL_LUA_HOOK_H */
