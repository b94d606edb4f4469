/*
 * The core for drivers that own no sockets: OpenResty's, whose connections are cosockets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef RL_LUA_NGINX_H
#define RL_LUA_NGINX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rl_lua.h"

#define RL_LUA_NGINX "redlock.nginx/2"

/* In the user value that a client shares with its locks. */
#define RL_LUA_NGINX_DRIVER 3 /* the driver's table */
#define RL_LUA_NGINX_SELF 4   /* the handle */

/* What stands for a client in the driver's threads, which must not keep the client itself alive. */
typedef struct rl_lua_nginx {
  redlock_client *client; /* NULL once it was finalized */
  uint32_t open;          /* connections that the driver has, or is making */
  uint32_t woken;         /* connections whose writer knows that there is something to send */
  redlock_time wake_us;   /* when the driver's clock looks next */
  rl_lua_nginx_owners owners;
  rl_lua_lock **waiting; /* by slot, from 1: whose operation is waited for */
  size_t waiting_count;  /* slots that there is room for */
  size_t waited;         /* slots that stand for a lock */
  size_t users;  /* clients that share the connections, and were neither closed nor collected */
  int of_worker; /* of these clients, as rl_lua_client has it */
  int reentrant;
} rl_lua_nginx;

/* Gives up a client's reference, or a lock's, to what they share. NULL is allowed. */
void rl_lua_nginx_share_unref(rl_lua_nginx_share *share);

/* Returns true if the client was closed while others that share its connections go on. */
static inline bool rl_lua_nginx_share_is_closed(const rl_lua_nginx_share *share) {
  return share != NULL && share->closed;
}

/* A client is collected: it is no user any more. */
void rl_lua_nginx_leave(rl_lua_client *client);

static inline rl_lua_lock *rl_lua_lock_of(rl_lua_nginx_owned *owned) {
  return (rl_lua_lock *)((char *)owned - offsetof(rl_lua_lock, owned));
}

/* Pushes the table of the functions that the driver is written with: redlock.core.nginx. */
void rl_lua_nginx_register(lua_State *L);

/*
 * Gives up a reference to a client whose sockets are the driver's. With the last one, what is still
 * to be released goes out over connections of its own, for which at most 100 ms are spent: this is
 * how a worker that ends leaves nothing locked. Calls no Lua.
 */
void rl_lua_nginx_free_client(redlock_client *client);

/* The handle at index 1, or an error; a worker that inherited it has nothing of its connections. */
rl_lua_nginx *rl_lua_nginx_check(lua_State *L);
void rl_lua_nginx_check_fork(rl_lua_nginx *self);

/* The request at |index|, as nginx's Lua names it: a pointer that is a cdata. NULL for anything else. */
void *rl_lua_nginx_request_at(lua_State *L, int index);

/* The connections whose writers are to be woken; each is said once until it has asked for its bytes. */
uint32_t rl_lua_nginx_wake_writers(rl_lua_nginx *self);

/* Whether the driver's clock sleeps for too long; said once. */
bool rl_lua_nginx_wake_clock(rl_lua_nginx *self);

/* -------------------------------------------------------------------------- rl_lua_nginx_wait.c */

/* Adds the functions of operations that requests wait for to the table on top of the stack. */
void rl_lua_nginx_wait_register(lua_State *L);

/*
 * Writes the slots of the operations that have ended into the table at |list|, behind the first
 * |count|, and returns how many there are then.
 */
int rl_lua_nginx_wait_collect(lua_State *L, rl_lua_nginx *self, int list, int count);

/*
 * Releases what belonged to requests that have ended, and ends their operations; their slots go into
 * the table at |list|. Returns how many.
 */
int rl_lua_nginx_wait_bury(lua_State *L, rl_lua_nginx *self, int list);

/* Detaches all locks from the handle, which is being finalized. Calls no Lua. */
void rl_lua_nginx_wait_forget(rl_lua_nginx *self);

/* The same for one lock, which is being finalized. */
void rl_lua_nginx_wait_forget_lock(rl_lua_lock *self);

#endif /* RL_LUA_NGINX_H */
