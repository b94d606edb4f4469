/*
 * The request of nginx that owns a lock: at the end of the request the lock is released.
 *
 * SPDX-License-Identifier: MIT
 *
 * nginx calls the handler of ngx_http_cleanup_add() once when a request ends, however it ends;
 * timers have requests, too. The handler runs in the middle of nginx's own work: it runs no Lua,
 * allocates nothing and sends nothing. It moves the locks of the request to a list that the next
 * turn of the client's clock releases. Until then the log phase, which comes later, still finds
 * them held.
 *
 * Request, lock and client may end in any order. The request's memory contains the owner, the lock
 * contains its entry, and the client's handle the list of owners. Each leaves all lists of the
 * other two before its memory is freed.
 */
#ifndef RL_LUA_NGINX_OWNER_H
#define RL_LUA_NGINX_OWNER_H

#include "base/rl_hash.h"
#include "base/rl_list.h"

typedef struct rl_lua_nginx_owner rl_lua_nginx_owner;

/* Part of a lock. */
typedef struct rl_lua_nginx_owned {
  rl_list list;              /* in that of its owner, or in that of locks whose owner has ended */
  rl_lua_nginx_owner *owner; /* NULL: none, or it has ended */
} rl_lua_nginx_owned;

/* nginx's struct of a request's cleanup. */
typedef struct rl_lua_nginx_cleanup {
  void (*handler)(void *data);
  void *data;
  struct rl_lua_nginx_cleanup *next;
} rl_lua_nginx_cleanup;

/* Owners of one client's locks. */
typedef struct rl_lua_nginx_owners {
  rl_lua_nginx_cleanup *(*cleanup_add)(void *request,
                                       size_t size); /* NULL: nginx has no such function */
  rl_hash table;                                     /* of owners, by the address of the request */
  uint64_t last_number;                              /* last number of a request */
  size_t owned_count;                                /* locks with an owner */
  rl_list ended;                                     /* locks whose owner has ended */
} rl_lua_nginx_owners;

void rl_lua_nginx_owners_init(rl_lua_nginx_owners *owners);

/* Detaches all requests and locks, and frees the table. */
void rl_lua_nginx_owners_free(rl_lua_nginx_owners *owners);

/* Makes |request| the owner of the lock. Returns false, and the lock has no owner, if |request| is
   NULL, nginx does not report the end of requests, or memory is short. */
bool rl_lua_nginx_owners_give(rl_lua_nginx_owners *owners, void *request,
                              rl_lua_nginx_owned *owned);

/* Returns true if the owner of the lock is another request than |request|, and has not ended. */
bool rl_lua_nginx_owner_is_another(const rl_lua_nginx_owned *owned, const void *request);

/* Returns the number of a request, which is never reused; 0 if |request| is NULL, or as above. */
uint64_t rl_lua_nginx_owners_number(rl_lua_nginx_owners *owners, void *request);

/* Returns true if the request with that number has not ended. */
bool rl_lua_nginx_owners_last(const rl_lua_nginx_owners *owners, const void *request,
                              uint64_t number);

/* Takes the lock from its owner. */
void rl_lua_nginx_owners_take(rl_lua_nginx_owners *owners, rl_lua_nginx_owned *owned);

/* Returns true if the lock is in the list of locks whose owner has ended. */
static inline bool rl_lua_nginx_owner_has_ended(const rl_lua_nginx_owned *owned) {
  return rl_list_is_in(&owned->list) && owned->owner == NULL;
}

/* Removes and returns a lock whose owner has ended; NULL if there is none. */
rl_lua_nginx_owned *rl_lua_nginx_owners_next_ended(rl_lua_nginx_owners *owners);

#endif /* RL_LUA_NGINX_OWNER_H */
