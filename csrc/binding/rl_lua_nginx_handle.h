/*
 * The handles of clients and locks in nginx's driver.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_NGINX_HANDLE_H
#define RL_LUA_NGINX_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rl_lua.h"
#include "rl_lua_nginx_owner.h"
#include "rl_lua_worker.h"

#define RL_LUA_NGINX "redlock.nginx/2"

/* In the user value that a client shares with its locks. */
#define RL_LUA_NGINX_DRIVER 3 /* the driver's table */
#define RL_LUA_NGINX_SELF 4   /* the handle */

struct rl_lua_nginx_lock;

/* The driver's threads use this handle, because they must not keep the client object alive. */
typedef struct rl_lua_nginx {
  rl_lua_worker worker;   /* for the rest of the binding */
  redlock_client *client; /* NULL after finalization */
  uint32_t open;          /* connections that the driver has or makes */
  uint32_t woken;         /* connections whose writer is awake */
  redlock_time wake_us;   /* next turn of the driver's clock */
  rl_lua_nginx_owners owners;
  struct rl_lua_nginx_lock *
      *waiting;         /* by sleeper, from 1: locks whose operation a request waits for */
  size_t waiting_count; /* sleepers allocated */
  size_t waited;        /* sleepers in use */
  size_t users;         /* clients that share the connections, without closed and collected ones */
  int of_worker;        /* of these clients, as in rl_lua_client */
  int reentrant;
} rl_lua_nginx;

/* A lock of such a client. */
typedef struct rl_lua_nginx_lock {
  rl_lua_lock base;
  size_t sleeper;           /* at which a request waits for the operation; 0: none waits */
  rl_lua_nginx_owned owned; /* list entry of the request that owns the lock */
  int freed;                /* the lock was freed: rl_lua_nginx_released.h */
  int result;               /* of its last operation */
  int abandoned;            /* that was a fire-and-forget release */
  size_t resource_length;
} rl_lua_nginx_lock;

/* Returns the handle of a worker; NULL for NULL. */
static inline rl_lua_nginx *rl_lua_nginx_of(rl_lua_worker *worker) {
  return (rl_lua_nginx *)worker; /* Its first field. */
}

/* Converts a lock that has a worker. */
static inline rl_lua_nginx_lock *rl_lua_nginx_lock_of(rl_lua_lock *self) {
  return (rl_lua_nginx_lock *)self; /* Its first field. */
}

/* Returns the handle at index 1, or raises an error. */
rl_lua_nginx *rl_lua_nginx_check(lua_State *L);

/* Resets the handle in a forked child, which has none of the connections. */
void rl_lua_nginx_check_fork(rl_lua_nginx *self);

/* Returns the request at |index|, a pointer in a cdata of nginx's Lua; NULL for anything else. */
void *rl_lua_nginx_request_at(lua_State *L, int index);

/* Returns the connections whose writers sleep and have bytes to send, and marks them as woken. */
uint32_t rl_lua_nginx_wake_writers(rl_lua_nginx *self);

/* Returns true if the driver's clock must be woken, and notes that the caller wakes it. */
bool rl_lua_nginx_wake_clock(rl_lua_nginx *self);

/* Returns true if there are losses or events to report. */
bool rl_lua_nginx_has_losses(const rl_lua_nginx *self);

#endif /* RL_LUA_NGINX_HANDLE_H */
