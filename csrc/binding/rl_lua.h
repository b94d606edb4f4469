/*
 * The types that the files of the Lua binding share.
 *
 * SPDX-License-Identifier: MIT
 *
 * Rules. A userdata is made first, zeroed and with its complete metatable, and what it owns second,
 * so that an error in between leaks nothing. A call of Lua may run finalizers of other objects of
 * the same client, so texts that the library lends are copied before they are pushed. No lua_State
 * is kept, and C never calls Lua functions.
 */
#ifndef RL_LUA_H
#define RL_LUA_H

#include "api/rl_linger.h"
#include "client/rl_client.h"
#include "redlock.h"
#include "rl_lua_compat.h"
#include "rl_lua_memory.h"
#include "rl_lua_share.h"

/* The number is the version of the structs below: two builds never take each other's objects. */
#define RL_LUA_CLIENT "redlock.client/1"
#define RL_LUA_LOCK "redlock.lock/1"
#define RL_LUA_SENTINEL "redlock.sentinel/1"
#define RL_LUA_SENTINEL_CLASS "redlock.sentinel/1 class"

/* What redlock.tls returns (csrc/tls/lua/rl_lua_tls.c): a pointer to a redlock_transport. */
#define RL_LUA_TRANSPORT "redlock.transport/1"

#define RL_LUA_NAME_SIZE 320     /* of a node: a socket's path, or a host name and a port */
#define RL_LUA_MESSAGE_SIZE 2048 /* of any sentence of the library */

/* Which function of the stack an error is reported for: the one that called the C function, or, for
   functions that only the module's own Lua code calls, the one that called that. */
#define RL_LUA_DIRECT 1
#define RL_LUA_WRAPPED 2

/*
 * One for each Lua state, older than all clients, and therefore finalized after them. It looks after
 * the clients that became garbage before everything of theirs was sent.
 */
typedef struct rl_lua_sentinel {
  rl_linger linger;
  rl_lua_memory memory;
  int finished;
} rl_lua_sentinel;

struct rl_lua_worker;

typedef struct rl_lua_client {
  redlock_client *client;
  rl_lua_sentinel *sentinel;    /* kept alive by the user value */
  size_t bytes;                 /* of it that Lua does not see */
  double next_id;               /* of the next lock */
  struct rl_lua_worker *worker; /* of nginx, which carries its bytes (rl_lua_worker.h), or NULL */
  int of_worker;                /* whose its locks are inside nginx when nothing else is said */
  int reentrant;                /* what its locks are then (rl_lua_reentry.h) */
  rl_lua_share
      *share; /* inside nginx; NULL = its memory was out, and it is closed with the others */
} rl_lua_client;

typedef struct rl_lua_lock {
  redlock_lock *lock;
  rl_lua_sentinel *sentinel;    /* kept alive by the user value, which the client shares */
  rl_operation operation;       /* the last one that was started */
  struct rl_lua_worker *worker; /* its client's; kept alive by the user value */
  rl_lua_share *share;          /* its client's, or NULL */
  int of_worker;                /* whose it is inside nginx, if nothing else is said */
  int reentrant;                /* rl_lua_reentry.h */
  int owner_ended;              /* it was released because its request has ended */
  int has_options;              /* of its own */
  int has_own_value;            /* a user value of its own: rl_lua_loss.h */
  size_t bytes;                 /* of it that Lua does not see */
} rl_lua_lock;

#endif /* RL_LUA_H */
