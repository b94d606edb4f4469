/*
 * Types that the files of the Lua binding share.
 *
 * SPDX-License-Identifier: MIT
 *
 * Rules. First push a zeroed userdata with its complete metatable, then create its contents. So an
 * error in between leaks nothing. A call of Lua may run finalizers of other objects of the same
 * client: copy borrowed texts before the first push. Keep no lua_State.
 */
#ifndef RL_LUA_H
#define RL_LUA_H

#include <stdbool.h>
#include <stddef.h>

#include "api/rl_linger.h"
#include "client/rl_client.h"
#include "redlock.h"
#include "rl_lua_compat.h"
#include "rl_lua_memory.h"

/* The number is the version of the structs below: two builds never take each other's objects. */
#define RL_LUA_CLIENT "redlock.client/1"
#define RL_LUA_LOCK "redlock.lock/1"
#define RL_LUA_ANCHOR "redlock.anchor/1"
#define RL_LUA_ANCHOR_CLASS "redlock.anchor/1 class"

/* Userdata of redlock.tls (csrc/tls/lua/rl_lua_tls.c): a pointer to a redlock_transport. */
#define RL_LUA_TRANSPORT "redlock.transport/1"

#define RL_LUA_NAME_SIZE 352     /* bytes of a node's name: the longest is a list of Sentinels */
#define RL_LUA_MESSAGE_SIZE 2048 /* bytes of any message of the library */

/* Level of the function that an error is reported for: the caller of the C function, or, for C
   functions that only the module's own Lua code calls, the caller of that code. */
#define RL_LUA_DIRECT 1
#define RL_LUA_WRAPPED 2

/* Index of an operation's argument, and of the options of a new lock. */
#define RL_LUA_ARGUMENT 3
/* Inside nginx: indexes of the sleeper (rl_lua_nginx_wait.c) and of the request. */
#define RL_LUA_SLEEPER 4
#define RL_LUA_REQUEST 5

/* One object for each Lua state. It is older than all clients and therefore finalized after them.
   It sends what collected clients have left to send. */
typedef struct rl_lua_anchor {
  rl_linger linger;
  rl_lua_memory memory;
  int finished;
} rl_lua_anchor;

struct rl_lua_worker;

typedef struct rl_lua_client {
  redlock_client *client;
  rl_lua_anchor *anchor;        /* kept alive by the user value */
  size_t bytes;                 /* of the client that Lua does not see */
  double next_id;               /* of the next lock */
  struct rl_lua_worker *worker; /* nginx's driver (rl_lua_worker.h), or NULL */
  int of_worker;                /* true if its locks belong to the nginx worker by default */
  int reentrant;                /* default of its locks (rl_lua_reentry.h) */
  bool closed;                  /* inside nginx, while other clients use its connections */
} rl_lua_client;

typedef struct rl_lua_lock {
  redlock_lock *lock;
  rl_lua_client *client;        /* kept alive by the user value */
  rl_operation operation;       /* last operation that was started */
  struct rl_lua_worker *worker; /* of its client; kept alive by the user value */
  int of_worker;                /* true if the lock belongs to the nginx worker by default */
  int reentrant;                /* rl_lua_reentry.h */
  int owner_ended;              /* released because its request has ended */
  int has_options;              /* made with options of its own */
  int has_own_value;            /* has a user value of its own (rl_lua_loss.h) */
  size_t bytes;                 /* of the lock that Lua does not see */
} rl_lua_lock;

/* Creates the anchor of the Lua state, unless there is one. */
void rl_lua_anchor_ensure(lua_State *L);

/* Each adds the functions of its file to the module table on top of the stack. */
void rl_lua_client_register(lua_State *L);
void rl_lua_driver_register(lua_State *L);
void rl_lua_lock_register(lua_State *L);
void rl_lua_nginx_register(lua_State *L);

/* client:stats(): redlock.Stats in types.lua. */
int rl_lua_stats(lua_State *L);

#endif /* RL_LUA_H */
