/*
 * What stands for a client in nginx's driver, and for its locks.
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

/* What stands for a client in the driver's threads, which must not keep the client itself alive. */
typedef struct rl_lua_nginx {
  rl_lua_worker worker;   /* what the rest of the binding sees of it */
  redlock_client *client; /* NULL once it was finalized */
  uint32_t open;          /* connections that the driver has, or is making */
  uint32_t woken;         /* connections whose writer knows that there is something to send */
  redlock_time wake_us;   /* when the driver's clock looks next */
  rl_lua_nginx_owners owners;
  struct rl_lua_nginx_lock **waiting; /* by slot, from 1: whose operation is waited for */
  size_t waiting_count;               /* slots that there is room for */
  size_t waited;                      /* slots that stand for a lock */
  size_t users;  /* clients that share the connections, and were neither closed nor collected */
  int of_worker; /* of these clients, as rl_lua_client has it */
  int reentrant;
} rl_lua_nginx;

/* A lock of a client that nginx carries. */
typedef struct rl_lua_nginx_lock {
  rl_lua_lock base;
  size_t slot;              /* in which a request of nginx waits for the operation; 0 = none does */
  rl_lua_nginx_owned owned; /* by a request of nginx */
  int given_back;           /* the lock is not there: rl_lua_nginx_released.h */
  int result;               /* of the last operation then */
  int unheard;              /* that was a release whose result may still be asked for */
  size_t resource_length;
} rl_lua_nginx_lock;

/* The worker of a client or a lock. NULL is allowed. */
static inline rl_lua_nginx *rl_lua_nginx_of(rl_lua_worker *worker) {
  return (rl_lua_nginx *)worker; /* Its first field. */
}

/* Only for a lock that has a worker. */
static inline rl_lua_nginx_lock *rl_lua_nginx_lock_of(rl_lua_lock *self) {
  return (rl_lua_nginx_lock *)self; /* Its first field. */
}

static inline rl_lua_nginx_lock *rl_lua_nginx_lock_owned(rl_lua_nginx_owned *owned) {
  return (rl_lua_nginx_lock *)((char *)owned - offsetof(rl_lua_nginx_lock, owned));
}

/* The handle at index 1, or an error; a worker that inherited it has nothing of its connections. */
rl_lua_nginx *rl_lua_nginx_check(lua_State *L);
void rl_lua_nginx_check_fork(rl_lua_nginx *self);

/* The request at |index|, as nginx's Lua names it: a pointer that is a cdata. NULL for anything else. */
void *rl_lua_nginx_request_at(lua_State *L, int index);

/* The connections whose writers are to be woken; each is said once until it has asked for its bytes. */
uint32_t rl_lua_nginx_wake_writers(rl_lua_nginx *self);

/* Returns true if the driver's clock sleeps for too long; said once. */
bool rl_lua_nginx_wake_clock(rl_lua_nginx *self);

/* Returns true if somebody is to be told of a loss. */
bool rl_lua_nginx_has_losses(const rl_lua_nginx *self);

#endif /* RL_LUA_NGINX_HANDLE_H */
