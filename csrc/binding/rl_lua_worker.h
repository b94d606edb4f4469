/*
 * Functions of nginx's driver that lower files of the binding call.
 *
 * SPDX-License-Identifier: MIT
 *
 * A client of nginx's driver points to its worker, and so do its locks. Clients of other drivers
 * have no worker.
 */
#ifndef RL_LUA_WORKER_H
#define RL_LUA_WORKER_H

#include "rl_lua.h"

typedef struct rl_lua_worker_functions {
  /* Returns the size of the object of a new lock on one resource. */
  size_t (*lock_size)(const rl_lua_client *client, size_t resource_length, int has_options);
  /* Recreates a lock that was freed after its release. Returns 0 if it was collected, or memory is
     short. */
  int (*revive)(lua_State *L, rl_lua_lock *self);
  /* The lock is being freed. Calls no Lua. */
  void (*forget_lock)(rl_lua_lock *self);
  /* Returns true if the lock's request has ended, and the lock is not released yet. */
  bool (*owner_has_ended)(const rl_lua_lock *self);
  /*
   * Returns the number of the request at |index|, which is never reused; 0 if that is no request.
   */
  uint64_t (*request_number)(lua_State *L, rl_lua_lock *self, int index);
  /* The client object is collected: drops its reference to |client|. Calls no Lua. */
  void (*free_client)(rl_lua_client *self, redlock_client *client);
} rl_lua_worker_functions;

typedef struct rl_lua_worker {
  const rl_lua_worker_functions *functions;
} rl_lua_worker;

/* Recreates the lock of the object, if necessary. Returns 0 if that fails. */
static inline int rl_lua_worker_revive(lua_State *L, rl_lua_lock *self) {
  if (self->lock != NULL)
    return 1;
  return self->worker != NULL && self->worker->functions->revive(L, self);
}

#endif /* RL_LUA_WORKER_H */
