/*
 * Hooks that are set while C waits: Ctrl-C.
 *
 * SPDX-License-Identifier: MIT
 *
 * The handler that lua(1) and luajit(1) have for SIGINT can do no more than set a hook, which raises
 * an error in whatever Lua does next. A call that blocks in C therefore has to let such a hook run.
 */
#ifndef RL_LUA_HOOK_H
#define RL_LUA_HOOK_H

#include <lua.h>

#include "redlock.h"

/*
 * A signal that comes just before the wait does not end it, nor one that another thread takes. The hook is
 * looked for as often as this.
 */
#define RL_LUA_HOOK_PATIENCE (100 * REDLOCK_MILLISECONDS)

typedef struct rl_lua_hook {
  lua_State *main; /* signal handlers know this one, whatever coroutine is running */
  lua_Hook own;    /* the hooks that were there before */
  lua_Hook of_main;
} rl_lua_hook;

/* Notes the hooks that are there, which are no reason to stop waiting. To be called before waiting. */
void rl_lua_hook_note(lua_State *L, rl_lua_hook *known);

/* The same for a wait that can run hooks: a hook that a signal has set just before is run once, like each other. */
void rl_lua_hook_note_none(lua_State *L, rl_lua_hook *known);

/* Returns true if one has been set since. */
int rl_lua_hook_is_new(lua_State *L, const rl_lua_hook *known);

/* Lets it run. Returns 0, or what lua_pcall() does, with an error on the stack that is to be raised. */
int rl_lua_hook_run(lua_State *L, rl_lua_hook *known);

#endif /* RL_LUA_HOOK_H */
