/*
 * Calls: the operations that a script can begin, with all that the binding knows of each.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new method that waits is a line in the table of rl_lua_call.c with the function that begins it, and its
 * declarations in types.lua. lock.lua, cqueues.lua and nginx.lua make their methods by core.calls, which is
 * this table; a new kind of argument is a function in options.arguments (options.lua).
 */
#ifndef RL_LUA_CALL_H
#define RL_LUA_CALL_H

#include "rl_lua.h"

/* Who carries an operation on once it has begun. */
typedef enum rl_lua_driver {
  RL_LUA_BLOCKING, /* the call itself, which waits for its end */
  RL_LUA_LOOP,     /* the loop that calls client:process() */
  RL_LUA_WORKER    /* nginx's driver */
} rl_lua_driver;

/* As Lua numbers them. */
typedef enum rl_lua_call_code {
  RL_LUA_CALL_ACQUIRE = 1,
  RL_LUA_CALL_EXTEND,
  RL_LUA_CALL_RELEASE,
  RL_LUA_CALL_RELEASE_FORGET, /* nginx: in a phase in which nothing can be waited for */
  RL_LUA_CALL_RELEASE_SEND,   /* nginx: what became of it may be asked later */
  RL_LUA_CALL_INSPECT,
  RL_LUA_CALL_FORCE_RELEASE,
  RL_LUA_CALL_COUNT
} rl_lua_call_code;

typedef struct rl_lua_call {
  const char *name;       /* in core.calls */
  const char *method;     /* as messages name it */
  const char *of;         /* whose method it is, "lock" or "client"; "driver" when it is none */
  const char *argument;   /* in options.arguments: what checks it */
  rl_operation operation; /* what lock:result() tells of */
  /* Begins it, with its argument at |index|. Returns REDLOCK_OK, or why it was not begun. */
  int (*begin)(lua_State *L, rl_lua_lock *self, int index, rl_lua_driver driver);
} rl_lua_call;

/* The call whose code is at |index|, or an error. */
const rl_lua_call *rl_lua_check_call(lua_State *L, int index);

/* Pushes { acquire = { code =, of =, argument = }, ... }. */
void rl_lua_push_calls(lua_State *L);

#endif /* RL_LUA_CALL_H */
