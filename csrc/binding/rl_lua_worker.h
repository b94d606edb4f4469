/*
 * What the binding asks of nginx: a driver that lives in the binding, above the objects that it carries.
 *
 * SPDX-License-Identifier: MIT
 *
 * A client that nginx carries points to its worker, and so do its locks. The worker is a table of functions and what
 * these need. Clients of other drivers have none.
 */
#ifndef RL_LUA_WORKER_H
#define RL_LUA_WORKER_H

#include "rl_lua.h"

typedef struct rl_lua_worker_functions {
  /* Returns the bytes of a lock object, for a lock on one resource that is not made yet. */
  size_t (*lock_size)(const rl_lua_client *client, size_t resource_length, int has_options);
  /* Makes a lock again that was given back. Returns 0 if it was collected, or there is no memory. */
  int (*revive)(lua_State *L, rl_lua_lock *self);
  /* The lock is being freed. Calls no Lua. */
  void (*forget_lock)(rl_lua_lock *self);
  /* Returns true if the lock's request has ended, and the lock has not been released for that yet. */
  bool (*owner_has_ended)(const rl_lua_lock *self);
  /* Returns the number of the request at |index|, which no other has had; 0 if that is none. */
  uint64_t (*request_number)(lua_State *L, rl_lua_lock *self, int index);
  /* The client is collected: gives up its reference to |client|. Calls no Lua. */
  void (*free_client)(rl_lua_client *self, redlock_client *client);
} rl_lua_worker_functions;

typedef struct rl_lua_worker {
  const rl_lua_worker_functions *functions;
} rl_lua_worker;

/* The lock is there after this, made again if it was given back. Returns 0 when it is not. */
static inline int rl_lua_worker_revive(lua_State *L, rl_lua_lock *self) {
  if (self->lock != NULL)
    return 1;
  return self->worker != NULL && self->worker->functions->revive(L, self);
}

#endif /* RL_LUA_WORKER_H */
