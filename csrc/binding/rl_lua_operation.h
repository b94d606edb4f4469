/*
 * The operations that a script can start.
 *
 * SPDX-License-Identifier: MIT
 *
 * lock.lua, loop.lua and nginx.lua make their methods from core.operations, which is the table of
 * rl_lua_operation.c. A new kind of argument is a function in options.arguments (options.lua).
 * CONTRIBUTING.md has the recipe of a new method (A method in Lua).
 */
#ifndef RL_LUA_OPERATION_H
#define RL_LUA_OPERATION_H

#include "api/rl_handle_run.h"
#include "rl_lua.h"

/* The driver that carries on an operation once it has begun. */
typedef enum rl_lua_driver {
  RL_LUA_BLOCKING, /* the call itself, which waits for the end */
  RL_LUA_LOOP,     /* the loop that calls client:process() */
  RL_LUA_WORKER    /* nginx's driver */
} rl_lua_driver;

typedef struct rl_lua_operation {
  const char *name;     /* in core.operations */
  const char *method;   /* name in messages */
  const char *of;       /* "lock" or "client", which has the method; "driver" if it is no method */
  const char *argument; /* name in options.arguments of the function that checks the argument */
  rl_operation operation; /* operation that lock:result() reports */
  bool forget;            /* nginx: fire-and-forget */
  /* Reads its argument into |request|, and begins it. Returns REDLOCK_OK, or an error. */
  int (*begin)(lua_State *L, rl_lua_lock *self, rl_request *request, rl_lua_driver driver);
  /* Pushes the result of success; |validity_us| is the rest of the lease. */
  void (*push)(lua_State *L, rl_lua_lock *self, redlock_duration validity_us);
} rl_lua_operation;

/* Returns the operation whose code is at index 2, or raises an error. */
const rl_lua_operation *rl_lua_check_operation(lua_State *L);

/* Begins the operation of |row|. Returns REDLOCK_OK, or an error. */
int rl_lua_begin(lua_State *L, rl_lua_lock *self, const rl_lua_operation *row,
                 rl_lua_driver driver);

/* Pushes the result of |operation| of |self|, which succeeded. */
void rl_lua_push_success(lua_State *L, rl_lua_lock *self, rl_operation operation,
                         redlock_duration validity_us);

/* Pushes { acquire = { code =, of =, argument = }, ... }. */
void rl_lua_push_operations(lua_State *L);

#endif /* RL_LUA_OPERATION_H */
