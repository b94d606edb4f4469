/*
 * Calls: the operations that a script can begin, with all that the binding knows of each.
 *
 * SPDX-License-Identifier: MIT
 *
 * A new method that waits is a line in the table of rl_lua_call.c, with the functions that begin it and push
 * what it returns, and its declarations in types.lua. lock.lua, cqueues.lua and nginx.lua make their methods by core.calls, which is
 * this table; a new kind of argument is a function in options.arguments (options.lua).
 */
#ifndef RL_LUA_CALL_H
#define RL_LUA_CALL_H

#include <stdbool.h>

#include "rl_lua.h"

/* Who carries an operation on once it has begun. */
typedef enum rl_lua_driver {
  RL_LUA_BLOCKING, /* the call itself, which waits for its end */
  RL_LUA_LOOP,     /* the loop that calls client:process() */
  RL_LUA_WORKER    /* nginx's driver */
} rl_lua_driver;

typedef struct rl_lua_call {
  const char *name;       /* in core.calls */
  const char *method;     /* as messages name it */
  const char *of;         /* whose method it is, "lock" or "client"; "driver" when it is none */
  const char *argument;   /* in options.arguments: what checks it */
  rl_operation operation; /* what lock:result() tells of */
  bool unheard;           /* nginx: nobody asks what became of it */
  /* Begins it, with its argument at |index|. Returns REDLOCK_OK, or why it was not begun. */
  int (*begin)(lua_State *L, rl_lua_lock *self, int index, rl_lua_driver driver);
  /* Pushes what the method returns when it has ended well; |validity| is what is left of the lease. */
  void (*push)(lua_State *L, rl_lua_lock *self, redlock_duration validity);
} rl_lua_call;

/* The call whose code is at |index|, or an error. */
const rl_lua_call *rl_lua_check_call(lua_State *L, int index);

/* Pushes what |operation| of |self|, which ended well, returns. */
void rl_lua_push_success(lua_State *L, rl_lua_lock *self, rl_operation operation,
                         redlock_duration validity);

/* Pushes { acquire = { code =, of =, argument = }, ... }. */
void rl_lua_push_calls(lua_State *L);

#endif /* RL_LUA_CALL_H */
